/** The kernels of tfjs's webgl backend: importing this registers its kernels. */
import {webglKernels} from '../src/linear_attention/webgl';
import {addKernels} from '../src/register';

addKernels({backend: 'webgl', kernels: webglKernels});
