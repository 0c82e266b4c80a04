/** The gradient of f at x by central differences, in double precision. */
export function centralDifferences(
  f: (x: Float64Array) => number,
  x: ArrayLike<number>,
  step = 1e-5,
): Float64Array {
  const at = Float64Array.from(x);
  return at.map((value, i) => {
    at[i] = value + step;
    const above = f(at);
    at[i] = value - step;
    const below = f(at);
    at[i] = value;
    return (above - below) / (2 * step);
  });
}
