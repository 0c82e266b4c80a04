/**
 * Counts what a page asks of its GPU, by wrapping the APIs. Import before any context or device is made. A dispatch of
 * WebGPU counts as a draw of WebGL, a pipeline as a program.
 */
export const gpuCounts = {draws: 0, compiles: 0};

function wrap<T extends object>(prototype: T, name: keyof T & string, count: () => void): void {
  const original = prototype[name] as (...args: unknown[]) => unknown;
  Object.assign(prototype, {
    [name](this: T, ...args: unknown[]) {
      count();
      return original.apply(this, args);
    },
  });
}

for (const api of [globalThis.WebGLRenderingContext, globalThis.WebGL2RenderingContext]) {
  for (const name of ['drawElements', 'drawArrays'] as const) {
    wrap(api.prototype, name, () => {
      gpuCounts.draws++;
    });
  }
  wrap(api.prototype, 'linkProgram', () => {
    gpuCounts.compiles++;
  });
}

const WEBGPU = [
  ['GPUComputePassEncoder', 'dispatchWorkgroups', 'draws'],
  ['GPUDevice', 'createComputePipeline', 'compiles'],
  ['GPUDevice', 'createComputePipelineAsync', 'compiles'],
] as const;

for (const [api, name, counter] of WEBGPU) {
  // Absent where the page is not a secure context, and in older browsers.
  const prototype: unknown = Reflect.get(Reflect.get(globalThis, api) ?? {}, 'prototype');
  if (prototype) {
    wrap(prototype as {[method: string]: unknown}, name, () => {
      gpuCounts[counter]++;
    });
  }
}

/** Draw calls and compiled programs while f ran. f must not wait for anything else. */
export function counted(f: () => void): {draws: number; compiles: number} {
  const before = {...gpuCounts};
  f();
  return {draws: gpuCounts.draws - before.draws, compiles: gpuCounts.compiles - before.compiles};
}
