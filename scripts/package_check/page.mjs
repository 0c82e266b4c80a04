/** What a page's bundle holds: esbuild makes one file of this for a browser, and it must load without Node. */
import '@tensorflow/tfjs-backend-cpu';
import * as tf from '@tensorflow/tfjs-core';
import * as tfLayers from '@tensorflow/tfjs-layers';
import * as tfla from 'tfjs-linear-attention';
import {check} from './behaviour.cjs';

globalThis.done = check(tf, tfLayers, tfla);
