/**
 * The kernels of layer normalization over the last axis (Ba et al. 2016, https://arxiv.org/abs/1607.06450):
 *
 *     y = gamma (x - mean(x)) / sqrt(var(x) + epsilon) + beta
 *
 * LayerNorm({x [..,D], gamma [D], beta [D]}) -> y [..,D]; LayerNormGrad({x, gamma, dy}) -> [dx, dgamma, dbeta]; attribute
 * `epsilon`. tfjs's layer tiles the moments, and the gradient of Tile is a loop over all rows, one slice and one
 * addition each: at 16 x 28 tokens that was nine tenths of a training step.
 */
export const LayerNorm = 'LayerNorm';
export const LayerNormGrad = 'LayerNormGrad';
