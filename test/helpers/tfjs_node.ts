/** Whether tfjs-node can be used here: it needs Node 20 or 22, and `npm run setup:node` before. */
import {existsSync} from 'node:fs';
import {dirname, join} from 'node:path';

/**
 * Why its tests are to be skipped, or null. Under CI (the environment variable) only an unfit Node is a reason: a set-up
 * that failed makes them fail.
 */
export function whyNoTfjsNode(): string | null {
  if (Number(process.versions.node.split('.')[0]) >= 23) {
    return `tfjs-node 4.22 does not run on Node 23 and later (this is ${process.version}).`;
  }
  if (process.env.CI) {
    return null;
  }
  const root = dirname(require.resolve('@tensorflow/tfjs-node/package.json'));
  return existsSync(join(root, 'lib', 'napi-v8', 'tfjs_binding.node'))
    ? null
    : 'tfjs-node has no native library here: npm run setup:node';
}

/** describe() for tests that need tfjs-node: skipped with a warning where it cannot run, but never under CI. */
export function describeOnTfjsNode(title: string, body: () => void): void {
  const missing = whyNoTfjsNode();
  if (missing !== null) {
    console.warn(`SKIPPED: ${title}. ${missing}`);
  }
  (missing === null ? describe : describe.skip)(title, body);
}
