/** The folder that `tfjs-linear-attention train` writes, by its address. */
import * as tf from '@tensorflow/tfjs-core';
import type {ModelFiles} from './protocol';

export async function fetchModel(folder: string): Promise<ModelFiles> {
  const [artifacts, tokenizer] = await Promise.all([
    load(tf.io.http(new URL('model.json', folder).href)),
    fetch(new URL('tokenizer.json', folder)).then((response) => {
      if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
      return response.json();
    }),
  ]);
  return {artifacts, tokenizer};
}

/** A handler may be one that only saves; tfjs's over HTTP loads. */
function load(handler: tf.io.IOHandler): Promise<tf.io.ModelArtifacts> {
  if (handler.load === undefined) throw new Error('tfjs cannot load over HTTP here');
  return handler.load();
}
