/** Which measured numbers are drawn. */
import {summarise} from './statistics.mjs';
import {logPlot} from './svg.mjs';

const timings = (measured, name, from, keep = () => true) => ({
  name,
  points: (measured?.rows ?? [])
    .filter((row) => row.N !== undefined && keep(row) && row.results?.[from] !== undefined)
    .map((row) => [row.N, summarise(row.results[from].processes).median]),
});

const figures = (measured, name) => ({
  name,
  points: (measured?.rows ?? [])
    .filter(({figures: all}) => all[name] !== undefined)
    .map((row) => [row.N, row.figures[name]]),
});

const wide = ({r}) => r === 64;
const step = ({key}) => key !== 'linear';

/** {file name: SVG} of the plots whose cases were measured. */
export function plots({forward, onnxruntime, softmax, decode, memory}) {
  const all = {};
  if (forward && softmax) {
    all['time_by_length'] = logPlot({
      title: 'Causal attention, forward, one thread (B = 1, H = 8, r = d = 64)',
      x: 'length N',
      y: 'milliseconds',
      series: [
        timings(forward, 'ours, linear', 'ours', wide),
        timings(forward, 'stock tfjs, linear in chunks', 'stock tfjs, chunked', wide),
        timings(onnxruntime, 'onnxruntime-web, linear', 'onnxruntime-web, normalised', wide),
        timings(onnxruntime, 'onnxruntime-node, linear', 'onnxruntime-node, normalised', wide),
        timings(softmax, 'onnxruntime-web, softmax', 'onnxruntime-web, softmax'),
        timings(softmax, 'onnxruntime-node, softmax', 'onnxruntime-node, softmax'),
        timings(softmax, 'stock tfjs, softmax', 'stock tfjs, softmax'),
        timings(softmax, 'stock tfjs, softmax by head', 'stock tfjs, softmax by head'),
      ],
    });
  }
  if (decode) {
    all['time_by_position'] = logPlot({
      title: 'One decoding step (B = 1, H = 8, r = d = 64)',
      x: 'position: tokens seen before',
      y: 'milliseconds',
      series: [
        timings(decode, 'ours, linear', 'ours', step),
        ...['stock tfjs', 'onnxruntime-web', 'onnxruntime-node'].map((name) =>
          timings(decode, `${name}, softmax`, `${name}, softmax over a cache`, step),
        ),
      ],
    });
  }
  if (memory) {
    all['memory_by_length'] = logPlot({
      title: 'Peak memory of forward and backward (B = 1, H = 8, r = d = 64)',
      x: 'length N',
      y: 'MiB',
      series: ['ours', 'stock tfjs, chunked', 'stock tfjs, softmax'].map((name) => figures(memory, name)),
    });
  }
  return all;
}
