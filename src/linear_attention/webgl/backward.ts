/** Backward on webgl: which passes run. The same generators as forward's. */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import type {Drawing} from '../../webgl/draw';
import type {GridTexture} from '../../webgl/grid';
import type {LinearAttentionGradInputs} from '../spec';
import {type Prepared, weights} from './forward';
import {drawNumeratorGradient} from './numerator_gradient';
import type {Plan} from './plan';
import {drawRead, type Reading} from './read';
import {partsOf, type Rows} from './rows';
import {drawScan} from './scan';
import {drawScores} from './scores';
import {drawStateParts} from './state_parts';
import {drawStates} from './states';

export interface Gradients {
  dq: TensorInfo;
  dk: TensorInfo;
  dv: TensorInfo;
  state: [TensorInfo, TensorInfo] | null;
}

export function backward(
  drawing: Drawing,
  inputs: LinearAttentionGradInputs,
  prepared: Prepared,
  plan: Plan,
): Gradients {
  const {attrs, Nq, Nk, r, d, D} = plan;
  const {causal, normalize, hasState, hasMask} = attrs;
  const {q, k, v} = partsOf(prepared.rows, plan);
  const scores = weights(drawing, prepared, plan);
  const dN = drawNumeratorGradient(drawing, inputs.dOutput, inputs.output, normalize ? scores : null, plan);
  const local = drawStates(drawing, q, dN, plan.overQueries, plan);
  const stateGradients = drawScan(drawing, local, plan.overQueries, plan, {
    reverse: true,
    initial: attrs.returnState === false ? undefined : {s: inputs.dS, z: inputs.dZ},
    onlyTotal: !causal,
  });
  const dScores = causal ? drawScores(drawing, dN, v, D, plan) : null;
  const mask = hasMask ? inputs.mask : undefined;
  const inside = (
    triangle: 'lower' | 'upper',
    weights: GridTexture | null,
    other: Rows,
  ): Reading['inside'] => (causal && weights ? {triangle, scores: weights, other} : undefined);
  const dq = drawRead(
    drawing,
    {
      name: 'gradient of queries',
      rows: dN,
      states: prepared.states,
      outer: 'NT',
      inside: inside('lower', dScores, k),
      tokens: Nq,
      width: r,
      finish: {kind: 'chain', phi: q},
    },
    plan,
  );
  const dk = drawRead(
    drawing,
    {
      name: 'gradient of keys',
      rows: v,
      states: stateGradients,
      outer: 'NT',
      inside: inside('upper', dScores, q),
      tokens: Nk,
      width: r,
      finish: {kind: 'chain', phi: k},
      mask,
    },
    plan,
  );
  const dv = drawRead(
    drawing,
    {
      name: 'gradient of values',
      rows: k,
      states: stateGradients,
      outer: 'NN',
      inside: inside('upper', scores, dN),
      tokens: Nk,
      width: d,
      finish: {kind: 'scale', by: 1},
      mask,
    },
    plan,
  );
  return {dq, dk, dv, state: hasState ? drawStateParts(drawing, stateGradients, 1, plan) : null};
}
