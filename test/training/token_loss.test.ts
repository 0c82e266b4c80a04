/** The token loss against its definition in double precision: values, gradients, ignored targets, errors. */
import * as tf from '@tensorflow/tfjs-core';
import {tokenLoss} from '../../training/token_loss';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';

const B = 2;
const T = 3;
const V = 5;
const LOGITS = Array.from({length: B * T * V}, (_, i) => 3 * Math.sin(1.7 * i + 0.3));
const TARGETS = [0, 4, 2, 3, 3, 1];

/** Loss and gradient of the mean over rows where `counted` is not 0, in double precision. */
function reference(logits: number[], targets: number[], counted = targets.map(() => 1)) {
  const count = counted.reduce((a, b) => a + b, 0);
  let loss = 0;
  const gradient: number[] = [];
  targets.forEach((target, row) => {
    const x = logits.slice(row * V, (row + 1) * V);
    const max = Math.max(...x);
    const sum = x.reduce((a, b) => a + Math.exp(b - max), 0);
    loss += counted[row] === 0 ? 0 : (max + Math.log(sum) - x[target]!) / count;
    x.forEach((value, v) => {
      const p = Math.exp(value - max) / sum;
      gradient.push(counted[row] === 0 ? 0 : (p - (v === target ? 1 : 0)) / count);
    });
  });
  return {loss, gradient};
}

/** Loss and dLoss/dlogits of the code under test. */
function run(logits: number[], targets: number[], options = {}) {
  return tf.tidy(() => {
    const ids = tf.tensor(targets, [B, T], 'int32');
    const {value, grad} = tf.valueAndGrad((x: tf.Tensor) => tokenLoss(ids, x, options))(
      tf.tensor(logits, [B, T, V]),
    );
    return {loss: value.dataSync()[0]!, gradient: Array.from(grad.dataSync())};
  });
}

