/** What the package promises to reach, and whether the measured cases do. */
import {median, ratioOf} from './statistics.mjs';
import {digits} from './tables.mjs';

/** On Node 24 and later V8's register allocation is another; this part of each ratio is asked for there. */
const NEWER_V8 = 0.85;
const STOCK = 'stock tfjs, chunked';
const YARDSTICK = 'tfjs 1024 NN (XNNPACK)';

const spread = (values) => ({median: median(values), min: Math.min(...values), max: Math.max(...values)});

/** At least `least` times longer than ours. */
const slower = (text, name, key, other, least, ours = 'ours') => ({
  text: `${text}, ${key}`,
  name,
  key,
  least,
  measure: ({results}) => results[other] && ratioOf(results[ours], results[other]),
});

/** Rate of a row of `gemm` over the yardstick's. */
const rate = (text, key, least) => ({
  text: `${text}, against tfjs's own product of 1024 (XNNPACK)`,
  name: 'gemm',
  key,
  least,
  measure: ({results}) => results[YARDSTICK] && ratioOf(results['ours'], results[YARDSTICK]),
});

const GOALS = [
  ...[1024, 4096].map((N) =>
    slower('stock tfjs wasm composition, forward', 'forward', `r=64 N=${N}`, STOCK, 18),
  ),
  ...[1024, 4096].map((N) =>
    slower('stock tfjs wasm composition, forward and backward', 'backward', `r=64 N=${N}`, STOCK, 15),
  ),
  ...[1024, 4096].map((N) => rate('rate of causal attention', `attention N=${N}`, 0.95)),
  ...['NN', 'NT', 'TN'].map((form) => rate(`our product ${form}`, `1024 ${form}`, 1.35)),
  ...Object.entries({128: 2.5, 1024: 2.4, 4096: 2.6}).map(([N, least]) =>
    slower('onnxruntime-web, raw', 'onnxruntime', `r=64 N=${N}`, 'onnxruntime-web, raw', least),
  ),
  ...[1024, 4096].map((N) => ({
    ...slower('SIMD, by relaxed SIMD', 'relaxed', `N=${N}`, 'SIMD', 1.15, 'relaxed SIMD'),
    everywhere: true,
  })),
  slower('onnxruntime-web, decoding step', 'decode', 'linear', 'onnxruntime-web, linear step, raw', 8),
  ...Object.entries({128: 1.6, 1024: 1.6, 4096: 2}).map(([N, least]) =>
    slower(
      'onnxruntime-node, normalised',
      'onnxruntime',
      `r=64 N=${N}`,
      'onnxruntime-node, normalised',
      least,
    ),
  ),
  ...[1024, 4096].map((N) => slower('stock tfjs cpu composition', 'cpu', `N=${N}`, STOCK, 80)),
  ...[128, 1024, 4096].map((N) =>
    slower('fast-transformers (pip), forward', 'fast_transformers', `N=${N}`, 'fast-transformers', 3),
  ),
  slower(
    'fast-transformers (pip), forward and backward',
    'fast_transformers',
    'N=4096 with gradients',
    'fast-transformers',
    2,
  ),
  ...Object.entries({'T=128 x 16': [1.7, 10], 'T=512 x 4': [3, 16]}).flatMap(([key, [jax, stock]]) => [
    slower('training step, jax-js', 'training', key, 'jax-js, softmax', jax, 'ours, linear'),
    slower('training step, stock tfjs wasm', 'training', key, 'stock tfjs, softmax', stock, 'ours, linear'),
  ]),
  ...[1024, 4096].map((N) => ({
    text: `backward over forward, r=64 N=${N}`,
    name: 'backward',
    key: `r=64 N=${N}`,
    most: 3.2,
    measure: ({results}) => {
      const [both, forward] = [
        results['ours, forward and backward alone'],
        results['ours, forward alone'],
      ].map(({processes}) => processes);
      return spread(both.map((timings, i) => median(timings) / median(forward[i]) - 1));
    },
  })),
  ...['wasm', 'cpu'].map((backend) => ({
    text: `error of the state after 65536 tokens, ${backend}`,
    name: 'drift',
    key: `${backend} N=65536`,
    most: 3e-6,
    measure: ({figures}) => spread([Math.max(figures['s, one call'], figures['z, one call'])]),
  })),
  ...['wasm', 'cpu'].map((backend) => ({
    text: `growth over 10,000 steps (tensors and bytes), ${backend}`,
    name: 'steps',
    key: `${backend}, 10000 steps`,
    most: 0,
    measure: ({figures}) =>
      spread([figures['tensors'] + figures['tensor bytes'] + figures['linear memory, bytes']]),
  })),
];

/** {text, goal, value, met} of every goal whose case was measured. */
export function judge(cases, nodeVersion) {
  const newer = Number(nodeVersion.slice(1).split('.')[0]) >= 24;
  return GOALS.flatMap(({text, name, key, least, most, measure, everywhere}) => {
    const row = cases[name]?.rows.find((one) => one.key === key);
    const value = row && measure(row);
    if (value === undefined) return [];
    const bound = least === undefined ? most : newer && !everywhere ? least * NEWER_V8 : least;
    const shown =
      value.min === value.max
        ? digits(value.median)
        : `${digits(value.median)} (${digits(value.min)} to ${digits(value.max)})`;
    return [
      {
        text,
        goal: `${least === undefined ? 'at most' : 'at least'} ${digits(bound)}`,
        value: shown,
        met: least === undefined ? value.median <= bound : value.median >= bound,
      },
    ];
  });
}

/** Length at which linear attention overtakes a softmax peer, by straight lines between the points of a log-log plot. */
export function crossovers({rows}) {
  const names = [...new Set(rows.flatMap(({results}) => Object.keys(results)))].slice(1);
  return names.map((name) => {
    const points = rows
      .filter(({results}) => results[name] !== undefined)
      .map(({N, results}) => ({
        N,
        ratio: ratioOf(Object.values(results)[0], results[name]).median,
      }));
    const at = points.findIndex(({ratio}) => ratio >= 1);
    if (at < 0) return {name, text: `not below N = ${points.at(-1).N}`};
    if (at === 0) return {name, text: `below N = ${points[0].N}`};
    const [a, b] = [points[at - 1], points[at]];
    const part = Math.log(1 / a.ratio) / Math.log(b.ratio / a.ratio);
    return {name, text: `N = ${Math.round(a.N * (b.N / a.N) ** part)}`};
  });
}
