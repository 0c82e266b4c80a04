/**
 * Runs the guides' programs one after the other in one process, each in its own folder, and writes what they printed and
 * on which line: node run_programs.mjs LIST RESULTS. A process of its own, because jest has no modules to import.
 */
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {pathToFileURL} from 'node:url';
import {format} from 'node:util';

const [list, results] = process.argv.slice(2);
const done = [];
for (const {name, file} of JSON.parse(readFileSync(list, 'utf8'))) {
  const printed = [];
  const url = pathToFileURL(file).href;
  console.log = (...values) => {
    const frames = new Error().stack.split('\n').slice(2);
    const at = frames.find((frame) => frame.includes(url));
    const line = Number(/:(\d+):\d+\)?$/.exec(at ?? '')?.[1] ?? 0);
    printed.push({line, text: format(...values)});
  };
  process.chdir(dirname(file));
  const started = Date.now();
  let error = null;
  try {
    await import(url);
  } catch (caught) {
    error = String(caught?.stack ?? caught);
  }
  done.push({name, printed, error, seconds: (Date.now() - started) / 1000});
}
writeFileSync(results, JSON.stringify(done));
process.exit(0);
