/** The cache with spare room, as webgl and webgpu keep it, against the whole sequence at once. */
import * as tf from '@tensorflow/tfjs-core';
import {softmaxAttention} from '../../index';
import {attendToCache, capacityFor, type SoftmaxCache} from '../../src/softmax_cache';
import {describeOnBackends} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {values} from '../helpers/layers';

const [B, H, N, r, d] = [2, 2, 11, 4, 3];
const empty = (): SoftmaxCache => ({k: tf.zeros([B, H, 0, r]), v: tf.zeros([B, H, 0, d]), length: 0});

describeOnBackends('softmax cache', () => {
  const part = (x: tf.Tensor, from: number, n: number) =>
    tf.slice(x, [0, 0, from, 0], [-1, -1, n, -1]) as tf.Tensor4D;
  test.each([
    [
      'one by one, room for 4, 8, 16',
      new Array(N).fill(1),
      (n: number) => Math.max(4, 2 ** Math.ceil(Math.log2(n))),
    ],
    ['in pieces, with room', [3, 1, 4, 1, 2], (n: number) => Math.max(4, 2 ** Math.ceil(Math.log2(n)))],
    ['with room at first, then without', [2, 1, 1, 3, 4], (n: number) => (n < 5 ? 8 : n)],
    ['without room at first, then with', [2, 1, 1, 3, 1, 3], (n: number) => (n < 5 ? n : 16)],
  ])('%s: the same as the whole sequence, masked tokens included', (_, sizes, capacity) => {
    const [q, k, v] = [values([B, H, N, r], 1), values([B, H, N, r], 2), values([B, H, N, d], 3)];
    for (const rows of [null, [0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0]]) {
      const mask = rows === null ? undefined : tf.tensor2d(rows, [B, N]);
      const want = softmaxAttention(q, k, v, {causal: true, ...(mask && {mask})}).dataSync();
      let cache = empty();
      const outputs = sizes.map((n: number) => {
        const at = cache.length;
        const result = attendToCache(part(q, at, n), part(k, at, n), part(v, at, n), cache, {
          scale: 1 / Math.sqrt(r),
          capacity: capacity(at + n),
          ...(mask && {mask: tf.slice(mask, [0, at], [-1, n])}),
        });
        cache = result.cache;
        expect(cache.k.shape).toEqual([B, H, capacity(at + n), r]);
        return result.output;
      });
      expect(difference(tf.concat(outputs, 2).dataSync(), want, FLOAT32)).toBeNull();
    }
  });

  test('has no spare room here, and doubles where shapes are compiled', () => {
    expect(capacityFor(5)).toBe(5);
    expect([1, 64, 65, 200].map((n) => capacityFor(n, 'webgl'))).toEqual([64, 64, 128, 256]);
  });
});
