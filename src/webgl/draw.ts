/**
 * Running fragment programs on tfjs's webgl backend. Every texture is packed: a texel holds the 2x2 block (r g; b a) of
 * the last two dimensions.
 *
 * Nothing that changes with a sequence's length is part of the source: sizes are uniforms, and tfjs is told to keep
 * shapes in uniforms too, so that a new length compiles nothing. Which dimensions are 1 still is part of tfjs's key of a
 * program (it may broadcast them), and a leading 1 of rank 3 is even dropped from the source under an incomplete key. So
 * results and callers' tensors are of rank 4, and between passes tensors are handed over as [n, 2, w] with n > 1, which
 * lies in memory as [.., 2n, w] does.
 */
import type * as tf from '@tensorflow/tfjs-core';
import {disposeInfo, type WebglBackend} from '../tfjs';

/** One draw call. */
export interface Pass {
  /** For whom a profile is read. */
  name: string;
  /** Textures by the name of their sampler. */
  inputs: {[sampler: string]: tf.TensorInfo};
  /** Shape of the result. */
  shape: number[];
  /** Integers that the program reads as uniforms of these names; always the same names for one program. */
  uniforms: {[name: string]: number};
  /** GLSL ES 3.00 with a main() that calls setOutput(vec4). */
  code: string;
}

/** tfjs's GPGPUProgram. */
class PackedProgram {
  readonly packedInputs = true;
  readonly packedOutput = true;
  readonly enableShapeUniforms = true;
  readonly variableNames: string[];
  readonly outputShape: number[];
  readonly customUniforms: {name: string; type: 'int'}[];
  readonly userCode: string;

  constructor(pass: Pass) {
    this.variableNames = Object.keys(pass.inputs);
    this.outputShape = pass.shape;
    this.customUniforms = Object.keys(pass.uniforms).map((name) => ({name, type: 'int'}));
    this.userCode = `// ${pass.name}\n${pass.code}`;
  }
}

/** Draws passes, and frees what was drawn on the way. */
export class Drawing {
  private readonly intermediate = new Set<tf.TensorInfo>();

  constructor(readonly backend: WebglBackend) {}

  /** The pass's result, which `end` frees unless it was kept. */
  draw(pass: Pass): tf.TensorInfo {
    const values = Object.values(pass.uniforms).map((value) => [value]);
    const inputs = Object.values(pass.inputs);
    const result = this.backend.runWebGLProgram(new PackedProgram(pass), inputs, 'float32', values, true);
    this.intermediate.add(result);
    return result;
  }

  /** Takes a result out of what `end` frees. */
  keep(info: tf.TensorInfo): tf.TensorInfo {
    this.intermediate.delete(info);
    return info;
  }

  end(): void {
    for (const info of this.intermediate) {
      disposeInfo(this.backend, info);
    }
    this.intermediate.clear();
  }
}

/** The same tensor under another shape that lies in memory alike. */
export const viewed = ({dataId, dtype}: tf.TensorInfo, shape: number[]): tf.TensorInfo => ({
  dataId,
  dtype,
  shape,
});

/** A packed tensor with an even number of rows as [n, 2, width]. */
export const asPairs = (info: tf.TensorInfo, width: number, pairs: number): tf.TensorInfo =>
  viewed(info, [pairs, 2, width]);
