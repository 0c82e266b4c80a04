/** GLSL that the programs share. A texel (r g; b a) is the block x y / z w of two rows and two columns. */

/** 2x2 blocks: a b, a b^T and a^T b. */
export const PRODUCTS = `
vec4 timesNN(vec4 a, vec4 b) { return a.xxzz * b.xyxy + a.yyww * b.zwzw; }
vec4 timesNT(vec4 a, vec4 b) { return a.xxzz * b.xzxz + a.yyww * b.ywyw; }
vec4 timesTN(vec4 a, vec4 b) { return a.xxyy * b.xyxy + a.zzww * b.zwzw; }
`;

/** Steps that are written out: a loop's own cost is that of a fetch on some devices. */
const UNROLLED = 4;

/**
 * `count` (a number or an int expression) times `body`, which finds the places in its walks under their names:
 * {a: ['start', 'step']} makes `a` start, start + step, ... Places are computed from the start again and again, so that
 * rounding does not add up.
 */
export function walk(
  count: number | string,
  walks: {[place: string]: [start: string, step: string]},
  body: string,
): string {
  const places = Object.entries(walks);
  const start = places
    .map(([name, [from, step]]) => `vec2 ${name} = ${from} + float(p) * ${step};`)
    .join('\n');
  const onward = places.map(([name, [, step]]) => `${name} += ${step};`).join(' ');
  const whole =
    typeof count === 'number'
      ? String(count - (count % UNROLLED))
      : `((${count}) / ${UNROLLED}) * ${UNROLLED}`;
  const several = `
  for (int p = 0; p < ${whole}; p += ${UNROLLED}) {
    ${start}
    ${Array(UNROLLED).fill(`{ ${body} }`).join(`\n${onward}\n`)}
  }`;
  const single = `
  for (int p = ${whole}; p < ${count}; p++) {
    ${start}
    { ${body} }
  }`;
  return [whole === '0' ? '' : several, String(count) === whole ? '' : single].join('');
}

/** A number as a GLSL literal of type float. */
export function float(x: number): string {
  const text = String(x);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
