/**
 * What any installed copy must do, however it was loaded: the three-token example, a gradient, a layer that a model is
 * built from, saved and loaded, and one engine for all of it. Used by the consumers beside it.
 */
exports.check = async function check(tf, tfLayers, tfla) {
  const expect = (condition, text) => {
    if (!condition) throw new Error(`check of the installed package: ${text}`);
  };
  await tf.setBackend('cpu');
  const q = tf.tensor4d([1, 2, 1, 2, 1, 2], [1, 1, 3, 2]);
  const v = tf.tensor4d([1, 2, 3], [1, 1, 3, 1]);

  const out = tfla.linearAttention(q, q, v);
  const values = await out.data();
  expect(Math.abs(values[0] - 2) < 1e-4, `expected equal keys to average the values to 2; got ${values[0]}`);
  const causal = await tfla.linearAttention(q, q, v, {causal: true}).data();
  expect(Math.abs(causal[1] - 1.5) < 1e-4, `expected the second causal output to be 1.5; got ${causal[1]}`);

  const gradient = tf.grad((x) => tf.sum(tfla.linearAttention(q, q, x, {causal: true})))(v);
  const dv = await gradient.data();
  expect(Math.abs(dv[2] - 1 / 3) < 1e-4, `expected the last value's gradient to be 1/3; got ${dv[2]}`);

  const layer = tfla.layers.linearAttention({numHeads: 2, keyDim: 4, causal: true});
  expect(
    layer instanceof tfLayers.layers.Layer,
    "expected its layers to be of the application's tfjs-layers",
  );
  const model = tfLayers.sequential({layers: [tfLayers.layers.inputLayer({inputShape: [null, 6]}), layer]});
  const x = tf.ones([1, 5, 6]);
  const before = await model.predict(x).data();
  let saved;
  await model.save(
    tf.io.withSaveHandler(async (artifacts) => {
      saved = artifacts;
      return {modelArtifactsInfo: {dateSaved: new Date(0), modelTopologyType: 'JSON'}};
    }),
  );
  const loaded = await tfLayers.loadLayersModel(tf.io.fromMemory(saved));
  const after = await loaded.predict(x).data();
  expect(
    before.every((value, i) => value === after[i]),
    'expected the loaded model to equal the saved one',
  );
  expect(tf.engine().registryFactory.cpu !== undefined, 'expected one engine');
};
