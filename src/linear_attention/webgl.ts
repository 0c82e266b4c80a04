/** The kernels of tfjs's webgl backend. With WebGL 1 only, and for empty sequences, the composed form does the work. */

import type {KernelConfig, KernelFunc, TensorInfo} from '@tensorflow/tfjs-core';
import * as tf from '@tensorflow/tfjs-core';
import {isHalfFloat, type WebglBackend, webglBackend} from '../tfjs';
import {Drawing, viewed} from '../webgl/draw';
import {composedKernels, composedStep, live} from './composed_kernels';
import {backwardInHalves, forwardInHalves, type HalfAttrs} from './halves';
import {
  attrsOf,
  dimsOf,
  gradInputsOf,
  inputsOf,
  LinearAttention,
  LinearAttentionGrad,
  type LinearAttentionGradInputs,
  type LinearAttentionInputs,
} from './spec';
import {LinearAttentionStep, stepAttrsOf, stepInputsOf} from './step';
import {backward} from './webgl/backward';
import {forward, type Prepared, prepare} from './webgl/forward';
import {checkTextures} from './webgl/limits';
import {planOf} from './webgl/plan';
import {step} from './webgl/step';

/** Runs f with a drawing whose intermediate textures are freed afterwards, also when it throws. */
function drawn<T>(backend: WebglBackend, f: (drawing: Drawing) => T): T {
  const drawing = new Drawing(backend);
  try {
    return f(drawing);
  } finally {
    drawing.end();
  }
}

/** A [1] of zero, which stays on the cpu. */
const placeholder = (backend: WebglBackend): TensorInfo =>
  backend.makeTensorInfo([1], 'float32', new Float32Array(1));

/**
 * What forward leaves to backward travels in tensors of shape [1] that own the textures: tfjs makes zeros of an output's
 * shape for a gradient that does not arrive. By data id, because tfjs hands clones on.
 */
const handles = new WeakMap<object, Prepared>();

function handle(prepared: Prepared): [TensorInfo, TensorInfo] {
  const {rows, states} = prepared;
  handles.set(rows.info.dataId, prepared);
  return [viewed(rows.info, [1]), viewed(states.texture.info, [1])];
}

let warned = false;

function warnOfHalfFloats(): void {
  if (!warned && isHalfFloat()) {
    warned = true;
    console.warn(
      'tfjs-linear-attention: this device computes in half floats on webgl. Calls over a sequence hold about 3 digits; a state that is stepped through thousands of tokens loses small terms; training is refused.',
    );
  }
}

function runForward(backend: WebglBackend, inputs: LinearAttentionInputs, attrs: HalfAttrs): TensorInfo[] {
  checkTextures(backend, inputs, attrs);
  warnOfHalfFloats();
  const plan = planOf(dimsOf(inputs, attrs.dataFormat), attrs);
  if (plan === null) {
    const [output, s, z, inverse] = tf.tidy(() => forwardInHalves(live(inputs, backend), attrs));
    tf.dispose(inverse);
    return [output, s, z, placeholder(backend)];
  }
  return drawn(backend, (drawing) => {
    const prepared = prepare(drawing, inputs, plan);
    const {output, state} = forward(drawing, prepared, plan);
    const [s, z] = state ?? [placeholder(backend), placeholder(backend)];
    if (plan.means) {
      return [output, s, z, placeholder(backend)];
    }
    drawing.keep(prepared.rows.info);
    drawing.keep(prepared.states.texture.info);
    return [output, s, z, ...handle(prepared)];
  });
}

function runBackward(
  backend: WebglBackend,
  inputs: LinearAttentionGradInputs,
  attrs: HalfAttrs,
): TensorInfo[] {
  if (isHalfFloat()) {
    throw new Error(
      'linearAttention: gradients are refused on webgl in half floats: sums over a sequence of 11-bit numbers train wrongly without a sign. Train on another backend (webgpu, wasm) or device.',
    );
  }
  const plan = planOf(dimsOf(inputs, attrs.dataFormat), attrs);
  if (plan === null) {
    return tf.tidy(() => backwardInHalves(live(inputs, backend), attrs));
  }
  return drawn(backend, (drawing) => {
    const prepared = handles.get(inputs.inverse.dataId) ?? prepare(drawing, inputs, plan);
    const {dq, dk, dv, state} = backward(drawing, inputs, prepared, plan);
    return [dq, dk, dv, ...(state ?? [placeholder(backend), placeholder(backend)])];
  });
}

const [composedForward, composedBackward] = composedKernels('webgl');

const isEmpty = ({q, k, v}: LinearAttentionInputs): boolean => [q, k, v].some(({shape}) => shape.includes(0));

const forwardFunc: KernelFunc = (args) => {
  const inputs = inputsOf(args.inputs);
  const backend = webglBackend(args.backend);
  return backend === null || isEmpty(inputs)
    ? composedForward.kernelFunc(args)
    : runForward(backend, inputs, attrsOf(args.attrs));
};

const backwardFunc: KernelFunc = (args) => {
  const inputs = gradInputsOf(args.inputs);
  const backend = webglBackend(args.backend);
  return backend === null || isEmpty(inputs)
    ? composedBackward.kernelFunc(args)
    : runBackward(backend, inputs, attrsOf(args.attrs));
};

/** For tfjs's webgl backend under the name `backendName`. */
export const webglKernels: KernelConfig[] = [
  {kernelName: LinearAttention, backendName: 'webgl', kernelFunc: forwardFunc},
  {kernelName: LinearAttentionGrad, backendName: 'webgl', kernelFunc: backwardFunc},
  {
    kernelName: LinearAttentionStep,
    backendName: 'webgl',
    kernelFunc: (args) => {
      const inputs = stepInputsOf(args.inputs);
      const attrs = stepAttrsOf(args.attrs);
      const backend = webglBackend(args.backend);
      if (backend === null) {
        return composedStep(composedForward.kernelFunc, inputs, attrs, args.backend);
      }
      warnOfHalfFloats();
      return drawn(backend, (drawing) => step(drawing, inputs, attrs));
    },
  },
];
