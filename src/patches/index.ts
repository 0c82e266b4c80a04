/** Opt-in repairs of tfjs itself. Each is applied by a call, idempotent, and returns undo(). */
import {cumsumGradient} from './cumsum_gradient';
import {einsumGradient} from './einsum_gradient';
import {patch, together, type Undo} from './patch';
import {wasmTraining} from './wasm_training';

export {cumsumGradient, einsumGradient, type Undo, wasmTraining};

const PATCHES = [einsumGradient, cumsumGradient, wasmTraining];

/** Applies every patch. Returns one undo for all of them. */
export const all: () => Undo = patch(() => together(PATCHES.map((apply) => apply())));
