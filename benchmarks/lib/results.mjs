/** The recorded run of one Node version: JSON with every timing, Markdown with the tables, SVG plots. */
import {existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {CASES} from './cases.mjs';
import {crossovers, judge} from './goals.mjs';
import {machineLine} from './machine.mjs';
import {plots} from './plots.mjs';
import {caseReport, goalReport} from './tables.mjs';

export class Results {
  /** Continues the run that is in the folder when it is of the same machine and Node; `--only` replaces its cases. */
  constructor(folder, machine, protocol, quick) {
    this.folder = folder;
    this.quick = quick;
    this.stem = `node${machine.node.slice(1).split('.')[0]}`;
    const file = folder === null ? null : this.path('.json');
    const old = file !== null && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
    const same =
      old !== null && JSON.stringify(old.machine) === JSON.stringify(machine) && old.protocol === protocol;
    this.data = {machine, protocol, cases: same ? old.cases : {}};
  }

  path(ending) {
    return join(this.folder, this.stem + ending);
  }

  add(name, measured) {
    this.data.cases[name] = measured;
    if (this.folder === null) return;
    mkdirSync(this.folder, {recursive: true});
    writeFileSync(this.path('.json'), `${JSON.stringify(this.data, rounded)}\n`);
    writeFileSync(this.path('.md'), this.markdown());
    for (const [plot, svg] of Object.entries(plots(this.data.cases)))
      writeFileSync(this.path(`_${plot}.svg`), svg);
  }

  goals() {
    return this.quick ? [] : judge(this.data.cases, this.data.machine.node);
  }

  markdown(names = CASES.map(({name}) => name)) {
    const {machine, protocol, cases} = this.data;
    const reports = names
      .filter((name) => cases[name])
      .map((name) => {
        const report = caseReport(name, cases[name]);
        if (name !== 'softmax') return report;
        const lines = crossovers(cases[name]).map(({name: peer, text}) => `- ${peer}: ${text}`);
        return `${report}\n\nLinear attention overtakes:\n\n${lines.join('\n')}`;
      });
    const goals = this.goals();
    const parts = [
      `# Benchmarks on Node ${machine.node}`,
      machineLine(machine),
      protocol,
      ...(goals.length === 0 ? [] : [goalReport(goals)]),
      ...reports,
    ];
    return `${parts.join('\n\n')}\n`;
  }
}

/** Five digits of a timing are enough. */
const rounded = (_, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
