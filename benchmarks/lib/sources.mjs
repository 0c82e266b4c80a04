/** The package bundled from its sources, with what measurements may switch off. */
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** tf with tfjs-node's and the wasm backend, the package's `api`, and disableNative of src/node/native.ts. */
export async function loadSources() {
  const {outputFiles} = await build({
    stdin: {
      contents: `export * as api from './index'; export {disableNative} from './src/node/native';`,
      resolveDir: root,
      loader: 'ts',
    },
    bundle: true,
    platform: 'node',
    packages: 'external',
    format: 'cjs',
    write: false,
  });
  const require = createRequire(join(root, 'index.js'));
  require('@tensorflow/tfjs-node');
  require('@tensorflow/tfjs-backend-wasm');
  const module = {exports: {}};
  new Function('require', 'module', 'exports', outputFiles[0].text)(require, module, module.exports);
  return {tf: require('@tensorflow/tfjs-core'), ...module.exports};
}
