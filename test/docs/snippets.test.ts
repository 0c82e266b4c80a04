/** Every snippet of the README and the guides does what it shows, with the built package in another folder. */
import {spawnSync} from 'node:child_process';
import {existsSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {buildIfStale, cli, root, run} from '../helpers/dist';
import {randomNumbers} from '../helpers/random_numbers';
import {blocksOf, GUIDES, makeFolder, placeOf, programOf, promisesOf, read, write} from './documents';

// Programs and a browser are started; on a busy machine that takes a while.
jest.setTimeout(300000);

interface Ran {
  name: string;
  printed: {line: number; text: string}[];
  error: string | null;
}

interface Page {
  name: string;
  printed: string[];
  problems: string[];
}

const DOCUMENTS = ['README.md', ...GUIDES];
const programs = GUIDES.filter((document) => blocksOf(document, 'js').length > 0);
const pages = DOCUMENTS.flatMap((document) =>
  blocksOf(document, 'html').map((block) => ({name: `${document}, line ${block.line}`, document, block})),
);
let folder: string;
let ran: Ran[];

/** What the guide about Keras takes for given: a folder that Keras's converter wrote. */
function writeKerasModel(place: string): void {
  const [D, H, keyDim] = [8, 2, 4];
  const part = (name: string, kernel: number[], bias: number[]) =>
    [kernel, bias].map((shape, i) => ({
      name: `multi_head_attention/${name}/${['kernel', 'bias'][i]}`,
      shape,
      dtype: 'float32',
    }));
  const weights = [
    ...['query', 'key', 'value'].flatMap((name) => part(name, [D, H, keyDim], [H, keyDim])),
    ...part('attention_output', [H, keyDim, D], [D]),
  ];
  const size = weights.reduce((sum, {shape}) => sum + shape.reduce((a, b) => a * b, 1), 0);
  write(join(place, 'keras', 'group1-shard1of1.bin'), new Uint8Array(randomNumbers(size, 1).buffer));
  const weightsManifest = [{paths: ['group1-shard1of1.bin'], weights}];
  write(join(place, 'keras', 'model.json'), JSON.stringify({modelTopology: {}, weightsManifest}));
}

/** Runs one of the programs beside this file on a list, and reads its results. */
function runList<T>(program: string, list: object): T {
  const [asked, results] = ['list.json', 'results.json'].map((name) => join(folder, name)) as [
    string,
    string,
  ];
  writeFileSync(asked, JSON.stringify(list));
  rmSync(results, {force: true});
  const {status, stderr} = spawnSync(process.execPath, [join(__dirname, program), asked, results], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${program} failed: ${stderr}`);
  return JSON.parse(readFileSync(results, 'utf8')) as T;
}

beforeAll(() => {
  buildIfStale();
  folder = makeFolder();
  writeKerasModel(placeOf(folder, 'migrating.md'));
  const list = programs.map((name) => ({name, file: join(placeOf(folder, name), 'program.mjs')}));
  for (const {name, file} of list) write(file, programOf(name));
  ran = runList<Ran[]>('run_programs.mjs', list);
});

afterAll(() => rmSync(folder, {recursive: true, force: true}));

describe('the snippets', () => {
  it('are in languages that are tested here', () => {
    const languages = new Set(
      DOCUMENTS.flatMap((document) => blocksOf(document).map((block) => block.language)),
    );
    expect([...languages].sort()).toEqual(['html', 'js', 'ts']);
  });

  it.each(programs)('of %s run in one program and print what they promise', (name) => {
    const {printed, error} = ran.find((one) => one.name === name)!;
    expect(error).toBeNull();
    const promises = promisesOf(programOf(name));
    expect(promises.length).toBeGreaterThan(0);
    // In a loop the last time counts.
    const said = new Map(printed.map(({line, text}) => [line, text]));
    expect(promises.map(({line}) => ({line, text: said.get(line)}))).toEqual(promises);
  });

  it('in TypeScript agree with the types of the package', () => {
    const files = DOCUMENTS.flatMap((document) =>
      blocksOf(document, 'ts').map((block) => {
        const file = join(placeOf(folder, document), `line_${block.line}.mts`);
        write(file, block.code);
        return file;
      }),
    );
    expect(files.length).toBeGreaterThan(1);
    const compilerOptions = {
      ...{noEmit: true, strict: true, skipLibCheck: true, types: []},
      ...{target: 'es2022', lib: ['es2022', 'dom'], module: 'node16'},
    };
    write(join(folder, 'tsconfig.json'), JSON.stringify({compilerOptions, files}));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const {stdout, status} = spawnSync(process.execPath, [tsc, '-p', folder], {encoding: 'utf8'});
    expect({status, stdout}).toEqual({status: 0, stdout: ''});
  });

  const driver = join(root, 'test', 'browser', 'driver.mjs');
  const hasBrowser = () => spawnSync(process.execPath, [driver, '--check']).status === 0;
  const skipped = !process.env.CI && !hasBrowser();
  if (skipped) console.warn('SKIPPED: the pages of README and guides. No browser could be started.');
  (skipped ? describe.skip : describe)('that are pages', () => {
    let opened: Page[];
    beforeAll(() => {
      const list = pages.map(({name, document, block}) => {
        const file = join(placeOf(folder, document), `line_${block.line}.html`);
        const page = block.code.startsWith('<!doctype')
          ? block.code
          : `<!doctype html>\n<meta charset="utf-8">\n${block.code}`;
        write(file, page);
        return {name, file, promises: promisesOf(block.code).map(({text}) => text)};
      });
      opened = runList<Page[]>('run_pages.mjs', {folder, pages: list});
    });

    it.each(pages)('print what they promise: $name', ({name, block}) => {
      const promises = promisesOf(block.code).map(({text}) => text);
      expect(promises.length).toBeGreaterThan(0);
      const {printed, problems} = opened.find((page) => page.name === name)!;
      expect(problems).toEqual([]);
      expect(printed).toEqual(expect.arrayContaining(promises));
    });
  });
});

describe('the documents', () => {
  it('name only commands and flags that exist', async () => {
    const commands = DOCUMENTS.flatMap((document) => [
      ...read(document).matchAll(/npx tfjs-linear-attention ([a-z-]+)([^\n`]*)/g),
    ]);
    expect(commands.length).toBeGreaterThan(4);
    const names = [...new Set(commands.map(([, command]) => command!))];
    const helps = await Promise.all(names.map((name) => run([cli, name, '--help'])));
    for (const [, command, rest] of commands) {
      const {code, stdout} = helps[names.indexOf(command!)]!;
      expect(code).toBe(0);
      for (const [flag] of rest!.matchAll(/--[a-z-]+/g)) expect(stdout).toContain(`${flag} `);
    }
  });

  it('link only to files that exist', () => {
    const links = [...DOCUMENTS, 'CONTRIBUTING.md'].flatMap((document) =>
      [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)/g)].map((match) => ({
        document,
        to: match[1]!,
      })),
    );
    expect(links.length).toBeGreaterThan(20);
    const broken = links.filter(({document, to}) => !existsSync(join(root, dirname(document), to)));
    expect(broken).toEqual([]);
  });

  it('are all in the list of guides', () => {
    const list = read('docs/guides/README.md');
    for (const guide of GUIDES.filter((name) => !name.endsWith('README.md'))) {
      expect(list).toContain(`(${guide.replace('docs/guides/', '')})`);
    }
  });
});
