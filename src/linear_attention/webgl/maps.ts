/** Pointwise maps in GLSL (src/pointwise.ts), written so that NaN stays NaN. */
import type {PointwiseMap} from '../../pointwise';

const MAPS: {[map in PointwiseMap]: {phi: string; derivative: string}} = {
  identity: {phi: 'x', derivative: '1.'},
  elu: {phi: 'x > 0. ? x + 1. : exp(x)', derivative: 'phi > 1. ? 1. : phi'},
  relu: {phi: 'x < 0. ? 0. : x', derivative: 'phi > 0. ? 1. : 0.'},
  squaredRelu: {phi: 'x < 0. ? 0. : x * x', derivative: '2. * sqrt(phi)'},
  exp: {phi: 'exp(x)', derivative: 'phi'},
};

/** Declares `vec4 phi(vec4)`. */
export const mapCode = (map: PointwiseMap): string => `
float phi1(float x) { return ${MAPS[map].phi}; }
vec4 phi(vec4 x) { return vec4(phi1(x.x), phi1(x.y), phi1(x.z), phi1(x.w)); }
`;

/** Declares `vec4 derivative(vec4 phi)`: of the map, from its value. */
export const derivativeCode = (map: PointwiseMap): string => `
float derivative1(float phi) { return ${MAPS[map].derivative}; }
vec4 derivative(vec4 phi) {
  return vec4(derivative1(phi.x), derivative1(phi.y), derivative1(phi.z), derivative1(phi.w));
}
`;
