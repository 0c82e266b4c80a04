/**
 * Running fragment programs on tfjs's webgl backend. Every texture is packed: a texel holds the 2x2 block (r g; b a) of
 * the last two dimensions.
 *
 * Nothing that changes with a sequence's length is part of the source: sizes are uniforms, and tfjs is told to keep
 * shapes in uniforms too, so that a new length compiles nothing. Which dimensions are 1 still is part of tfjs's key of a
 * program (it may broadcast them), and a leading 1 of rank 3 is even dropped from the source under an incomplete key. So
 * every shape is of rank 4, and textures between passes have no dimension that is 1 for some lengths only (grid.ts).
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {disposeInfo, textureShape, type WebglBackend} from '../tfjs';
import {type Grid, type GridTexture, gridCode, gridShape, gridUniforms, outputCode} from './grid';

/** One draw call. */
export interface Pass {
  /** For whoever reads a profile. */
  name: string;
  /** Textures between passes, by the name of their sampler. */
  grids?: {[sampler: string]: GridTexture};
  /** Callers' tensors, under rank-4 shapes, by the name of their sampler. */
  tensors?: {[sampler: string]: TensorInfo};
  /** Integers that the program reads as uniforms of these names; always the same names for one program. */
  uniforms?: {[name: string]: number};
  /** GLSL ES 3.00 with a main() that calls setOutput(vec4). */
  code: string;
}

/** tfjs's GPGPUProgram. */
class PackedProgram {
  readonly packedInputs = true;
  readonly packedOutput = true;
  readonly enableShapeUniforms = true;
  readonly variableNames: string[];
  readonly customUniforms: {name: string; type: 'int'}[];
  readonly userCode: string;
  readonly values: number[][];

  constructor(
    {name, grids = {}, tensors = {}, uniforms = {}, code}: Pass,
    readonly outputShape: number[],
    result: Grid | null,
  ) {
    const all: {[name: string]: number} = {...uniforms, ...(result ? gridUniforms('Out', result) : {})};
    for (const [sampler, grid] of Object.entries(grids)) {
      Object.assign(all, gridUniforms(sampler, grid));
    }
    const declared = Object.entries(grids).map(([sampler, grid]) => gridCode(sampler, grid));
    this.variableNames = [...Object.keys(grids), ...Object.keys(tensors)];
    this.customUniforms = Object.keys(all).map((uniform) => ({name: uniform, type: 'int'}));
    this.values = Object.values(all).map((value) => [value]);
    this.userCode = [`// ${name}`, ...declared, ...(result ? [outputCode(result)] : []), code].join('\n');
  }
}

/** Draws passes, and frees what was drawn on the way. */
export class Drawing {
  private readonly intermediate = new Set<object>();

  constructor(readonly backend: WebglBackend) {}

  /** A pass whose result has this shape, of rank 4. `end` frees the result unless it was kept. */
  draw(pass: Pass, shape: number[]): TensorInfo {
    return this.run(pass, shape, null);
  }

  /** A pass whose result is a texture for later passes. */
  drawGrid(pass: Pass, grid: Grid): GridTexture {
    const info = this.run(pass, gridShape(grid), grid);
    const lies = textureShape(this.backend, info);
    if (lies[0] !== info.shape[2] || lies[1] !== info.shape[3]) {
      throw new Error(`this version of tfjs lays a texture of shape [${info.shape}] out as [${lies}].`);
    }
    return {...grid, info};
  }

  /** Takes a result out of what `end` frees. */
  keep(info: TensorInfo): TensorInfo {
    this.intermediate.delete(info.dataId);
    return info;
  }

  end(): void {
    for (const dataId of this.intermediate) {
      disposeInfo(this.backend, {dataId, shape: [], dtype: 'float32'});
    }
    this.intermediate.clear();
  }

  private run(pass: Pass, shape: number[], grid: Grid | null): TensorInfo {
    const {grids = {}, tensors = {}} = pass;
    const program = new PackedProgram(pass, shape, grid);
    const inputs = [...Object.values(grids).map(({info}) => info), ...Object.values(tensors)];
    const result = this.backend.runWebGLProgram(program, inputs, 'float32', program.values, true);
    this.intermediate.add(result.dataId);
    return result;
  }
}

/** The same tensor under another shape that lies in memory alike. */
export const viewed = ({dataId, dtype}: TensorInfo, shape: number[]): TensorInfo => ({dataId, dtype, shape});
