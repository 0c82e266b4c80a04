/** The package's entry points: what an application imports, and the source of each. */
export const ENTRIES = {
  '.': 'index.ts',
  './ops': 'ops/index.ts',
  './layers': 'layers/index.ts',
  './models': 'models/index.ts',
  './generation': 'generation/index.ts',
  './training': 'training/index.ts',
  './patches': 'src/patches/index.ts',
  './kernels/cpu': 'kernels/cpu.ts',
  './kernels/node': 'kernels/node.ts',
  './kernels/wasm': 'kernels/wasm.ts',
  './kernels/webgl': 'kernels/webgl.ts',
  './kernels/webgpu': 'kernels/webgpu.ts',
  './node-webgpu': 'node_webgpu.ts',
};

/** Modules that do something when they are imported: they register kernels or layer classes. */
export const SIDE_EFFECTS = [
  './dist/index.mjs',
  './dist/node_webgpu.mjs',
  './dist/kernels/*.mjs',
  './dist/layers/*.mjs',
  './dist/**/*.node.mjs',
  './dist/**/*.cjs',
  './dist/tfjs-linear-attention.min.js',
  // In the repository, where bundlers read this list for the sources and for programs that import them.
  './**/*.ts',
  './benchmarks/**',
  './examples/**',
  './test/**',
];

/** The path of an entry's files in dist, without an extension. */
export const stemOf = (source) => source.replace(/\.ts$/, '');

/** What package.json must say about the entries. */
export function manifestOf() {
  const exports = {};
  const typesVersions = {};
  for (const [entry, source] of Object.entries(ENTRIES)) {
    const stem = stemOf(source);
    exports[entry] = {
      import: {
        types: `./dist/types/${stem}.d.mts`,
        node: `./dist/${stem}.node.mjs`,
        default: `./dist/${stem}.mjs`,
      },
      require: {types: `./dist/types/${stem}.d.ts`, default: `./dist/${stem}.cjs`},
    };
    if (entry !== '.') typesVersions[entry.slice(2)] = [`./dist/types/${stem}.d.ts`];
  }
  exports['./package.json'] = './package.json';
  return {exports, typesVersions: {'*': typesVersions}, sideEffects: SIDE_EFFECTS};
}
