/**
 * The list `sideEffects` of package.json: a bundler drops other modules when nothing of them is used, so every module that
 * does something on import must be on it.
 */
import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';

/** Act on import, for those only who use something of them. */
const FOR_THEIR_USERS = [
  // The class by name, for models that were saved with their optimizer.
  'dist/training/adam_w.mjs',
  // A flag that its kernels read.
  'dist/src/wasm/relaxed.mjs',
  // Prepares a backend that is there already, for its kernels.
  'dist/src/linear_attention/node.mjs',
];
/** A statement that is no declaration, as esbuild prints it. */
const STATEMENT =
  /^(?!import|export|const|let|var|function|class|async|return|\/\/|\/\*|\*)[A-Za-z_$][\w$.]*(\(|\[|\s*=[^=>])/;

export function checkSideEffects(installed, patterns) {
  const modules = readdirSync(join(installed, 'dist'), {recursive: true})
    .map((path) => join('dist', path))
    .filter((path) => path.endsWith('.mjs') && !/dist\/(setup|types)\//.test(path));
  const listed = (path) => patterns.some((pattern) => globMatches(path, pattern.replace(/^\.\//, '')));
  const acting = modules.filter((path) =>
    readFileSync(join(installed, path), 'utf8')
      .split('\n')
      .some((line) => STATEMENT.test(line)),
  );
  const missing = acting.filter((path) => !listed(path) && !FOR_THEIR_USERS.includes(path));
  if (missing.length > 0) throw new Error(`sideEffects lacks ${missing.join(', ')}`);
  const stale = FOR_THEIR_USERS.filter((path) => !acting.includes(path));
  if (stale.length > 0)
    throw new Error(`no longer acts on import: ${stale.join(', ')}; take it off the list above`);
}

function globMatches(path, pattern) {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*\*\/|\*/g, (star) => (star === '*' ? '[^/]*' : '(.*/)?'));
  return new RegExp(`^${source}$`).test(path);
}