describeOnBackends('tokenLoss', (backend) => {
  test('loss and gradient equal the definition', () => {
    const want = reference(LOGITS, TARGETS);
    const got = run(LOGITS, TARGETS);
    expect(difference([got.loss], [want.loss], FLOAT32)).toBeNull();
    expect(difference(got.gradient, want.gradient, FLOAT32)).toBeNull();
  });

  test('the gradient equals central differences', () => {
    const {gradient} = run(LOGITS, TARGETS);
    const h = 1e-4;
    const numeric = LOGITS.map((_, i) => {
      const at = (step: number) =>
        reference(
          LOGITS.map((x, j) => (j === i ? x + step : x)),
          TARGETS,
        ).loss;
      return (at(h) - at(-h)) / (2 * h);
    });
    expect(difference(gradient, numeric, FLOAT32)).toBeNull();
  });

  test('large and far apart logits neither overflow nor lose the loss', () => {
    const logits = LOGITS.map((x, i) => (i % V === 0 ? 1000 : x * 100));
    const want = reference(logits, TARGETS);
    const got = run(logits, TARGETS);
    expect(difference([got.loss], [want.loss], FLOAT32)).toBeNull();
    expect(difference(got.gradient, want.gradient, FLOAT32)).toBeNull();
  });

  test('a loss far above 88, where the probability underflows, is right', () => {
    const logits = [0, 200, 0, 0, 0, ...LOGITS.slice(V)];
    expect(difference([run(logits, TARGETS).loss], [reference(logits, TARGETS).loss], FLOAT32)).toBeNull();
  });

  test('ignored ids and masked positions count neither above nor below, even when their logits are NaN', () => {
    const counted = [1, 0, 1, 1, 0, 1];
    const want = reference(LOGITS, TARGETS, counted);
    const poisoned = LOGITS.map((x, i) => (counted[Math.floor(i / V)] === 0 ? Number.NaN : x));
    const ignored = TARGETS.map((id, row) => (counted[row] === 0 ? -100 : id));
    for (const got of [
      run(poisoned, ignored, {ignoreId: -100}),
      run(poisoned, TARGETS, {mask: [counted.slice(0, 3), counted.slice(3)]}),
      run(
        poisoned,
        TARGETS.map((id, row) => (row === 1 ? 7777 : id)),
        {ignoreId: 7777, mask: [counted.slice(0, 3), counted.slice(3)]},
      ),
    ]) {
      expect(difference([got.loss], [want.loss], FLOAT32)).toBeNull();
      expect(difference(got.gradient, want.gradient, FLOAT32)).toBeNull();
    }
  });

  test('when no target counts the loss and the gradient are 0', () => {
    const got = run(LOGITS, TARGETS, {
      mask: [
        [0, 0, 0],
        [0, 0, 0],
      ],
    });
    expect(got.loss).toBe(0);
    expect(got.gradient.every((x) => x === 0)).toBe(true);
  });

  test('of a vocabulary of one token, the loss and the gradient are 0', () => {
    const ids = tf.zeros([1, 3], 'int32');
    const logits = tf.tensor([1, -2, 3], [1, 3, 1]);
    const {value, grad} = tf.valueAndGrad((x: tf.Tensor) => tokenLoss(ids, x))(logits);
    expect([...value.dataSync(), ...grad.dataSync()].map(Math.abs)).toEqual([0, 0, 0, 0]);
    tf.dispose([ids, logits, value, grad]);
  });

  test('NaN in a counted row shows in the loss', () => {
    expect(run([Number.NaN, ...LOGITS.slice(1)], TARGETS).loss).toBeNaN();
  });

  test('second derivatives equal central differences of the first', () => {
    const direction = LOGITS.map((_, i) => Math.cos(i));
    const second = tf.tidy(() => {
      const ids = tf.tensor(TARGETS, [B, T], 'int32');
      const first = tf.grad((x: tf.Tensor) => tokenLoss(ids, x));
      const along = (x: tf.Tensor) => tf.sum(tf.mul(first(x), tf.tensor(direction, [B, T, V])));
      return Array.from(
        tf
          .grad(along)(tf.tensor(LOGITS, [B, T, V]))
          .dataSync(),
      );
    });
    const h = 1e-4;
    const plus = reference(
      LOGITS.map((x, i) => x + h * direction[i]!),
      TARGETS,
    ).gradient;
    const minus = reference(
      LOGITS.map((x, i) => x - h * direction[i]!),
      TARGETS,
    ).gradient;
    const numeric = plus.map((x, i) => (x - minus[i]!) / (2 * h));
    expect(difference(second, numeric, {rms: 1e-4, max: 1e-4})).toBeNull();
  });

  test('classes [B,V] with targets [B], arrays instead of tensors, and float targets work', () => {
    const want = reference(LOGITS, TARGETS);
    const loss = tf.tidy(() => tokenLoss(tf.tensor1d(TARGETS), tf.tensor2d(LOGITS, [B * T, V])).dataSync());
    expect(difference(loss, [want.loss], FLOAT32)).toBeNull();
    const nested = tf.tidy(() =>
      tokenLoss(
        [1, 0],
        [
          [0, 0],
          [0, 0],
        ],
      ).dataSync(),
    );
    expect(nested[0]).toBeCloseTo(Math.LN2, 6);
  });

  test('a counted target that is no id is refused, wherever it stands and however it is given', () => {
    const logits = tf.tensor3d(LOGITS, [B, T, V]);
    const before = tf.memory().numTensors;
    for (const wrong of [V, -1, 99]) {
      for (let at = 0; at < B * T; at++) {
        const ids = TARGETS.map((id, i) => (i === at ? wrong : id));
        const rows = [ids.slice(0, T), ids.slice(T)];
        const tensor = tf.tensor(ids, [B, T], 'int32');
        const said = new RegExp(`tokenLoss: expected targets to be ids from 0 to 4, .*got ${wrong}\\.`);
        const others = rows.map((row, b) => row.map((_, t) => (b * T + t === at ? 0 : 1)));
        for (const targets of [tensor, rows]) {
          expect(() => tokenLoss(targets, logits)).toThrow(said);
          const want = reference(LOGITS, TARGETS, others.flat()).loss;
          for (const options of [{ignoreId: wrong}, {mask: others}]) {
            const loss = tf.tidy(() => tokenLoss(targets, logits, options).dataSync());
            expect(difference(loss, [want], FLOAT32)).toBeNull();
          }
        }
        tensor.dispose();
      }
    }
    expect(tf.memory().numTensors).toBe(before);
    logits.dispose();
  });

  test('leaves nothing behind and keeps its inputs', async () => {
    await expectNoLeak(() => {
      run(LOGITS, TARGETS, {
        ignoreId: 3,
        mask: [
          [1, 0, 1],
          [1, 1, 1],
        ],
      });
      const targets = tf.tensor2d(TARGETS, [B, T], 'int32');
      const logits = tf.tensor3d(LOGITS, [B, T, V]);
      tokenLoss(targets, logits).dispose();
      expect(targets.isDisposed || logits.isDisposed).toBe(false);
      tf.dispose([targets, logits]);
    });
  });

  test('wrong calls are refused by name, before any work', () => {
    const targets = tf.zeros([B, T], 'int32');
    const logits = tf.zeros([B, T, V]);
    const before = tf.memory().numTensors;
    const gone = tf.tensor1d([1]);
    gone.dispose();
    const cases: [() => unknown, RegExp][] = [
      [
        () => tokenLoss(logits, targets),
        /tokenLoss: expected logits of shape .*got targets \[2,3,5\], logits \[2,3\]/,
      ],
      [() => tokenLoss(targets, targets), /got targets \[2,3\], logits \[2,3\]/],
      [() => tokenLoss(gone, logits), /expected targets to be a live tensor/],
      [() => tokenLoss(targets, 'x' as never), /expected logits to be a tensor or nested arrays/],
      [() => tokenLoss(targets, logits, {ignored: 1} as never), /unknown option 'ignored'/],
      [() => tokenLoss(targets, logits, {ignoreId: 0.5}), /expected ignoreId to be a whole number/],
      [() => tokenLoss(targets, logits, {mask: [1, 1]}), /expected mask to have the targets' shape \[2,3\]/],
    ];
    for (const [call, message] of cases) {
      expect(call).toThrow(message);
    }
    expect(tf.memory().numTensors).toBe(before);
    tf.dispose([targets, logits]);
    expect(backend).toBe(tf.getBackend());
  });
});
