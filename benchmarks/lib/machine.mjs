/** What the figures were measured on. */
import {cpus, loadavg, totalmem} from 'node:os';

export function machine() {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    v8: process.versions.v8,
    platform: `${process.platform} ${process.arch}`,
  };
}

export const load = () => Number(loadavg()[0].toFixed(2));

export const machineLine = ({cpu, cores, memoryGiB, node, v8, platform}) =>
  `${cpu}, ${cores} cores, ${memoryGiB} GiB; ${platform}; Node ${node} (V8 ${v8})`;
