/** The house's rules (CONTRIBUTING.md), read from the sources: who may import whom, and what stays in one place. */
import {existsSync, readdirSync, readFileSync, statSync} from 'node:fs';
import {dirname, join, normalize, relative} from 'node:path';

const root = join(__dirname, '..');

/** The folders that each folder may import, besides itself. */
const MAY_IMPORT: Record<string, string[]> = {
  src: [],
  kernels: ['src'],
  ops: ['src'],
  layers: ['ops', 'src'],
  models: ['layers', 'ops', 'src'],
  generation: ['layers', 'ops', 'src'],
  training: ['models', 'layers', 'ops', 'src'],
  cli: ['kernels', 'training', 'generation', 'models', 'layers', 'ops', 'src'],
};
const LIBRARY = Object.keys(MAY_IMPORT).filter((folder) => folder !== 'cli');
const LIBRARY_PACKAGES = ['@tensorflow/tfjs-core', '@tensorflow/tfjs-layers'];
/** What touches tfjs's internals, and the typed helpers that hand our types to tfjs's. */
const MAY_CAST = [
  join('src', 'tfjs.ts'),
  join('src', 'tfjs_layers.ts'),
  join('src', 'tfjs_memory.ts'),
  join('src', 'linear_attention', 'spec.ts'),
  join('src', 'patches', 'kernel_arguments.ts'),
];
const MAX_LINES = 320;

interface Source {
  path: string;
  folder: string;
  text: string;
  /** The text without comments and strings' contents. */
  code: string;
  imports: string[];
}

function sourcesOf(folder: string): Source[] {
  const files: Source[] = [];
  const visit = (path: string) => {
    if (statSync(path).isDirectory()) {
      const name = relative(root, path);
      if (name === join('src', 'wasm', 'assembly')) return; // AssemblyScript, another language
      for (const child of readdirSync(path)) visit(join(path, child));
      return;
    }
    if (!path.endsWith('.ts') || path.includes('/generated/')) return;
    const text = readFileSync(path, 'utf8');
    const code = text.replace(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/[^\n]*/g, '');
    const imports = [...code.matchAll(/(?:from|import|import\(|require\()\s*['"]([^'"]+)['"]/g)].map(
      (match) => match[1]!,
    );
    files.push({path: relative(root, path), folder, text, code, imports});
  };
  if (existsSync(join(root, folder))) visit(join(root, folder));
  return files;
}

const sources = Object.keys(MAY_IMPORT).flatMap(sourcesOf);
const library = sources.filter(({folder}) => LIBRARY.includes(folder));

function violations(files: Source[], rule: (file: Source) => string[]): string[] {
  return files.flatMap((file) => rule(file).map((fault) => `${file.path}: ${fault}`));
}

describe('architecture', () => {
  it('finds the sources', () => {
    expect(sources.length).toBeGreaterThan(10);
    expect(sources.flatMap(({imports}) => imports).length).toBeGreaterThan(10);
  });

  it('imports point down only, and nothing inside imports index.ts', () => {
    const faults = violations(sources, ({path, folder, imports}) =>
      imports
        .filter((name) => name.startsWith('.'))
        .map((name) => normalize(join(dirname(path), name)))
        .filter((target) => {
          const [top = ''] = target.split('/');
          const manifest = folder === 'cli' && target === 'package.json';
          return !manifest && top !== folder && !MAY_IMPORT[folder]!.includes(top);
        })
        .map((target) => `imports ${target}`),
    );
    expect(faults).toEqual([]);
  });

  it('library code imports tfjs-core and tfjs-layers from their roots and no other package, no Node module', () => {
    const faults = violations(library, ({imports}) =>
      imports
        .filter((name) => !name.startsWith('.') && !LIBRARY_PACKAGES.includes(name))
        .map((name) => `imports ${name}`),
    );
    expect(faults).toEqual([]);
  });

  it('casts past the type system stand in two files only', () => {
    const faults = violations(sources, ({path, code}) =>
      MAY_CAST.includes(path) ? [] : (code.match(/as unknown as [^;,)\n]*/g) ?? []),
    );
    expect(faults).toEqual([]);
  });

  it('nothing is random without a seed', () => {
    expect(violations(sources, ({code}) => code.match(/Math\.random/g) ?? [])).toEqual([]);
  });

  it('library code reads no window or document', () => {
    const faults = violations(library, ({code}) => code.match(/(?<![\w.'"`])(?:window|document)\./g) ?? []);
    expect(faults).toEqual([]);
  });

  it('no file is much over 300 lines', () => {
    const faults = violations(sources, ({text}) => {
      const lines = text.split('\n').length;
      return lines > MAX_LINES ? [`${lines} lines`] : [];
    });
    expect(faults).toEqual([]);
  });
});
