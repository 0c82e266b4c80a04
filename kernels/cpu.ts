/** The kernels of tfjs's cpu backend: importing this registers its kernels. */
import {adamWCpu} from '../src/adam_w/cpu';
import {geluCpu} from '../src/gelu/cpu';
import {geluGradient} from '../src/gelu/gradient';
import {layerNormCpu} from '../src/layer_norm/cpu';
import {layerNormGradient} from '../src/layer_norm/gradient';
import {cpuKernels} from '../src/linear_attention/cpu';
import {cpuStepKernel} from '../src/linear_attention/cpu_step';
import {addKernels} from '../src/register';
import {rotaryCpu} from '../src/rotary_cpu';

addKernels({
  backend: 'cpu',
  kernels: [...cpuKernels, cpuStepKernel, ...geluCpu, ...layerNormCpu, adamWCpu, rotaryCpu],
  gradients: [geluGradient, layerNormGradient],
});
