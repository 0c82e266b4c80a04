import {createRequire} from 'node:module';
import '@tensorflow/tfjs-backend-cpu';
import * as tf from '@tensorflow/tfjs-core';
import * as tfLayers from '@tensorflow/tfjs-layers';
import * as tfla from 'tfjs-linear-attention';
import {useNodeWebGPU} from 'tfjs-linear-attention/node-webgpu';
import {linearAttention} from 'tfjs-linear-attention/ops';
import {check} from './behaviour.cjs';

await check(tf, tfLayers, tfla);
if (linearAttention !== tfla.linearAttention) throw new Error('the root and ops have two copies');
const required = createRequire(import.meta.url)('tfjs-linear-attention');
const imported = {...tfla};
for (const name of Object.keys(required)) {
  if (imported[name] !== required[name]) throw new Error(`import and require give two copies of ${name}`);
}
const own = createRequire(import.meta.url)('tfjs-linear-attention/node-webgpu').useNodeWebGPU;
if (useNodeWebGPU !== own) throw new Error('import and require give two copies of useNodeWebGPU');
// The package webgpu is not installed here, or there is no driver: either is an error that says so.
const problem = await useNodeWebGPU({adapter: 'none of this name'}).catch((error) => String(error.message));
if (!/^useNodeWebGPU: /.test(problem)) throw new Error(`expected an error of useNodeWebGPU; got ${problem}`);
