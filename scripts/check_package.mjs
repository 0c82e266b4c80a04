/**
 * Proves the tarball that users install: its files, its manifest (publint), its types (attw), and that it works when it
 * is installed in another folder: by require, by import, under TypeScript's node16 and bundler resolution, bundled by
 * esbuild and vite for a page and a worker, by script tag, beside the union package, and beside a second copy of tfjs.
 * What a bundle holds is checked by its modules and by its size. Nothing is downloaded: the peers are linked from here.
 */
import {execFileSync} from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {isDeepStrictEqual} from 'node:util';
import vm from 'node:vm';
import {build} from 'esbuild';
import {publint} from 'publint';
import {formatMessage} from 'publint/utils';
import * as vite from 'vite';
import {pageContext, workerContext} from './checks/page_context.mjs';
import {checkSideEffects} from './checks/side_effects.mjs';
import {checkEsbuild, checkVite} from './checks/tree_shaking.mjs';
import {makeSecondCopies} from './checks/two_copies.mjs';
import {ENTRIES, manifestOf, stemOf} from './entries.mjs';
import {measureSizes, overBudget, table} from './sizes.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
const temporary = mkdtempSync(join(tmpdir(), 'tfla-package-'));
process.on('exit', () => rmSync(temporary, {recursive: true, force: true}));

