const tf = require('@tensorflow/tfjs');
const tfla = require('tfjs-linear-attention');
const core = require('@tensorflow/tfjs-core');
if (tf.engine() !== core.engine()) throw new Error('the union package and the peer have two engines');
require('./behaviour.cjs').check(tf, tf, tfla);
