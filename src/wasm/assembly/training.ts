/** The smaller kernels of a training step, in one module. */
export {adamW} from './adam_w';
export {columnSums} from './column_sums';
export {layerNorm, layerNormGrad} from './layer_norm';
export {rotary} from './rotary';
