/**
 * Compiles the AssemblyScript kernels and writes them, as base64, into src/wasm/generated/<name>.ts (committed).
 * `--check` writes nothing and fails when the committed files differ from what the sources compile to.
 */
import {existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import asc from 'assemblyscript/asc';
import {unroll} from './unroll.mjs';

const root = new URL('..', import.meta.url).pathname;
process.chdir(root);
const checkOnly = process.argv.includes('--check');

/**
 * One module a line: the generated file's name, its source below src/wasm/assembly, further compiler flags.
 * The order of instructions in gemm_micro.ts must survive: level 1 keeps it, level 3 does not. Level 2 keeps that of core.ts
 * well enough: on V8 from 13 on (Node 24) causal attention is 3 % faster than with level 3.
 */
const MODULES = [
  {name: 'scan', source: 'scan.ts', flags: ['-O2']},
  {name: 'scanRelaxed', source: 'scan.ts', flags: ['-O2', '--enable', 'relaxed-simd']},
  {name: 'gemm', source: 'gemm.ts', flags: ['-O1']},
  {name: 'gemmRelaxed', source: 'gemm.ts', flags: ['-O1', '--enable', 'relaxed-simd']},
  {name: 'gelu', source: 'gelu.ts', flags: ['-O3']},
  {name: 'training', source: 'training.ts', flags: ['-O3']},
];

const FLAGS = [
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
      readFile: (file) => (existsSync(file) ? unroll(readFileSync(file, 'utf8'), file) : null),
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
 * global, and nothing imported but that memory. Read from the bytes, because the Node that builds may lack relaxed SIMD.
 */
function checkModule(name, bytes) {
  const problem = (text) => {
    throw new Error(`${name}: the compiled module ${text}`);
  };
  const found = new Set();
  for (const {id, body} of sections(bytes)) {
    found.add(id);
    const read = reader(body);
    const count = read.number();
    if (id === IMPORTS) {
      const imported = `${read.name()}.${read.name()}`;
      if (count !== 1 || imported !== 'env.memory' || read.number() !== MEMORY) {
        problem(`must import env.memory and nothing else; it imports ${count} things, ${imported} first`);
      }
    } else if (id === EXPORTS) {
      for (let i = 0; i < count; i++) {
        const exported = read.name();
        if (read.number() !== FUNCTION) problem(`must export functions only; it exports ${exported}`);
        read.number();
      }
    } else if (id === MEMORIES || (id === GLOBALS && count > 0) || id === START || id === DATA) {
      problem(`has a section of kind ${id}: a memory, globals, a start function or data`);
    }
  }
  if (!found.has(IMPORTS) || !found.has(EXPORTS)) {
    problem('imports no memory or exports nothing');
  }
}

const [IMPORTS, MEMORIES, GLOBALS, EXPORTS, START, DATA] = [2, 5, 6, 7, 8, 11];
const [FUNCTION, MEMORY] = [0, 2];

/** Reads unsigned LEB128 numbers and names, one after the other. */
function reader(bytes) {
  let at = 0;
  const number = () => {
    let value = 0;
    for (let shift = 0, more = true; more; shift += 7) {
      const byte = bytes[at++];
      value |= (byte & 127) << shift;
      more = byte >= 128;
    }
    return value;
  };
  const name = () => {
    const length = number();
    at += length;
    return Buffer.from(bytes.subarray(at - length, at)).toString();
  };
  const take = (length) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  return {number, name, take, done: () => at >= bytes.length};
}

/** The sections of a module: id and bytes. */
function* sections(bytes) {
  const read = reader(bytes.subarray(8));
  while (!read.done()) {
    const id = read.number();
    yield {id, body: read.take(read.number())};
  }
}

mkdirSync('src/wasm/generated', {recursive: true});
let stale = 0;
for (const entry of MODULES) {
  const bytes = await compile(entry);
  const file = `src/wasm/generated/${entry.name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}.ts`;
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
