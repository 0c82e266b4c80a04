/**
 * What each entry adds to a page: bundled by esbuild, minified, without tfjs. Writes benchmarks/results/sizes.md; with
 * --check it compares with the budgets below instead, and fails where one is exceeded.
 */
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {brotliCompressSync, gzipSync} from 'node:zlib';
import {build} from 'esbuild';
import {ENTRIES, stemOf} from './entries.mjs';

const name = 'tfjs-linear-attention';
/** What a page imports, and the most it may weigh: KiB, brotli. */
const BUDGET = {
  [name]: [['.'], 112],
  [`${name}/ops`]: [['./ops'], 19],
  [`${name}/layers`]: [['./layers'], 27],
  [`${name}/models`]: [['./models'], 30],
  [`${name}/generation`]: [['./generation'], 26],
  [`${name}/training`]: [['./training'], 46],
  [`${name}/patches`]: [['./patches'], 11],
  [`${name}/kernels/cpu`]: [['./kernels/cpu'], 33],
  [`${name}/kernels/wasm`]: [['./kernels/wasm'], 37],
  [`${name}/kernels/webgl`]: [['./kernels/webgl'], 14],
  [`${name}/kernels/webgpu`]: [['./kernels/webgpu'], 13],
  [`${name}/kernels/node`]: [['./kernels/node'], 8.5],
  [`${name}/node-webgpu`]: [['./node-webgpu'], 14],
  'ops + kernels/wasm': [['./ops', './kernels/wasm'], 51],
  'generation + layers + kernels/webgpu': [['./generation', './layers', './kernels/webgpu'], 45],
};

async function measure(entries) {
  const contents = entries
    .map(
      (entry, i) =>
        `import * as part${i} from './dist/${stemOf(ENTRIES[entry])}.mjs'; globalThis.p${i} = part${i};`,
    )
    .join('\n');
  const {outputFiles} = await build({
    stdin: {contents, resolveDir: process.cwd()},
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    external: ['@tensorflow/*', 'webgpu'],
    legalComments: 'none',
    logLevel: 'error',
  });
  return sizesOf(Buffer.from(outputFiles[0].contents));
}

const sizesOf = (bytes) => ({
  minified: bytes.length,
  gzip: gzipSync(bytes, {level: 9}).length,
  brotli: brotliCompressSync(bytes).length,
});

/** One row per budget: {title, minified, gzip, brotli, budget}, bytes; the script-tag file last. */
export async function measureSizes() {
  const rows = await Promise.all(
    Object.entries(BUDGET).map(async ([title, [entries, budget]]) => ({
      title,
      ...(await measure(entries)),
      budget: budget * 1024,
    })),
  );
  const script = sizesOf(readFileSync('dist/tfjs-linear-attention.min.js'));
  return [
    ...rows,
    {title: 'script tag: tfjs-linear-attention.min.js', ...script, budget: SCRIPT_BUDGET * 1024},
  ];
}
const SCRIPT_BUDGET = 112;

const kib = (bytes) => (bytes / 1024).toFixed(1);

/** Errors for what is over its budget. */
export const overBudget = (rows) =>
  rows
    .filter(({brotli, budget}) => brotli > budget)
    .map(({title, brotli, budget}) => `${title}: ${kib(brotli)} KiB, more than its budget of ${kib(budget)}`);

export function table(rows) {
  const lines = rows.map(
    ({title, minified, gzip, brotli, budget}) =>
      `| ${title} | ${kib(minified)} | ${kib(gzip)} | ${kib(brotli)} | ${(budget / 1024).toFixed(0)} |`,
  );
  return ['| | minified | gzip | brotli | budget |', '|---|---:|---:|---:|---:|', ...lines].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.chdir(fileURLToPath(new URL('..', import.meta.url)));
  const rows = await measureSizes();
  console.log(table(rows));
  const over = overBudget(rows);
  for (const line of over) console.error(line);
  if (over.length > 0) process.exit(1);
  if (!process.argv.includes('--check')) {
    mkdirSync('benchmarks/results', {recursive: true});
    writeFileSync(
      'benchmarks/results/sizes.md',
      `# What each entry weighs

What a page downloads besides tfjs, in KiB: every export of the entry in one bundle of esbuild, minified. An application that
uses a part of an entry gets that part. The budget is for the brotli size; \`npm run check:package\` fails above it.

${table(rows)}

\`npm run build && npm run sizes\` makes this file.
`,
    );
  }
}
