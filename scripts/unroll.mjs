// Repeats marked lines of the AssemblyScript kernels before they are compiled: nothing behind them unrolls loops of this
// length, and every round of a loop costs a check of the stack in V8. Between `// unroll 4` and `// end` stands one copy; a
// number with a step behind it, `16 /* + 32 */`, is 16, 48, 80 and 112 in the four.
const START = /^\s*\/\/ unroll (\d+)$/;
const END = /^\s*\/\/ end$/;
const STEPPED = /(\d+) \/\* \+ (\d+) \*\//g;

/** The text with its marked lines repeated. Fails on a mark without its counterpart; marks do not nest. */
export function unroll(text, name) {
  const lines = [];
  let copy;
  let times = 0;
  text.split('\n').forEach((line, i) => {
    const start = START.exec(line);
    if (start ? copy : END.test(line) && !copy) {
      throw new Error(`${name}, line ${i + 1}: ${start ? 'unroll within unroll' : 'end without unroll'}`);
    }
    if (start) {
      times = Number(start[1]);
      copy = [];
    } else if (copy && END.test(line)) {
      const once = copy.join('\n');
      for (let n = 0; n < times; n++) {
        lines.push(once.replace(STEPPED, (_, first, step) => String(Number(first) + n * Number(step))));
      }
      copy = undefined;
    } else {
      (copy ?? lines).push(line);
    }
  });
  if (copy) {
    throw new Error(`${name}: unroll without end`);
  }
  return lines.join('\n');
}
