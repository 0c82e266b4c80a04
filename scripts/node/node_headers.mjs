/** The folder of node_api.h. */
import {existsSync, mkdirSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {cacheFolder, putInPlace} from './cache.mjs';
import {command} from './command.mjs';

export function nodeHeaders() {
  const places = [join(dirname(process.execPath), '..', 'include', 'node'), '/usr/include/node'];
  return places.find((folder) => existsSync(join(folder, 'node_api.h'))) ?? headersFromNpm();
}

/** Node's package of these headers, kept in the cache. */
function headersFromNpm() {
  const folder = join(cacheFolder(), 'node-api-headers');
  if (!existsSync(folder)) {
    putInPlace(folder, (temporary) => {
      mkdirSync(join(temporary, 'node_modules'));
      command('npm', [
        'install',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--prefix',
        temporary,
        'node-api-headers@1',
      ]);
      return join(temporary, 'node_modules', 'node-api-headers');
    });
  }
  return join(folder, 'include');
}
