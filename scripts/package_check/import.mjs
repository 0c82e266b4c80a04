import {createRequire} from 'node:module';
import '@tensorflow/tfjs-backend-cpu';
import * as tf from '@tensorflow/tfjs-core';
import * as tfLayers from '@tensorflow/tfjs-layers';
import * as tfla from 'tfjs-linear-attention';
import {check} from './behaviour.cjs';

await check(tf, tfLayers, tfla);
const required = createRequire(import.meta.url)('tfjs-linear-attention');
const imported = {...tfla};
for (const name of Object.keys(required)) {
  if (imported[name] !== required[name]) throw new Error(`import and require give two copies of ${name}`);
}
