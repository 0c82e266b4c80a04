/** What ends up in the bundle of an application that imports some entries: nothing of the others. */
import {join} from 'node:path';
import {build} from 'esbuild';

const name = 'tfjs-linear-attention';
const PARTS = {
  layers: /dist\/(layers|models|generation|training)\//,
  patches: /dist\/src\/(patches|mat_mul)\//,
  // The cpu backend's kernels run in WebAssembly of their own.
  cpu: /dist\/src\/.*(\/cpu|_cpu|cpu_step)\.mjs|dist\/kernels\/cpu/,
  wasm: /dist\/src\/.*(\/wasm|_wasm|wasm_step)\.mjs|dist\/kernels\/wasm|generated\/(gelu|gemm|training)/,
  simd: /dist\/src\/(wasm\/|linear_attention\/simd)/,
  webgl: /dist\/src\/(.*\/)?webgl|dist\/kernels\/webgl/,
  webgpu: /dist\/src\/(.*\/)?webgpu|dist\/kernels\/webgpu|dist\/node_webgpu/,
  node: /dist\/src\/node\/|dist\/src\/linear_attention\/node|dist\/kernels\/node/,
};
const BACKENDS = ['cpu', 'wasm', 'simd', 'webgl', 'webgpu', 'node'];
const without = (...kept) => BACKENDS.filter((part) => !kept.includes(part));

/** An application, the parts that it must not hold, and whether it may hold tfjs-layers. */
const CASES = [
  {
    title: 'ops alone',
    code: `import {linearAttention} from '${name}/ops'; use(linearAttention);`,
    absent: ['layers', 'patches', ...BACKENDS],
    tfjsLayers: false,
  },
  ...['cpu', 'wasm', 'webgl', 'webgpu', 'node'].map((backend) => ({
    title: `ops and the kernels of ${backend}`,
    code: `import {linearAttention} from '${name}/ops'; import '${name}/kernels/${backend}'; use(linearAttention);`,
    absent: [
      'layers',
      'patches',
      ...without(backend, ...(backend === 'cpu' || backend === 'wasm' ? ['simd'] : [])),
    ],
    present: [backend],
    tfjsLayers: false,
  })),
  {
    title: 'one operation of the root keeps every backend',
    code: `import {linearAttention} from '${name}'; use(linearAttention);`,
    absent: ['patches'],
    present: BACKENDS,
    tfjsLayers: true,
  },
  {
    title: 'layers imported for loading only are kept',
    code: `import '${name}/layers';`,
    absent: BACKENDS,
    present: ['layers'],
    tfjsLayers: true,
  },
  {
    title: 'a written text: generation, layers and the kernels of webgpu',
    code: `import {generate} from '${name}/generation'; import '${name}/layers'; import '${name}/kernels/webgpu'; use(generate);`,
    absent: without('webgpu'),
    present: ['layers', 'webgpu'],
    tfjsLayers: true,
  },
];

/** @param modulesOf Bundles code and returns the paths of the modules that have bytes in the output. */
async function checkWith(modulesOf) {
  for (const {title, code, absent, present = [], tfjsLayers} of CASES) {
    const modules = (await modulesOf(code)).map((path) => path.replaceAll('\\', '/'));
    const own = modules.filter((path) => path.includes(`${name}/dist/`));
    for (const part of absent) {
      const found = own.filter((path) => PARTS[part].test(path.slice(path.indexOf('dist/'))));
      if (found.length > 0) throw new Error(`${title}: expected nothing of ${part}; got ${found.join(', ')}`);
    }
    for (const part of present) {
      if (!own.some((path) => PARTS[part].test(path.slice(path.indexOf('dist/')))))
        throw new Error(`${title}: expected something of ${part}`);
    }
    if (modules.some((path) => path.includes('tfjs-layers')) !== tfjsLayers)
      throw new Error(`${title}: expected ${tfjsLayers ? 'tfjs-layers' : 'no tfjs-layers'}`);
  }
}

const CONTENTS = (code) => `const use = (x) => { globalThis.used = x; };\n${code}`;

export const checkEsbuild = (app) =>
  checkWith(async (code) => {
    const {metafile} = await build({
      stdin: {contents: CONTENTS(code), resolveDir: app},
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      external: ['@tensorflow/*'],
      logLevel: 'error',
    });
    const [output] = Object.values(metafile.outputs);
    const modules = Object.entries(output.inputs).flatMap(([path, {bytesInOutput}]) =>
      bytesInOutput > 0 ? [path] : [],
    );
    return [...modules, ...output.imports.map(({path}) => path)];
  });

/** The same with vite, whose bundler is another. */
export async function checkVite(app, vite) {
  const entry = join(app, 'entry.mjs');
  await checkWith(async (code) => {
    const [{output}] = [
      await vite.build({
        root: app,
        configFile: false,
        logLevel: 'error',
        plugins: [
          {
            name: 'the-application',
            enforce: 'pre',
            resolveId: (id) => (id === entry ? id : null),
            load: (id) => (id === entry ? CONTENTS(code) : null),
          },
        ],
        build: {
          write: false,
          minify: false,
          lib: {entry, formats: ['es']},
          rollupOptions: {external: /^@tensorflow\//},
        },
      }),
    ].flat();
    return output.flatMap((chunk) => [
      ...Object.entries(chunk.modules ?? {}).flatMap(([path, {renderedLength}]) =>
        renderedLength > 0 ? [path] : [],
      ),
      ...(chunk.imports ?? []),
    ]);
  });
}
