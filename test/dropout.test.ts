/** Seeded random numbers and dropout: repeatable, resumable, and random enough. */
import * as tf from '@tensorflow/tfjs-core';
import {layers} from '../index';
import {type DropoutStream, dropout, withDropoutSeed} from '../src/dropout';
import {mixSeed, permutation, random, seedOfName} from '../src/random';
import {describeOnBackends, expectNoLeak} from './helpers/backends';

describe('random', () => {
  test('the numbers of a seed are the same on every machine', () => {
    const rng = random(1);
    expect([rng.next(), rng.next(), rng.next()]).toEqual([3627632129, 887791903, 2104637512]);
    expect(random(1).next()).toBe(3627632129);
  });

  test('neighbouring, negative and large seeds have streams of their own', () => {
    const seeds = [0, 1, 2, 3, -1, -2, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1, 2 ** 40];
    expect(new Set(seeds.map((seed) => random(seed).next())).size).toBe(seeds.length);
    expect(mixSeed(1, 2)).not.toBe(mixSeed(2, 1));
    expect(mixSeed(1)).not.toBe(mixSeed(1, 0));
    expect(seedOfName('a')).not.toBe(seedOfName('b'));
  });

  test('mean and variance of uniform numbers, and the correlation of two streams, are as they should be', () => {
    const [a, b] = [random(5), random(6)];
    const n = 20000;
    let [sum, squares, product] = [0, 0, 0];
    for (let i = 0; i < n; i++) {
      const [x, y] = [a.uniform(), b.uniform()];
      expect(x >= 0 && x < 1).toBe(true);
      sum += x;
      squares += (x - 0.5) ** 2;
      product += (x - 0.5) * (y - 0.5);
    }
    expect(Math.abs(sum / n - 0.5)).toBeLessThan(4 * Math.sqrt(1 / 12 / n));
    expect(Math.abs(squares / n - 1 / 12)).toBeLessThan(0.003);
    expect(Math.abs(product / n)).toBeLessThan((4 / 12) * Math.sqrt(1 / n));
  });

  test('below(n) reaches every value about equally often', () => {
    const rng = random(9);
    const counts = new Array(7).fill(0);
    for (let i = 0; i < 7000; i++) {
      counts[rng.below(7)] += 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(880);
    expect(Math.max(...counts)).toBeLessThan(1120);
  });

  test('a permutation holds every number once', () => {
    const order = permutation(100, 3);
    expect([...order].sort((x, y) => x - y)).toEqual(Array.from({length: 100}, (_, i) => i));
    expect(permutation(100, 3)).toEqual(order);
    expect(permutation(100, 4)).not.toEqual(order);
    expect([...permutation(1, 3), ...permutation(0, 3)]).toEqual([0]);
  });
});

describeOnBackends('dropout', () => {
  const mask = (own: DropoutStream, rate = 0.25): number[] =>
    tf.tidy(() => Array.from(dropout(tf.ones([40, 50]), rate, own).dataSync()));

  test('drops about that part and scales the rest, so that the mean stays', () => {
    const values = mask({seed: 1, calls: 0});
    const dropped = values.filter((x) => x === 0).length / values.length;
    expect(Math.abs(dropped - 0.25)).toBeLessThan(0.04);
    expect(new Set(values)).toEqual(new Set([0, Math.fround(1 / 0.75)]));
  });

  test('a stream gives another mask at each call, and the same masks from the start', () => {
    const own = {seed: 1, calls: 0};
    const [first, second] = [mask(own), mask(own)];
    expect(second).not.toEqual(first);
    expect(mask({seed: 1, calls: 0})).toEqual(first);
    expect(mask({seed: 1, calls: 1})).toEqual(second);
    expect(mask({seed: 2, calls: 0})).not.toEqual(first);
  });

  test('inside withDropoutSeed the masks follow from its seed, outside the stream goes on', () => {
    const own = {seed: 1, calls: 0};
    const inside = () => withDropoutSeed(7, () => [mask(own), mask({seed: 99, calls: 5})]);
    const [a, b] = inside();
    expect(a).not.toEqual(b);
    expect(inside()).toEqual([a, b]);
    expect(own.calls).toBe(0);
    expect(() =>
      withDropoutSeed(7, () => {
        throw new Error('inside');
      }),
    ).toThrow('inside');
    expect(mask(own)).toEqual(mask({seed: 1, calls: 0}));
  });

  test('the gradient passes where the value passed', async () => {
    await expectNoLeak(() => {
      tf.tidy(() => {
        const f = (x: tf.Tensor) => tf.sum(dropout(x, 0.5, {seed: 3, calls: 0}));
        const values = dropout(tf.ones([10]), 0.5, {seed: 3, calls: 0});
        expect(
          Array.from(
            tf
              .grad(f)(tf.ones([10]))
              .dataSync(),
          ),
        ).toEqual(Array.from(values.dataSync()));
      });
    });
  });

  test('the layer is active in training only, saves its seed, and refuses bad rates', async () => {
    await expectNoLeak(() => {
      const layer = layers.seededDropout({rate: 0.5, seed: 4});
      const x = tf.ones([4, 8]);
      const values = (training?: boolean) =>
        tf.tidy(() => Array.from((layer.apply(x, {training}) as tf.Tensor).dataSync()));
      expect(values()).toEqual(values(false));
      expect(values().every((value) => value === 1)).toBe(true);
      expect(values(true)).not.toEqual(values(true));
      expect(layer.getConfig()).toMatchObject({rate: 0.5, seed: 4});
      const again = layers.SeededDropout.fromConfig(
        layers.SeededDropout as never,
        layer.getConfig(),
      ) as never;
      expect((again as typeof layer).seed).toBe(4);
      expect(layer.countParams()).toBe(0);
      x.dispose();
    });
    expect(() => layers.seededDropout({rate: 1})).toThrow(/expected rate to be a number in \[0, 1\); got 1/);
    expect(() => layers.seededDropout({rate: -0.1})).toThrow(/expected rate/);
    expect(() => layers.seededDropout({rate: 0.1, seeds: 1} as never)).toThrow(/unknown option 'seeds'/);
    expect(() => layers.seededDropout(undefined as never)).toThrow(/expected an options object/);
  });

  test('rate 0 copies', () => {
    const x = tf.ones([3]);
    const y = dropout(x, 0, {seed: 1, calls: 0});
    expect(y.id).not.toBe(x.id);
    tf.dispose([x, y]);
  });
});
