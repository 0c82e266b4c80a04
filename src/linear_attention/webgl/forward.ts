/** Forward on webgl: which passes run. */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import type {Drawing} from '../../webgl/draw';
import type {GridTexture} from '../../webgl/grid';
import type {LinearAttentionInputs} from '../spec';
import type {Plan} from './plan';
import {drawRead} from './read';
import {drawRows, partsOf} from './rows';
import {drawScan, type States} from './scan';
import {drawScores} from './scores';
import {drawStateParts} from './state_parts';
import {drawStates} from './states';

/** What backward takes over from forward; computed again where it is missing. */
export interface Prepared {
  rows: GridTexture;
  states: States;
}

export function prepare(drawing: Drawing, inputs: LinearAttentionInputs, plan: Plan): Prepared {
  const rows = drawRows(drawing, inputs, plan);
  const {k, v} = partsOf(rows, plan);
  const local = drawStates(drawing, k, v, plan.overKeys, plan);
  const {hasState, causal} = plan.attrs;
  const states = drawScan(drawing, local, plan.overKeys, plan, {
    initial: hasState ? inputs : undefined,
    onlyTotal: !causal,
  });
  return {rows, states};
}

/** phi(q).phi(k) inside chunks, and the outer part of the denominators. Null where neither is needed. */
export function weights(drawing: Drawing, {rows, states}: Prepared, plan: Plan): GridTexture | null {
  const {q, k} = partsOf(rows, plan);
  const {causal, normalize} = plan.attrs;
  return causal || normalize ? drawScores(drawing, q, k, plan.R, plan, normalize ? states : undefined) : null;
}

/** Output; and s and z where they are asked for, else null. */
export function forward(
  drawing: Drawing,
  prepared: Prepared,
  plan: Plan,
): {output: TensorInfo; state: [TensorInfo, TensorInfo] | null} {
  const {attrs, Nq, Nk, d, means, initialTokens} = plan;
  const {q, v} = partsOf(prepared.rows, plan);
  const scores = weights(drawing, prepared, plan);
  const output = drawRead(
    drawing,
    {
      name: 'output',
      rows: q,
      states: prepared.states,
      outer: 'NN',
      inside: attrs.causal && scores ? {triangle: 'lower', scores, other: v} : undefined,
      tokens: Nq,
      width: d,
      finish: attrs.normalize && scores ? {kind: 'divide', scores} : {kind: 'scale', by: attrs.scale},
    },
    plan,
  );
  const count = means && !attrs.returnMean ? Nk + initialTokens : 1;
  const state = attrs.returnState === false ? null : drawStateParts(drawing, prepared.states, count, plan);
  return {output, state};
}
