/** Colours for canvases: those of the style sheet, so that light and dark are decided in one place. */

export type Rgb = readonly [number, number, number];

export function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A colour of the style sheet written as #rrggbb. */
export function cssRgb(name: string): Rgb {
  const hex = Number.parseInt(cssColour(name).slice(1), 16);
  return [hex >> 16, (hex >> 8) & 255, hex & 255];
}

const mix = (a: Rgb, b: Rgb, t: number): Rgb => [
  Math.round(a[0] + (b[0] - a[0]) * t),
  Math.round(a[1] + (b[1] - a[1]) * t),
  Math.round(a[2] + (b[2] - a[2]) * t),
];

/** Colours of the heat map: from negative over zero to positive. Each `x` is in [-1, 1]. */
export function diverging(): (x: number) => Rgb {
  const [below, zero, above] = [cssRgb('heat-below'), cssRgb('heat-zero'), cssRgb('heat-above')];
  return (x) => mix(zero, x < 0 ? below : above, Math.min(1, Math.abs(x)));
}

/** Calls when the colours change: light to dark, or back. */
export function onColoursChange(redraw: () => void): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}
