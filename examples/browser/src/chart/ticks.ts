/** Round numbers for an axis from 0 to at least `top`, about `wanted` steps: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(top: number, wanted: number): number[] {
  const rough = Math.max(top, 1e-9) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999)!;
  const steps = Math.max(1, Math.ceil(top / step - 1e-9));
  // Multiplied, not added up: 0.1 + 0.2 is no round number.
  return Array.from({length: steps + 1}, (_, i) => Number((i * step).toPrecision(12)));
}
