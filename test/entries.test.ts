/** The entries of the package, in any order and combination: which kernels run, and two copies of tfjs. */

type Core = typeof import('@tensorflow/tfjs-core');
type Ops = typeof import('../ops');

/** Fresh modules and a fresh engine, as in a new page. */
function freshRealm(): {core: Core; ops: Ops} {
  jest.resetModules();
  for (const name of ['_tfengine', '_tfGlobals', 'kernelRegistry', 'gradRegistry']) {
    Reflect.deleteProperty(globalThis, name);
  }
  const core = require('@tensorflow/tfjs-core') as Core;
  require('@tensorflow/tfjs-backend-cpu');
  return {core, ops: require('../ops') as Ops};
}

describe('entries', () => {
  let warn: jest.SpyInstance;
  beforeEach(() => {
    warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
  });
  afterEach(() => warn.mockRestore());

  const ourWarnings = () =>
    warn.mock.calls.map(([text]) => String(text)).filter((text) => text.startsWith('tfjs-linear-attention'));

  it("operations run without kernels, and a backend's own take the place of the composed ones later", async () => {
    const {core, ops} = freshRealm();
    await core.setBackend('cpu');
    const names = ['LinearAttention', 'LinearAttentionGrad', 'Rotary'];
    const kernels = () => names.map((name) => core.getKernel(name, 'cpu'));
    expect(kernels()).toEqual([undefined, undefined, undefined]);
    const x = core.randomNormal([1, 2, 5, 4], 0, 1, 'float32', 1);
    const run = () => {
      const [q, k] = [x, x].map((y) => ops.rotary(y));
      // With a gradient to start from: those of tfjs's own operations come with tfjs-layers only.
      const attend = (v: import('@tensorflow/tfjs-core').Tensor) =>
        ops.linearAttention(q!, k!, v, {causal: true});
      return [...attend(x).dataSync(), ...core.grad(attend)(x, core.onesLike(x)).dataSync()];
    };
    const composed = run();
    const stopgaps = kernels();
    expect(stopgaps.every((kernel) => kernel !== undefined)).toBe(true);

    require('../kernels/cpu');
    kernels().forEach((kernel, i) => {
      expect(kernel).not.toBe(stopgaps[i]);
    });
    expect(core.getKernel('LinearAttentionStep', 'cpu')).toBeDefined();
    run().forEach((value, i) => {
      expect(value).toBeCloseTo(composed[i]!, 4);
    });
    expect(ourWarnings()).toEqual([]);
  });

  it('a kernel that somebody else registered stays', async () => {
    const {core} = freshRealm();
    const kernelFunc = () => [];
    core.registerKernel({kernelName: 'LinearAttention', backendName: 'cpu', kernelFunc});
    require('../kernels/cpu');
    expect(core.getKernel('LinearAttention', 'cpu').kernelFunc).toBe(kernelFunc);
  });

  it('a second copy of tfjs-core is explained, once', () => {
    freshRealm();
    // Another copy, which finds the engine of the first.
    jest.resetModules();
    require('../index');
    require('../kernels/cpu');
    const [text, ...others] = ourWarnings();
    expect(others).toEqual([]);
    expect(text).toMatch(/there are two copies of @tensorflow\/tfjs-core/);
    expect(text).toMatch(/npm ls @tensorflow\/tfjs-core.*npm dedupe/);
  });

  it('a model and an input of another copy of tfjs-layers are explained', () => {
    freshRealm();
    const foreign = require('@tensorflow/tfjs-layers') as typeof import('@tensorflow/tfjs-layers');
    jest.resetModules();
    const {generation, layers} = require('../index') as typeof import('../index');
    const input = foreign.input({shape: [null as never, 4]});
    const model = foreign.model({
      inputs: input,
      outputs: foreign.layers.dense({units: 2}).apply(input) as never,
    });
    const message = /made by another copy of @tensorflow\/tfjs-layers .*npm ls @tensorflow\/tfjs-layers/;
    expect(() => layers.linearAttention({numHeads: 1, keyDim: 2}).apply(input)).toThrow(message);
    expect(() => generation.stream(model)).toThrow(message);
  });
});
