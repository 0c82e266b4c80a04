/**
 * Jest's environment with the outer realm's typed arrays: tfjs-node's binding makes those, and tfjs asks for their
 * classes.
 */
const {TestEnvironment} = require('jest-environment-node');

module.exports = class OneRealm extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    for (const name of ['Float32Array', 'Int32Array', 'Uint8Array', 'BigInt64Array']) {
      this.global[name] = globalThis[name];
    }
  }
};