/** Runs one check; a failed one ends the program with its name and reason. */
async function step(name, body) {
  const started = Date.now();
  try {
    await body();
  } catch (error) {
    console.error(`  FAILED  ${name}\n${error.status === undefined ? error.stack : error.message}`);
    process.exit(1);
  }
  console.log(`  ok  ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
}

const node = (args, cwd) =>
  execFileSync(process.execPath, args, {cwd, stdio: ['ignore', 'inherit', 'inherit']});

await step('build', () => node(['scripts/build.mjs', '--if-stale'], root));
const [packed] = JSON.parse(
  execFileSync('npm', ['pack', '--json', '--pack-destination', temporary], {encoding: 'utf8'}),
);
const tarball = join(temporary, packed.filename);
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));

await step('package.json says what scripts/entries.mjs says', () => {
  for (const [field, expected] of Object.entries(manifestOf())) {
    if (!isDeepStrictEqual(manifest[field], expected))
      throw new Error(`expected ${field} to be ${JSON.stringify(expected, null, 2)}`);
  }
});
await step('the tarball holds the build and nothing of the sources', () => {
  const files = packed.files.map((file) => file.path);
  const wanted = [
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'package.json',
    'dist/cli.cjs',
    'dist/worker.cjs',
    'dist/setup/setup_node.mjs',
    'dist/setup/native/linear_attention.cc',
    'dist/tfjs-linear-attention.min.js',
    ...Object.values(ENTRIES)
      .map(stemOf)
      .flatMap((stem) => [
        `dist/${stem}.cjs`,
        `dist/${stem}.mjs`,
        `dist/${stem}.node.mjs`,
        `dist/types/${stem}.d.ts`,
        `dist/types/${stem}.d.mts`,
      ]),
  ];
  const missing = wanted.filter((file) => !files.includes(file));
  if (missing.length > 0) throw new Error(`missing from the tarball: ${missing.join(', ')}`);
  const strangers = files.filter(
    (file) =>
      !wanted.includes(file) &&
      !/^dist\/(types\/.*\.d\.ts|(chunks|kernels|ops|layers|models|generation|training|src)\/[\w/]+\.[cm]js(\.map)?|[a-z_]+\.[cm]js\.map|setup\/(node\/)?[a-z_]+\.mjs|setup\/native\/[a-z_]+\.(cc|h))$/.test(
        file,
      ),
  );
  if (strangers.length > 0) throw new Error(`not meant to be in the tarball: ${strangers.join(', ')}`);
  console.log(
    `      ${files.length} files, ${(packed.size / 1024).toFixed(0)} KiB packed, ${(packed.unpackedSize / 1024).toFixed(0)} KiB unpacked`,
  );
});

const app = join(temporary, 'app');
mkdirSync(app);
writeFileSync(join(app, 'package.json'), '{"name": "app", "private": true}');
await step('npm installs it without the network', () => {
  // The peers are linked afterwards: npm would ask a registry for them.
  execFileSync(
    'npm',
    ['install', '--offline', '--legacy-peer-deps', '--no-audit', '--no-fund', '--silent', tarball],
    {
      cwd: app,
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  symlinkSync(join(root, 'node_modules/@tensorflow'), join(app, 'node_modules/@tensorflow'));
  cpSync('scripts/package_check', app, {recursive: true});
});
const installed = join(app, 'node_modules', manifest.name);

await step('publint', async () => {
  const {messages} = await publint({pkgDir: installed, pack: false, strict: true});
  if (messages.length > 0)
    throw new Error(messages.map((message) => formatMessage(message, manifest)).join('\n'));
});
await step('are the types wrong', () => {
  node(
    [join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js'), tarball, '--format', 'ascii', '--quiet'],
    temporary,
  );
});

await step('require, beside tfjs-core and tfjs-layers', () => node(['require.cjs'], app));
await step('import, the same copy as require', () => node(['import.mjs'], app));
await step('entries: operations and kernels alone, one copy of everything', () => node(['entries.cjs'], app));
await step('require, beside the union package', () => node(['union.cjs'], app));
await step('training in two threads', () => node(['threads.cjs'], app));
await step('two copies of tfjs are explained', () => {
  makeSecondCopies(root, app);
  node(['two_copies.cjs'], app);
});
await step('the command line runs', () => {
  const bin = join(app, 'node_modules/.bin', manifest.name);
  const version = execFileSync(bin, ['--version'], {encoding: 'utf8'}).trim();
  if (version !== manifest.version)
    throw new Error(`--version: expected ${manifest.version}; got ${version}`);
});

for (const [module, resolution] of [
  ['node16', 'node16'],
  ['esnext', 'bundler'],
]) {
  await step(`TypeScript, ${resolution} resolution`, () => {
    // One source as a module and as CommonJS: each has declarations of its own.
    for (const extension of ['mts', 'cts']) {
      cpSync(join(app, 'types.ts'), join(app, `types.${extension}`));
    }
    const compilerOptions = {
      noEmit: true,
      strict: true,
      skipLibCheck: true,
      target: 'es2022',
      lib: ['es2022', 'dom'],
      types: [],
      module,
      moduleResolution: resolution,
    };
    const files = resolution === 'node16' ? ['types.mts', 'types.cts'] : ['types.mts'];
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({compilerOptions, files}));
    node([join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json'], app);
  });
}

await step('sideEffects lists the modules that act on import', () =>
  checkSideEffects(installed, manifest.sideEffects),
);
await step('esbuild keeps what is used and nothing else', () => checkEsbuild(app));
await step('vite keeps what is used and nothing else', () => checkVite(app, vite));
await step('sizes are within their budgets', async () => {
  const rows = await measureSizes();
  console.log(table(rows));
  const over = overBudget(rows);
  if (over.length > 0) throw new Error(over.join('\n'));
});

/** A bundle runs in a page and in a worker, neither of which has anything of Node's. */
async function runBundle(code) {
  for (const context of [pageContext(), workerContext()]) {
    vm.runInContext(code, context);
    await context.done;
  }
}
const entry = join(app, 'page.mjs');
await step('a bundle of esbuild for a page and a worker, which loads without Node', async () => {
  const bundle = await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'browser',
    format: 'iife',
    // tfjs's own sources name Node modules and mark them as absent in a browser; ours may name none.
    metafile: true,
    write: false,
    minify: true,
    logLevel: 'error',
  });
  const ours = Object.keys(bundle.metafile.inputs).filter((path) => path.includes(manifest.name));
  if (!ours.some((path) => path.endsWith('dist/index.mjs'))) {
    throw new Error(`expected the page to get dist/index.mjs; got ${ours.join(', ')}`);
  }
  await runBundle(bundle.outputFiles[0].text);
});
await step('a bundle of vite for a page and a worker', async () => {
  const [{output}] = [
    await vite.build({
      root: app,
      configFile: false,
      logLevel: 'error',
      build: {write: false, lib: {entry, formats: ['iife'], name: 'app'}},
    }),
  ].flat();
  await runBundle(output[0].code);
});
await step('script tags, beside the union package', async () => {
  const page = pageContext();
  const files = [join(root, 'node_modules/@tensorflow/tfjs/dist/tf.min.js'), join(installed, manifest.unpkg)];
  if (!existsSync(files[1])) throw new Error(`missing: ${manifest.unpkg}`);
  for (const file of files) vm.runInContext(readFileSync(file, 'utf8'), page, {filename: file});
  vm.runInContext(`(exports => {${readFileSync(join(app, 'behaviour.cjs'), 'utf8')}})(globalThis);`, page);
  vm.runInContext(readFileSync(join(app, 'script_tag.js'), 'utf8'), page);
  await page.done;
});
console.log(`${manifest.name} ${manifest.version}: the package is sound`);
