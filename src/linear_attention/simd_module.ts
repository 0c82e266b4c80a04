/** The module of the attention kernels, in the form that is asked for. */
import {scanWasm} from '../wasm/generated/scan';
import {scanRelaxedWasm} from '../wasm/generated/scan_relaxed';
import {instantiateForm} from '../wasm/relaxed';
import type {SimdExports} from './simd_arguments';

const FORMS = {plain: scanWasm, relaxed: scanRelaxedWasm};

/** The module's functions over `memory`, or null where they cannot run: see `instantiate`. */
export const simdOver = (memory: WebAssembly.Memory): SimdExports | null =>
  instantiateForm<SimdExports>(FORMS, memory);
