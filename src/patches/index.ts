/** Opt-in repairs of tfjs itself. Each is applied by a call, idempotent, and returns undo(). */
import {cumsumGradient} from './cumsum_gradient';
import {einsumGradient} from './einsum_gradient';
import {patch, together, type Undo} from './patch';
import {wasmMatMul} from './wasm_mat_mul';
import {wasmTraining} from './wasm_training';

export {cumsumGradient, einsumGradient, type Undo, wasmMatMul, wasmTraining};

const PATCHES = [einsumGradient, cumsumGradient, wasmTraining, wasmMatMul];

/**
 * Applies every patch.
 *
 * ```js
 * const undo = patches.all();
 * undo();
 * ```
 *
 * @returns one undo for all of them.
 */
export const all: () => Undo = patch(() => together(PATCHES.map((apply) => apply())));
