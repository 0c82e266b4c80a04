/** The kernels of gelu: Gelu({x}) and GeluGrad({x, dy}), any shape, float32; attribute `form`. */
import type {NamedAttrMap} from '@tensorflow/tfjs-core';

export const Gelu = 'Gelu';
export const GeluGrad = 'GeluGrad';

/** 'none': x Phi(x). 'tanh': 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
export type GeluForm = 'none' | 'tanh';

export const formOf = (attrs: NamedAttrMap): GeluForm => (attrs['form'] === 'tanh' ? 'tanh' : 'none');
