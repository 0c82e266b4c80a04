/**
 * Interleaved timing. Every round runs each contender once, so that whatever else the machine does falls on all of them.
 *
 * A contender is {name, run, work?, calls?, time?, before?, after?, expect?, tolerance?, tuned?}:
 *   run      does the whole work, read-back included, and returns the result as a typed array, or a list of them; may be
 *            async
 *   work     is timed in place of run: the same without read-back, where an operation's own rate is asked for
 *   calls    runs per timing; the figure is per run. Where it is absent: see TURN_MS
 *   time     runs once and gives the milliseconds itself, for work in another process
 *   before, after   around each timing and not part of it (patches on and off)
 *   expect   typed array that the result must equal; the first contender's result where it is absent; null: unchecked
 */
import {assertAgree} from './agree.mjs';
import {median} from './statistics.mjs';

/** A contender whose 20 runs would take longer gets fewer: as many as fit, at least 1 warm-up and 2 timings. */
const BUDGET_MS = 5000;
const FULL = {warmUps: 5, timings: 15, budget: BUDGET_MS};
const QUICK = {warmUps: 1, timings: 3, budget: 300};

/**
 * A short run's time is mostly that of refilling the caches after the other contenders: it has its turn several times in a
 * row, as many as take this long.
 */
const TURN_MS = 20;
const MOST_CALLS = 16;

const within = (least, value, most) => Math.max(least, Math.min(most, Math.floor(value)));

async function once({run, work = run, calls = 1, time, before, after}) {
  if (time !== undefined) {
    let sum = 0;
    for (let i = 0; i < calls; i++) sum += await time();
    return sum / calls;
  }
  before?.();
  try {
    const started = performance.now();
    for (let i = 0; i < calls; i++) {
      const result = work();
      if (result instanceof Promise) await result;
    }
    return (performance.now() - started) / calls;
  } finally {
    after?.();
  }
}

async function resultOf({run, before, after}) {
  before?.();
  try {
    return joined(await run());
  } finally {
    after?.();
  }
}

/** The values of a list of typed arrays one after the other. */
function joined(result) {
  if (!Array.isArray(result)) return result;
  const all = new Float32Array(result.reduce((sum, {length}) => sum + length, 0));
  let at = 0;
  for (const array of result) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

/** Compares, warms up and times. Returns {name: {timings [ms], error, tuned}}. */
export async function compare(what, contenders, {quick = false} = {}) {
  const {warmUps, timings, budget} = quick ? QUICK : FULL;
  let first = null;
  const plans = [];
  for (const contender of contenders) {
    let error = null;
    // What is unchecked here was checked by its case.
    if (contender.expect !== null) {
      const result = await resultOf(contender);
      first ??= result;
      const want = contender.expect ?? first;
      if (want !== result) {
        error = assertAgree(`${what}, ${contender.name}`, result, want, contender.tolerance);
      }
    }
    let time = await once(contender);
    // The first call of all may have waited for compilers.
    for (let i = 0; i < 2 && time < TURN_MS; i++) time = Math.min(time, await once(contender));
    const {calls = within(1, TURN_MS / time, MOST_CALLS)} = contender;
    const fit = budget / Math.max(time * calls, 1e-3);
    plans.push({
      contender: {...contender, calls},
      error,
      warmUps: within(1, fit / 4, warmUps) - 1,
      timings: within(2, (fit * 3) / 4, timings),
    });
  }
  for (let round = 0; round < warmUps; round++) {
    for (const plan of plans) if (round < plan.warmUps) await once(plan.contender);
  }
  const times = plans.map(() => []);
  for (let round = 0; round < timings; round++) {
    for (const [i, plan] of plans.entries()) {
      // A slow contender's few timings are spread over the rounds.
      const due = Math.floor(((round + 1) * plan.timings) / timings);
      if (due > times[i].length) times[i].push(await once(plan.contender));
    }
  }
  return Object.fromEntries(
    plans.map(({contender, error}, i) => [
      contender.name,
      {timings: times[i], error: error?.max ?? null, tuned: contender.tuned},
    ]),
  );
}

/** The fastest of several ways, by the median of a few runs each. */
export async function fastest(candidates, runs = 2) {
  let best = null;
  for (const candidate of candidates) {
    const times = [];
    await resultOf(candidate);
    for (let i = 0; i < runs; i++) times.push(await once(candidate));
    const time = median(times);
    if (best === null || time < best.time) best = {candidate, time};
  }
  return best.candidate;
}
