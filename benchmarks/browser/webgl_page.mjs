/** The page of webgl.mjs: our kernels beside stock compositions on one WebGL context. */
import '../../test/browser/gpu_counts.ts';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-webgl';
import '../../index.ts';
import {compare, decode} from './beside_stock.mjs';

async function start() {
  await tf.setBackend('webgl');
  await tf.ready();
  const gl = document.createElement('canvas').getContext('webgl2');
  const info = gl.getExtension('WEBGL_debug_renderer_info');
  return {
    renderer: String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)),
    version: tf.version_core,
    maxTextureSize: tf.env().getNumber('WEBGL_MAX_TEXTURE_SIZE'),
  };
}

Object.assign(globalThis, {start, compare, decode});
