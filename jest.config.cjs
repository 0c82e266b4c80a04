/** Tests run on the TypeScript sources; only packaging tests use dist. */
// tfjs-node's TensorFlow greets on stderr otherwise; it reads this when it is loaded.
process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';

module.exports = {
  testEnvironment: process.env.BACKENDS?.includes('tensorflow') ? './test/helpers/one_realm.cjs' : 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  transform: {
    '\\.ts$': [
      '@swc/jest',
      {jsc: {parser: {syntax: 'typescript'}, target: 'es2022'}, module: {type: 'commonjs'}},
    ],
  },
  testTimeout: 60000,
};
