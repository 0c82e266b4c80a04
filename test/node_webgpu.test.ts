/**
 * tfjs's webgpu backend in Node: the kernels on the browsers' subset of the conformance list, training, and errors of the
 * device. On a machine without a GPU a software driver does it; where that cannot be had either, the suite is skipped
 * with a warning, and fails under CI.
 */
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';
import {inSubset} from './browser/subset';
import {CASES} from './conformance/cases';
import {goldenList} from './conformance/golden_case';
import {buildIfStale, run} from './helpers/dist';
import {goldenCases} from './helpers/golden';

const folder = join(__dirname, 'node_webgpu');
const driver = join(folder, 'driver.mjs');

function whyNot(): string | null {
  const {status, stderr} = spawnSync(process.execPath, [driver, '--check'], {encoding: 'utf8'});
  return status === 0 ? null : stderr.trim();
}

const ids = [...CASES, ...goldenList((file) => goldenCases(`${file}.json`))]
  .filter(inSubset)
  .map(({id}) => id);

interface Trained {
  losses: number[];
  ids: number[];
  leaked: number;
}

const missing = process.env.CI ? null : whyNot();
if (missing !== null) {
  console.warn(`SKIPPED: WebGPU in Node. ${missing}`);
}

(missing === null ? describe : describe.skip)('useNodeWebGPU', () => {
  const results = new Map<string, unknown>();
  let code: number | null = null;
  let stderr = '';

  beforeAll(async () => {
    const ended = await run([driver, join(folder, 'entry.ts')]);
    ({code, stderr} = ended);
    for (const line of ended.stdout.split('\n').filter((text) => text.startsWith('{"id"'))) {
      const {id, result} = JSON.parse(line);
      results.set(id, result);
    }
  }, 600000);

  test('makes webgpu the active backend, names the device, and gives the same one when called again', () => {
    expect(results.get('device')).toMatchObject({
      backend: 'webgpu',
      vendor: expect.stringMatching(/./),
      description: expect.stringMatching(/./),
      isSoftware: expect.any(Boolean),
      same: true,
    });
  });

  test.each(ids)('%s', (id) => {
    expect(results.get(id)).toEqual([]);
  });

  test('trains and generates as the cpu backend does, without a leak or an error of the device', () => {
    const [webgpu, cpu] = ['webgpu', 'cpu'].map((name) => results.get(`training on ${name}`) as Trained);
    expect(webgpu.losses).toHaveLength(4);
    for (const [i, loss] of webgpu.losses.entries()) {
      expect(loss).toBeCloseTo(cpu.losses[i], 5);
    }
    expect(webgpu.losses[3]).toBeLessThan(webgpu.losses[0]);
    expect(webgpu.ids).toEqual(cpu.ids);
    expect([webgpu.leaked, cpu.leaked]).toEqual([0, 0]);
    expect(results.get('errors while training')).toEqual([]);
  });

  test('a synchronous read is an error that says how to read', () => {
    expect(results.get('synchronous read')).toMatch(/dataSync.* cannot read .*await tensor\.data\(\)/);
    expect(results.get('asynchronous read')).toBe(40);
  });

  test('errors that the device reports on its own reach onError', () => {
    expect(results.get('error of the device')).toEqual([
      expect.stringMatching(/^the WebGPU device reports: .*1125899906842624/s),
    ]);
  });

  test('dispose removes the backend, and the process ends by itself', () => {
    expect(results.get('backend after dispose')).toBeNull();
    expect(results.get('done')).toBe(true);
    expect([code, stderr.includes('Error')]).toEqual([0, false]);
  });
});

describe('useNodeWebGPU called wrongly', () => {
  beforeAll(buildIfStale, 120000);

  // In a process of its own: this one must keep its globals.
  const messageOf = async (options: string, env: Record<string, string> = {}): Promise<string> => {
    const script = `
      const {useNodeWebGPU} = require('./dist/node_webgpu.cjs');
      useNodeWebGPU(${options}).then(() => console.log('ok'), (error) => console.log(error.message));`;
    return (await run(['-e', script], env)).stdout.trim();
  };

  test.each([
    ['{gpu: 1}', /^useNodeWebGPU: unknown option 'gpu'/],
    ['{adapter: 3}', /^useNodeWebGPU: expected adapter to be the name of a GPU; got 3/],
    [
      "{powerPreference: 'high'}",
      /^useNodeWebGPU: expected powerPreference to be one of 'high-performance', 'low-power'/,
    ],
    ["{dawn: 'backend=vulkan'}", /^useNodeWebGPU: expected dawn to be an array of strings/],
    ['{onError: true}', /^useNodeWebGPU: expected onError to be a function/],
    [
      "{adapter: 'no such GPU'}",
      /^useNodeWebGPU: found no GPU driver that WebGPU can use\. .*VK_ICD_FILENAMES.*LD_LIBRARY_PATH/,
    ],
  ])('%s is an error that says what is wrong', async (options, message) => {
    expect(await messageOf(options)).toMatch(message);
  });
});
