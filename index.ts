/** The package's face. */
import './kernels';

export * as generation from './generation';
export {warmup} from './generation';
export * as layers from './layers';
export {LinearAttention, SoftmaxAttention} from './layers';
export * as models from './models';
export * from './ops';
export * as patches from './src/patches';
export {register} from './src/register';
export * as training from './training';
