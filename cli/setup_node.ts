/** `setup-node`: what makes tfjs-node fast, built on the user's machine. */
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';
import type {Flags} from './args';
import {parseFlags} from './args';
import type {Command} from './command';
import {EXIT} from './errors';

/** From dist/cli.cjs. */
const SCRIPT = join(__dirname, 'setup', 'setup_node.mjs');

const FLAGS = {} as const satisfies Flags;

export const setupNodeCommand: Command = {
  name: 'setup-node',
  summary:
    "makes @tensorflow/tfjs-node work where its download is blocked, and builds this package's operations for it",
  flags: FLAGS,
  examples: ['npm install --ignore-scripts @tensorflow/tfjs-node && tfjs-linear-attention setup-node'],
  notes: `Linux on x64, Node 20 or 22. It needs g++; python3 with pip too where libtensorflow cannot be downloaded from its own host.
What it makes stays in $XDG_CACHE_HOME/tfjs-linear-attention, else ~/.cache/tfjs-linear-attention. It is silent when all is well,
and does nothing when all is done. Without it, tfjs-node runs linear attention in TensorFlow's own operations.`,
  async run(argv) {
    parseFlags('setup-node', FLAGS, argv);
    const {status} = spawnSync(process.execPath, [SCRIPT], {stdio: ['ignore', 'inherit', 'inherit']});
    return status === 0 ? EXIT.ok : EXIT.failure;
  },
};
