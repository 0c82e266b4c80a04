/** The kernels of tfjs's wasm backend: importing this registers its kernels. */
import {adamWWasm} from '../src/adam_w/wasm';
import {geluGradient} from '../src/gelu/gradient';
import {geluWasm} from '../src/gelu/wasm';
import {layerNormGradient} from '../src/layer_norm/gradient';
import {layerNormWasm} from '../src/layer_norm/wasm';
import {wasmKernels} from '../src/linear_attention/wasm';
import {wasmStepKernel} from '../src/linear_attention/wasm_step';
import {addKernels} from '../src/register';
import {rotaryWasm} from '../src/rotary_wasm';

addKernels({
  backend: 'wasm',
  kernels: [...wasmKernels, wasmStepKernel, ...geluWasm, ...layerNormWasm, adamWWasm, rotaryWasm],
  gradients: [geluGradient, layerNormGradient],
});
