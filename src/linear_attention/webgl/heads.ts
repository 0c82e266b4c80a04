/** [BH,N,w] to [B,N,H,w], where w is odd: a texel then holds the same token of two heads. */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {type Drawing, viewed} from '../../webgl/draw';
import type {Plan} from './plan';

export function drawHeads(
  drawing: Drawing,
  info: TensorInfo,
  N: number,
  width: number,
  {B, H}: Plan,
): TensorInfo {
  return drawing.keep(
    drawing.draw(
      {
        name: 'attention heads',
        tensors: {X: viewed(info, [1, B * H, N, width])},
        uniforms: {heads: H},
        code: `
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.x * heads + o.z;
  vec4 first = getX(0, bh, o.y, o.w);
  vec4 second = o.z + 1 < heads ? getX(0, bh + 1, o.y, o.w) : first;
  setOutput(imod(o.y, 2) == 0 ? vec4(first.xy, second.xy) : vec4(first.zw, second.zw));
}
`,
      },
      [B, N, H, width],
    ),
  );
}
