/**
 * The cases in the order of the report. A case is cases/NAME.mjs: `title`, `about`, and `run({quick, tune})`, which gives
 * {rows, kernels, backend, unit?, peers?}; a row is {key, N?, results} of timings or {key, N?, figures} of numbers.
 *
 *   peers           needs benchmarks/peers installed
 *   processes       3 unless it times nothing
 *   nodeArguments   for its processes, by Node's major version
 */
const PROCESSES = 3;

export const CASES = [
  {name: 'forward'},
  {name: 'backward'},
  {name: 'onnxruntime', peers: true},
  {name: 'softmax', peers: true},
  {name: 'decode', peers: true},
  {name: 'noncausal'},
  {name: 'cpu'},
  {name: 'gemm'},
  {name: 'relaxed'},
  {
    name: 'training',
    peers: true,
    nodeArguments: (major) => (major < 22 ? ['--harmony-iterator-helpers'] : []),
  },
  {name: 'workers'},
  {name: 'fast_transformers', python: true},
  {name: 'memory', processes: 1},
  {name: 'drift', processes: 1},
  {name: 'steps', processes: 1, nodeArguments: () => ['--expose-gc']},
].map((one) => ({processes: PROCESSES, nodeArguments: () => [], peers: false, ...one}));

/** The cases of that names, or all. Throws on a name that is none. */
export function selectCases(names) {
  for (const name of names) {
    if (!CASES.some((one) => one.name === name)) {
      throw new Error(`unknown case '${name}'; the cases are ${CASES.map((one) => one.name).join(', ')}`);
    }
  }
  return names.length === 0 ? CASES : CASES.filter(({name}) => names.includes(name));
}
