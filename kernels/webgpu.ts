/** The kernels of tfjs's webgpu backend, in a page or in Node: importing this registers its kernels. */
import {webgpuKernels} from '../src/linear_attention/webgpu';
import {addKernels} from '../src/register';

addKernels({backend: 'webgpu', kernels: webgpuKernels});
