/** After a change of the native operations' source: writes its tag where the library reads it. */
import {writeFileSync} from 'node:fs';
import {nativeTag} from './native_operation.mjs';

writeFileSync(
  new URL('../../src/node/native_tag.ts', import.meta.url),
  `/**
 * Which build of the native operations this version calls: a hash of their source and the compiler's flags. Written by
 * scripts/node/write_tag.mjs.
 */
export const NATIVE_TAG = '${nativeTag()}';
`,
);
