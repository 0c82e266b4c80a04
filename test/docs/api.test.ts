/** docs/api.md is the public API as it is built, so that a change of it shows in review. */
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';
import {root} from '../helpers/dist';

it('the report of the public API is what the sources say', () => {
  const {status, stderr} = spawnSync(process.execPath, [join(root, 'scripts', 'api_report.mjs'), '--check'], {
    encoding: 'utf8',
  });
  expect({status, stderr: status === 0 ? '' : stderr}).toEqual({status: 0, stderr: ''});
}, 120000);
