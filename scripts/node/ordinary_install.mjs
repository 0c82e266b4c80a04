/** The way tfjs-node's authors meant: its own install script, which downloads libtensorflow. */
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {command} from './command.mjs';
import {works} from './tfjs_node.mjs';

/** How long the download's host may take to answer. */
const PATIENCE_MS = 5000;

/** Runs it where its host answers. True when tfjs-node works afterwards. */
export async function installOrdinarily(tfjsNode) {
  if (!(await answers(downloadAddress(tfjsNode)))) {
    return false;
  }
  try {
    command('npm', ['rebuild', '@tensorflow/tfjs-node', '--ignore-scripts=false'], {timeout: 600_000});
  } catch {
    return false;
  }
  return works(tfjsNode);
}

/** Where the install script would download from, with the variables that it reads. */
function downloadAddress({root}) {
  const {LIBTENSORFLOW_VERSION} = createRequire(import.meta.url)(join(root, 'scripts', 'deps-constants.js'));
  const host =
    process.env.TFJS_NODE_CDN_STORAGE ?? process.env.CDN_STORAGE ?? 'https://storage.googleapis.com/';
  const base = process.env.TFJS_NODE_BASE_URI ?? `${host}tensorflow/libtensorflow/libtensorflow-`;
  return `${base}cpu-linux-x86_64-${LIBTENSORFLOW_VERSION}.tar.gz`;
}

async function answers(address) {
  try {
    const {ok} = await fetch(address, {method: 'HEAD', signal: AbortSignal.timeout(PATIENCE_MS)});
    return ok;
  } catch {
    return false;
  }
}
