/**
 * Compiles the AssemblyScript kernels and writes them, as base64, into src/wasm/generated/<name>.ts (committed).
 * `--check` writes nothing and fails when the committed files differ from what the sources compile to.
 */
import {existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import asc from 'assemblyscript/asc';

const root = new URL('..', import.meta.url).pathname;
process.chdir(root);
const checkOnly = process.argv.includes('--check');

/** One module a line: the generated file's name, its source below src/wasm/assembly, further compiler flags. */
const MODULES = [
  {name: 'scan', source: 'scan.ts', flags: []},
  {name: 'gemm', source: 'gemm.ts', flags: []},
  {name: 'gelu', source: 'gelu.ts', flags: []},
  {name: 'training', source: 'training.ts', flags: []},
];

const FLAGS = [
  '-O3',
  '--noAssert',
  '--runtime',
  'stub',
  '--enable',
  'simd',
  // The memory is tfjs's own, or a small one of ours: imported, never exported, any size.
  '--importMemory',
  '--noExportMemory',
  '--initialMemory',
  '1',
  '--maximumMemory',
  '65536',
  '--stackSize',
  '0',
];

async function compile({name, source, flags}) {
  const files = new Map();
  const {error, stderr} = await asc.main(
    [`src/wasm/assembly/${source}`, '--outFile', 'out.wasm', ...FLAGS, ...flags],
    {
      readFile: (file) => (existsSync(file) ? readFileSync(file, 'utf8') : null),
      writeFile: (file, contents) => {
        files.set(file, contents);
      },
    },
  );
  if (error) {
    throw new Error(`${source}: ${error.message}\n${stderr.toString()}`);
  }
  const bytes = files.get('out.wasm');
  checkModule(name, bytes);
  return bytes;
}

/**
 * The module shares tfjs's linear memory, so it must own nothing in it: no data segments, no stack pointer or other
 * mutable global, and nothing imported but that memory.
 */
function checkModule(name, bytes) {
  const module = new WebAssembly.Module(bytes);
  const imports = WebAssembly.Module.imports(module);
  const problem = (text) => {
    throw new Error(`${name}: the compiled module ${text}`);
  };
  if (imports.length !== 1 || imports[0].kind !== 'memory') {
    problem(`must import one memory and nothing else; it imports ${JSON.stringify(imports)}`);
  }
  const others = WebAssembly.Module.exports(module).filter(({kind}) => kind !== 'function');
  if (others.length > 0) {
    problem(`must export functions only; it exports ${JSON.stringify(others)}`);
  }
  for (const {id, body} of sections(bytes)) {
    if (id === 11) problem('has a data section');
    if (id === 8) problem('has a start function');
    if (id === 6 && body[0] !== 0) problem('has globals');
  }
}

/** The sections of a module: id and bytes. */
function* sections(bytes) {
  let at = 8;
  while (at < bytes.length) {
    const id = bytes[at++];
    let size = 0;
    for (let shift = 0, more = true; more; shift += 7) {
      const byte = bytes[at++];
      size |= (byte & 127) << shift;
      more = byte >= 128;
    }
    yield {id, body: bytes.subarray(at, at + size)};
    at += size;
  }
}

mkdirSync('src/wasm/generated', {recursive: true});
let stale = 0;
for (const entry of MODULES) {
  const bytes = await compile(entry);
  const file = `src/wasm/generated/${entry.name}.ts`;
  const text = [
    `/** Compiled from src/wasm/assembly/${entry.source} by \`npm run build:wasm\`: do not edit. */`,
    `export const ${entry.name}Wasm =\n  '${Buffer.from(bytes).toString('base64')}';\n`,
  ].join('\n');
  const same = existsSync(file) && readFileSync(file, 'utf8') === text;
  if (checkOnly && !same) {
    console.error(
      `${file} is not what src/wasm/assembly/${entry.source} compiles to: run npm run build:wasm`,
    );
    stale++;
  } else if (!same) {
    writeFileSync(file, text);
  }
  console.log(`${entry.name}: ${bytes.length} bytes${same ? '' : ' (changed)'}`);
}
process.exit(stale > 0 ? 1 : 0);
