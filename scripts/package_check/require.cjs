const tf = require('@tensorflow/tfjs-core');
require('@tensorflow/tfjs-backend-cpu');
const tfLayers = require('@tensorflow/tfjs-layers');
const tfla = require('tfjs-linear-attention');
require('./behaviour.cjs').check(tf, tfLayers, tfla);
