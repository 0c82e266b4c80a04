/**
 * Runs a script on WebGPU in a Node process of its own, because a software driver must be named in the environment
 * before Node starts: that of the machine when it has one, else the SwiftShader that comes with Chromium.
 *
 *     node driver.mjs entry.ts [arguments]
 *
 * The script is bundled with the package's sources; tfjs and Dawn are those installed. With --check it only says whether
 * a driver can be had: exit code 0 or 1.
 */
import {spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, realpathSync, rmSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';
import {findBrowser} from '../browser/launch.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const PROBE = `
import {create, globals} from 'webgpu';
Object.assign(globalThis, globals);
const adapter = await create([]).requestAdapter();
process.exit(adapter === null ? 1 : 0);`;

const hasDriver = (env) =>
  spawnSync(process.execPath, ['--input-type=module', '-e', PROBE], {
    cwd: here,
    env,
    stdio: 'ignore',
  }).status === 0;

/** An environment in which Dawn finds a driver, and what to call afterwards. */
async function findDriver() {
  if (hasDriver(process.env)) {
    return {env: process.env, cleanup() {}};
  }
  const {path, cleanup} = await findBrowser();
  const folder = dirname(realpathSync(path));
  const icd = join(folder, 'vk_swiftshader_icd.json');
  const libraries = [folder, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  const env = {...process.env, VK_ICD_FILENAMES: icd, LD_LIBRARY_PATH: libraries};
  if (existsSync(icd) && hasDriver(env)) {
    return {env, cleanup};
  }
  cleanup();
  throw new Error(`no Vulkan driver works here, nor the software driver of ${path}.`);
}

async function run([entry, ...args]) {
  const {env, cleanup} = await findDriver();
  // Inside the repository, so that packages are found from there.
  const folder = mkdtempSync(join(here, '..', '..', '.dist-node-webgpu-'));
  try {
    const outfile = join(folder, 'script.cjs');
    await build({
      entryPoints: [entry],
      bundle: true,
      outfile,
      format: 'cjs',
      platform: 'node',
      target: 'es2022',
      packages: 'external',
      logLevel: 'error',
    });
    const child = spawn(process.execPath, [outfile, ...args], {env, stdio: 'inherit'});
    return await new Promise((resolve) => child.on('close', resolve));
  } finally {
    rmSync(folder, {recursive: true, force: true});
    cleanup();
  }
}

if (process.argv.includes('--check')) {
  try {
    (await findDriver()).cleanup();
  } catch (error) {
    console.error(String(error));
    process.exitCode = 1;
  }
} else {
  process.exitCode = (await run(process.argv.slice(2))) ?? 1;
}
