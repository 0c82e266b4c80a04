/** The kernels of tfjs-node (the backend 'tensorflow'): importing this registers its kernels. */
import {nodeKernels} from '../src/linear_attention/node';
import {addKernels} from '../src/register';

addKernels({backend: 'tensorflow', kernels: nodeKernels});
