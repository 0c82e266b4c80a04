/**
 * Measures this package against what users would take instead: `npm run bench [-- flags]`.
 *
 * Correctness first: a case compares the results of all sides, and times nothing when they disagree. Then, in each of three
 * fresh processes, all sides in turns, so that a ratio comes from one run. Writes JSON, Markdown and SVG to benchmarks/results.
 */
import {spawnSync} from 'node:child_process';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {CASES, selectCases} from './lib/cases.mjs';
import {load, machine, machineLine} from './lib/machine.mjs';
import {Results} from './lib/results.mjs';
import {runCase} from './lib/run_case.mjs';
import {build, installPeers} from './lib/set_up.mjs';

const HELP = `Usage: npm run bench -- [flags]

  --only NAME   this case alone; may be given several times (${CASES.map(({name}) => name).join(', ')})
  --quick       small sizes, one process, few timings; results are printed and not kept
  --node PATH   measure with another Node binary
  --out DIR     where the results go (default benchmarks/results); those of other cases are kept there
  --help        this text

Python with torch and pytorch-fast-transformers, where there is one, is named by BENCH_PYTHON (default python3).`;

const PROTOCOL =
  'Three fresh processes a case; in each, the results of all sides are compared first (relative rms 1e-5, largest error 1e-4 of the ' +
  'largest value), then every side has 5 warm-ups and 15 timings, all sides in turns; a call of less than 20 ms is made several times in a row ' +
  '(as many as take 20 ms, at most 16), which counts as one timing. A side so slow that this would take more than 5 s has ' +
  'fewer, at least 1 and 2; its number of timings stands in *italics*. One thread on all sides.';
const QUICK = 'Quick: few timings of small sizes in one process. For a look, not for a ratio.';
const BUSY = 0.5;

function flags(argv) {
  const {values} = parseArgs({
    args: argv,
    options: {
      only: {type: 'string', multiple: true, default: []},
      quick: {type: 'boolean', default: false},
      node: {type: 'string', default: process.execPath},
      out: {type: 'string'},
      help: {type: 'boolean', default: false},
    },
  });
  return {...values, cases: selectCases(values.only.flatMap((names) => names.split(',')))};
}

/** The machine as that Node sees it. */
function machineOf(execPath) {
  if (execPath === process.execPath) return machine();
  const versions = spawnSync(execPath, ['-p', 'JSON.stringify([process.version, process.versions.v8])'], {
    encoding: 'utf8',
  });
  if (versions.status !== 0) throw new Error(`--node: '${execPath}' is not a Node binary that runs here`);
  const [node, v8] = JSON.parse(versions.stdout);
  return {...machine(), node, v8};
}

async function main(argv) {
  const {cases, quick, node: execPath, out, help} = flags(argv);
  if (help) {
    console.log(HELP);
    return 0;
  }
  const where = machineOf(execPath);
  const major = Number(where.node.slice(1).split('.')[0]);
  build();
  const peers = cases.some((one) => one.peers) ? installPeers() : true;
  const folder = out ?? (quick ? null : fileURLToPath(new URL('results', import.meta.url)));
  const results = new Results(folder, where, quick ? QUICK : PROTOCOL, quick);
  console.error(`bench: ${machineLine(where)}`);
  if (!quick && load() > BUSY) {
    console.error(
      `bench: the machine is busy (load average ${load()}); timings will be too high, ratios less so.`,
    );
  }
  const failures = [];
  const skipped = [];
  for (const one of cases) {
    if (one.peers && !peers) {
      failures.push(`${one.name}: the peers could not be installed`);
      continue;
    }
    const started = performance.now();
    try {
      const onProcess = (i) =>
        console.error(`bench: ${one.name}, process ${i} of ${quick ? 1 : one.processes}`);
      const measured = await runCase(one, {execPath, major, quick, onProcess});
      if (measured.skipped) skipped.push(`${one.name}: ${measured.skipped}`);
      else results.add(one.name, measured);
    } catch (error) {
      failures.push(`${one.name}: ${error.message}`);
    }
    console.error(`bench: ${one.name} took ${((performance.now() - started) / 1000).toFixed(0)} s`);
  }
  console.log(results.markdown(cases.map(({name}) => name)));
  if (folder !== null) console.error(`bench: written to ${results.path('.md')}, .json and .svg`);
  for (const line of skipped) console.error(`bench: skipped ${line}`);
  for (const line of failures) console.error(`bench: failed: ${line}`);
  const missed = results.goals().filter(({met}) => !met);
  if (missed.length > 0)
    console.error(
      `bench: not met:\n${missed.map(({text, goal, value}) => `  ${text}: ${value}, ${goal}`).join('\n')}`,
    );
  return failures.length === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    console.error(`bench: ${error.message}`);
    process.exitCode =
      error.code?.startsWith('ERR_PARSE_ARGS') || error.message.startsWith('unknown case') ? 2 : 1;
  },
);
