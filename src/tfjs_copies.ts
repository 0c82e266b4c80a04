/**
 * Two copies of tfjs in one application. All copies of tfjs-core share one engine, with its tensors and backends, through a
 * global; but each has classes of its own, and a list of its own of the layers that a saved model may name. So models fail
 * to load ("Unknown layer: LinearAttention") although everything was imported. What can be seen of it is explained here.
 */
import * as tf from '@tensorflow/tfjs-core';

/** What to do about two copies of a package. */
export const howToKeepOne = (name: string): string =>
  `Keep one copy: 'npm ls ${name}' shows who brings which; give all the same version and run 'npm dedupe'. ` +
  'A bundler may need to be told (vite: resolve.dedupe; webpack, esbuild: an alias), and a page that loads tfjs by a ' +
  'script tag must not hold it in a bundle too.';

/** Null where the engine is of this package's copy of tfjs-core; else an explanation that names both. */
export function twoCopiesOfCore(): string | null {
  const ours = tf.Environment?.prototype;
  const environment = tf.env();
  if (ours === undefined || Object.getPrototypeOf(environment) === ours) {
    return null;
  }
  const [mine, other] = [new tf.Environment({}), environment].map(placeOf);
  return (
    'there are two copies of @tensorflow/tfjs-core. ' +
    `This package uses the one of version ${tf.version_core}${mine === null ? '' : `, ${mine}`}; the engine with the ` +
    `tensors and backends is of another${other === null ? '' : `, ${other}`}. ` +
    "Layers that one of them knows are unknown to the other ('Unknown layer: LinearAttention' when a model is loaded). " +
    howToKeepOne('@tensorflow/tfjs-core')
  );
}

let warned = false;

/** Says it once, where it is seen. */
export function warnOfTwoCopies(): void {
  const text = warned ? null : twoCopiesOfCore();
  if (text !== null) {
    warned = true;
    console.warn(`tfjs-linear-attention: ${text}`);
  }
}

/** The file or address that a copy's code is in: named in the stack of an error that it throws. Null where that hides it. */
function placeOf(environment: tf.Environment): string | null {
  try {
    environment.get('no flag has this name');
    return null;
  } catch (error) {
    const frame = /(?:\(|at |@)((?:[a-z]+:\/\/|\/|[A-Z]:\\)[^()\s]*?):\d+:\d+\)?$/m;
    const place = frame.exec((error as Error).stack ?? '')?.[1];
    return place?.replace(/^file:\/\//, '') ?? null;
  }
}
