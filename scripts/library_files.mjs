/**
 * The library's files. As ES modules: one file per source module, so that a bundler keeps of them what is used. As
 * CommonJS: entries and shared chunks, so that Node reads few files. Either way one copy of everything exists, whichever
 * entries are used together; in Node, `import` gets thin wrappers of the CommonJS files, so that this holds for both.
 */
import {existsSync, mkdirSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {basename, dirname, join, relative, resolve} from 'node:path';
import {build, transform} from 'esbuild';
import {ENTRIES, stemOf} from './entries.mjs';

const SOURCES = Object.values(ENTRIES);
const common = {
  bundle: true,
  target: 'es2022',
  platform: 'neutral',
  packages: 'external',
  legalComments: 'none',
  logLevel: 'warning',
  outbase: '.',
};

/** Imports of other sources become imports of the files made from them. */
const betweenModules = {
  name: 'between-modules',
  setup(builder) {
    builder.onResolve({filter: /^\./}, ({path, resolveDir, kind}) => {
      if (kind === 'entry-point') return;
      const file = existsSync(join(resolveDir, `${path}.ts`)) ? path : `${path}/index`;
      return {path: `${file}.mjs`, external: true};
    });
  },
};

/** All sources that the entries reach. */
async function modules() {
  const {metafile} = await build({
    ...common,
    entryPoints: SOURCES,
    format: 'esm',
    outdir: 'out',
    metafile: true,
    write: false,
  });
  return Object.keys(metafile.inputs);
}

async function writeModules(out) {
  await build({
    ...common,
    entryPoints: await modules(),
    format: 'esm',
    plugins: [betweenModules],
    sourcemap: true,
    outdir: out,
    outExtension: {'.js': '.mjs'},
  });
}

/**
 * esbuild makes a copy of tfjs's thousand exports for each source that imports them, for the sake of default imports, which
 * nobody uses here: a third of the time that the package takes to load.
 */
const withoutCopies = (code) => code.replace(/__toESM\((require\("@tensorflow\/[\w-]+"\))\)/g, '$1');

/**
 * esbuild exports two getters, one behind the other, of every name, and each use of a name in another file goes through
 * both: a tenth of what a decoding step on wasm costs beside its arithmetic. Functions that are declared exist from the
 * start and never change, so they are exported as they are; the rest keeps one getter.
 */
const withPlainExports = (code) =>
  code
    .replace(
      /^var __export = \(target, all\) => \{\n.*\n.*\n\};$/m,
      // As many lines as before, for the sake of the source map. What cannot be read yet is another file's.
      `var __valueOf = (f) => { try { return f(); } catch {} };
var __export = (target, all) => { for (const name in all) { const value = __valueOf(all[name]);
  __defProp(target, name, { ...(typeof value === "function" ? { value } : { get: all[name] }), enumerable: true });
} };`,
    )
    .replace(
      /^var __toCommonJS = .*$/m,
      'var __toCommonJS = (mod) => __defProp(mod, "__esModule", { value: true });',
    );

/** esbuild splits ES modules only: they are split first, and each file is made CommonJS then. */
async function writeCommonJS(out) {
  const {outputFiles} = await build({
    ...common,
    entryPoints: SOURCES,
    format: 'esm',
    splitting: true,
    sourcemap: 'inline',
    outdir: out,
    outExtension: {'.js': '.cjs'},
    chunkNames: 'chunks/[hash]',
    write: false,
  });
  await Promise.all(
    outputFiles.map(async ({path, text}) => {
      const name = basename(path);
      const {code, map} = await transform(text, {
        format: 'cjs',
        platform: 'node',
        target: common.target,
        sourcemap: 'external',
        sourcefile: name,
      });
      mkdirSync(dirname(path), {recursive: true});
      writeFileSync(path, `${withPlainExports(withoutCopies(code))}//# sourceMappingURL=${name}.map\n`);
      writeFileSync(`${path}.map`, map);
    }),
  );
}

/** The ES modules that Node gets. */
function writeWrappers(out) {
  const require = createRequire(import.meta.url);
  for (const source of SOURCES) {
    const file = join(out, stemOf(source));
    const from = `./${basename(file)}.cjs`;
    // Those of the kernels export nothing, and are registered when tfjs is at hand.
    const names = source.startsWith('kernels/')
      ? []
      : Object.keys(require(resolve(`${file}.cjs`))).filter((name) => name !== '__esModule');
    writeFileSync(
      `${file}.node.mjs`,
      names.length === 0
        ? `import '${from}';\n`
        : `import api from '${from}';\nexport const {${names.join(', ')}} = api;\n`,
    );
  }
}

/** Writes both forms and the wrappers into `out`. */
export async function writeLibrary(out) {
  await Promise.all([writeModules(out), writeCommonJS(out)]);
  writeWrappers(out);
}

/** TypeScript takes a .d.ts in a CommonJS package for CommonJS; importers get a declaration that says it is a module. */
export function writeModuleTypes(types) {
  for (const source of SOURCES) {
    const file = join(types, stemOf(source));
    writeFileSync(`${file}.d.mts`, `export * from './${relative(dirname(file), file)}.js';\n`);
  }
}
