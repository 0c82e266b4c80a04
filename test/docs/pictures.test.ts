/** The guides' pictures are what the package computes: drawn again, they say and show the same. */
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {buildIfStale, root} from '../helpers/dist';
import {GUIDES, read} from './documents';

const committed = join(root, 'docs', 'pictures');
const names = readdirSync(committed).filter((name) => name.endsWith('.svg'));
let folder: string;

beforeAll(() => {
  buildIfStale();
  folder = mkdtempSync(join(tmpdir(), 'pictures-'));
  const {status, stderr} = spawnSync(process.execPath, [join(committed, 'draw.mjs'), folder], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
}, 120000);

afterAll(() => rmSync(folder, {recursive: true, force: true}));

const wordsOf = (svg: string) => [...svg.matchAll(/<(?:text|title)[^>]*>([^<]*)/g)].map((match) => match[1]);
const pointsOf = (svg: string) =>
  [...svg.matchAll(/points="([^"]*)"/g)].flatMap((match) => match[1]!.split(/[ ,]/).map(Number));

it.each(names)('%s is what is drawn now', (name) => {
  const [before, now] = [committed, folder].map((place) => readFileSync(join(place, name), 'utf8')) as [
    string,
    string,
  ];
  expect(wordsOf(now)).toEqual(wordsOf(before));
  // Lines to a pixel: the last bits of what they show differ between machines. Cells are many, white ones are left out.
  const points = pointsOf(before);
  expect(pointsOf(now)).toHaveLength(points.length);
  for (const [i, x] of pointsOf(now).entries()) expect(Math.abs(x - points[i]!)).toBeLessThan(1);
  expect(Math.abs(now.length / before.length - 1)).toBeLessThan(0.02);
});

it('every picture is shown by a guide', () => {
  const guides = GUIDES.map(read).join('\n');
  for (const name of names) expect(guides).toContain(`../pictures/${name})`);
});
