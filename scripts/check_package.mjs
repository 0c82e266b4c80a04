/**
 * Proves the tarball that users install: its files, its manifest (publint), its types (attw), and that it works when it
 * is installed in another folder: by require, by import, under TypeScript's node16 and bundler resolution, bundled for a
 * page, by script tag, and beside the union package. Nothing is downloaded: the peers are linked from here.
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
import vm from 'node:vm';
import {build} from 'esbuild';
import {publint} from 'publint';
import {formatMessage} from 'publint/utils';

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

await step('the tarball holds the build and nothing of the sources', () => {
  const files = packed.files.map((file) => file.path);
  const wanted = [
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'package.json',
    'dist/index.cjs',
    'dist/index.mjs',
    'dist/node.mjs',
    'dist/cli.cjs',
    'dist/worker.cjs',
    'dist/setup/setup_node.mjs',
    'dist/setup/native/linear_attention.cc',
    'dist/tfjs-linear-attention.min.js',
    'dist/node_webgpu.cjs',
    'dist/node_webgpu.mjs',
    'dist/types/index.d.ts',
    'dist/types/index.d.mts',
    'dist/types/node_webgpu.d.mts',
  ];
  const missing = wanted.filter((file) => !files.includes(file));
  if (missing.length > 0) throw new Error(`missing from the tarball: ${missing.join(', ')}`);
  const strangers = files.filter(
    (file) =>
      !wanted.includes(file) &&
      !/^dist\/(types\/.*\.d\.ts|[a-z_]+\.[cm]js\.map|setup\/(node\/)?[a-z_]+\.mjs|setup\/native\/[a-z_]+\.(cc|h))$/.test(
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
await step('require, beside the union package', () => node(['union.cjs'], app));
await step('training in two threads', () => node(['threads.cjs'], app));
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

/** A page's globals, without anything of Node's. */
function pageContext() {
  const page = vm.createContext({
    console,
    performance,
    setTimeout,
    clearTimeout,
    TextEncoder,
    TextDecoder,
    atob,
    btoa,
    URL,
    navigator: {userAgent: ''},
  });
  vm.runInContext('globalThis.self = globalThis.window = globalThis; globalThis.document = {};', page);
  return page;
}

await step('a bundle for a page, which loads without Node', async () => {
  const bundle = await build({
    entryPoints: [join(app, 'page.mjs')],
    bundle: true,
    platform: 'browser',
    format: 'iife',
    // tfjs's own sources name Node modules and mark them as absent in a browser; ours may name none.
    metafile: true,
    write: false,
    minify: true,
    logLevel: 'error',
  });
  const ours = Object.entries(bundle.metafile.inputs).filter(([path]) => path.includes(manifest.name));
  if (!ours.some(([path]) => path.endsWith('dist/index.mjs'))) {
    throw new Error(`expected the page to get dist/index.mjs; got ${ours.map(([path]) => path).join(', ')}`);
  }
  const page = pageContext();
  vm.runInContext(bundle.outputFiles[0].text, page);
  await page.done;
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
