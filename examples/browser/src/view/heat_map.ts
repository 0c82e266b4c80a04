/** A matrix as a picture, one pixel a number. */
import type {Rgb} from '../colours';

/** Draws rows x columns numbers from `values`, `offset` on. */
export function drawMatrix(
  canvas: HTMLCanvasElement,
  {values, offset, rows, columns}: {values: Float32Array; offset: number; rows: number; columns: number},
  colour: (x: number) => Rgb,
): void {
  const pen = canvas.getContext('2d');
  if (pen === null) return;
  canvas.width = columns;
  canvas.height = rows;
  const image = pen.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) {
    image.data.set(colour(values[offset + i]), 4 * i);
    image.data[4 * i + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}
