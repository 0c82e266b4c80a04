/** Counts what a page asks of WebGL, by wrapping the API. Import before any context is made. */
export const glCounts = {draws: 0, compiles: 0};

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
      glCounts.draws++;
    });
  }
  wrap(api.prototype, 'linkProgram', () => {
    glCounts.compiles++;
  });
}

/** Draw calls and compiled programs while f ran. f must not wait for anything else. */
export function counted(f: () => void): {draws: number; compiles: number} {
  const before = {...glCounts};
  f();
  return {draws: glCounts.draws - before.draws, compiles: glCounts.compiles - before.compiles};
}
