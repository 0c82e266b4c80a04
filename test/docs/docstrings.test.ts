/** The public docstrings: everything has one, every function shows a snippet, and the snippets run. */
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {buildIfStale} from '../helpers/dist';

interface Docstring {
  name: string;
  kind: 'function' | 'class' | 'value' | 'type';
  documented: boolean;
  snippets: number;
  errors: string[];
}

let all: Docstring[];

beforeAll(() => {
  buildIfStale();
  const folder = mkdtempSync(join(tmpdir(), 'docstrings-'));
  const results = join(folder, 'results.json');
  const program = join(__dirname, 'run_docstrings.mjs');
  const {status, stderr} = spawnSync(process.execPath, [program, results], {encoding: 'utf8', cwd: folder});
  if (status !== 0) throw new Error(stderr);
  all = JSON.parse(readFileSync(results, 'utf8'));
  rmSync(folder, {recursive: true, force: true});
}, 300000);

const names = (found: Docstring[]) => found.map(({name}) => name);

describe('public docstrings', () => {
  it('are there for everything that is exported', () => {
    expect(all.length).toBeGreaterThan(80);
    expect(names(all.filter(({documented}) => !documented))).toEqual([]);
  });

  it('show a snippet for every function', () => {
    expect(names(all.filter(({kind, snippets}) => kind === 'function' && snippets === 0))).toEqual([]);
  });

  it('have snippets that run', () => {
    expect(all.reduce((sum, {snippets}) => sum + snippets, 0)).toBeGreaterThan(40);
    expect(all.flatMap(({name, errors}) => errors.map((error) => `${name}: ${error}`))).toEqual([]);
  });
});
