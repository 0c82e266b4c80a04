/**
 * Makes @tensorflow/tfjs-node work here, and builds the package's native TensorFlow operation for it.
 *
 *     npm run setup:node                      in this repository
 *     npx tfjs-linear-attention setup-node    in a project that depends on the package
 *
 * Silent when all is well; what was done before is not done again. Each step is made aside, checked, and renamed into
 * place, so that an interrupted run leaves nothing half done and the next one continues. With --optional the exit code
 * is 0 whatever happens: everything but the backend 'tensorflow' works without this.
 */
import {SetupError} from './node/command.mjs';
import {buildNativeOperation} from './node/native_operation.mjs';
import {installOrdinarily} from './node/ordinary_install.mjs';
import {whyNotHere} from './node/platform.mjs';
import {findTfjsNode, works} from './node/tfjs_node.mjs';
import {installFromWheel} from './node/wheel_install.mjs';

const optional = process.argv.includes('--optional');

async function setUp() {
  const reason = whyNotHere();
  if (reason !== null) {
    throw new SetupError(reason);
  }
  const tfjsNode = findTfjsNode();
  if (!works(tfjsNode) && !(await installOrdinarily(tfjsNode))) {
    installFromWheel(tfjsNode);
  }
  buildNativeOperation(tfjsNode);
}

try {
  await setUp();
} catch (error) {
  console.error(`setup:node: ${error instanceof SetupError ? error.message : error.stack}`);
  if (!error.partial) {
    console.error(
      "setup:node: without it the backend 'tensorflow' is missing; wasm and cpu work as they do.",
    );
  }
  process.exitCode = optional ? 0 : 1;
}
