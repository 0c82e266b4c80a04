/** The cases that run in a browser by default: together they go through every code path of the GPU kernels. */
import type {ConformanceCase} from '../conformance/cases';

const SUBSET = new Set([
  'causal attention over 1 tokens',
  'causal attention over 2 tokens',
  'causal attention over 65 tokens',
  'causal attention over 131 tokens',
  'causal attention over 1000 tokens',
  'non-causal attention over 33 tokens',
  'non-causal attention over 131 tokens',
  'causal attention over no token returns the initial state',
  'non-causal attention over no token returns an empty output and a zero state',
  'causal attention of 3 batch rows and 4 heads',
  'causal attention with 1 features and 3 values',
  'causal attention with 3 features and 8 values',
  'causal attention with 64 features and 20 values',
  'causal attention with 20 features and 64 values',
  'non-causal attention with 3 features and 20 values',
  'causal attention with 150 features and 3 values',
  'non-causal attention with 2 features and 150 values',
  '3 queries over 70 keys',
  '33 queries over 1 keys',
  '0 queries over 5 keys',
  '5 queries over 0 keys',
  'causal attention with a mask over the start',
  'causal attention with a mask over the one row all',
  'unnormalised non-causal attention with a mask over the end',
  'causal attention with NaN under the mask',
  'non-causal attention with NaN under the mask',
  'causal attention from an initial state with a mask',
  'non-causal attention from an initial state',
  'unnormalised causal attention from an initial state',
  'causal attention with a large eps',
  'causal attention of [B,N,H,.] inputs with mask and state',
  'unnormalised non-causal attention of [B,N,H,.] inputs',
  'causal attention of slices',
  'causal attention of transposes',
  'non-causal attention of slices of [B,N,H,.]',
  '12 queries over 40 keys in [B,N,H,.] with a mask',
  'causal attention with the relu map',
  'non-causal attention with the exp map',
  'unnormalised causal attention with the squaredRelu map, mask and state',
  'unnormalised causal attention with the identity map, mask and state',
  'causal attention of queries and keys around 100',
  'non-causal attention with denominators around 1e-8',
  'causal attention with all features 0 gives 0',
]);

/** One golden case of each group, and those above. A name above that no case bears makes the suite fail. */
export const inSubset = ({id}: ConformanceCase): boolean =>
  SUBSET.has(id) || /^golden g[24] (init state norm statecot|elu plus one)/.test(id);

export const subsetNames = (): readonly string[] => [...SUBSET];

/** Values below 6e-5, the smallest normal half float, are not a matter of the kernels. */
export const fitsHalfFloats = ({id}: ConformanceCase): boolean =>
  !id.includes('denominators around 1e-8') &&
  !id.includes('around -20') &&
  !id.includes('exp attention of large');
