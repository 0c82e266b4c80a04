/**
 * What a page does with the package, given the global `tf` and our functions: a functional model with our layers is
 * built, saved, loaded, run, streamed and trained. Plain JavaScript, for script tags, modules and workers alike.
 */
globalThis.useModel = async (backend) => {
  const {tf, tfla} = globalThis;
  if (!(await tf.setBackend(backend))) throw new Error(`the backend '${backend}' could not be initialised`);
  await tf.ready();
  const V = 13;
  const built = tfla.models.transformer({vocabSize: V, dModel: 16, numLayers: 1, numHeads: 2, seed: 3});
  let saved;
  await built.save(
    tf.io.withSaveHandler(async (artifacts) => {
      saved = artifacts;
      return {modelArtifactsInfo: {dateSaved: new Date(), modelTopologyType: 'JSON'}};
    }),
  );
  const model = await tf.loadLayersModel(tf.io.fromMemory(saved));
  const tokens = Array.from({length: 24}, (_, i) => (i * 5) % V);
  const ids = tf.tensor2d(tokens, [1, tokens.length], 'int32');
  const largest = async (x) => (await tf.max(tf.abs(x)).data())[0];

  const logits = model.predict(ids);
  const loadedDiffers = await largest(tf.sub(logits, built.predict(ids)));

  const stream = tfla.generation.stream(model);
  let last = stream.prefill(tokens.slice(0, 20));
  for (const token of tokens.slice(20)) {
    last = stream.step(token);
  }
  const streamDiffers = await largest(tf.sub(last, tf.squeeze(tf.slice(logits, [0, 23, 0], [1, 1, V]), [1])));
  stream.dispose();

  tfla.training.compile(model, {optimizer: tfla.training.adamW({learningRate: 0.02})});
  const targets = tf.tensor2d(
    tokens.map((id) => (id + 5) % V),
    [1, tokens.length],
    'int32',
  );
  const losses = (await model.fit(ids, targets, {epochs: 6, verbose: 0})).history.loss.map(Number);
  const trained = tf.memory().numTensors;
  await model.fit(ids, targets, {epochs: 2, verbose: 0});
  const leaked = tf.memory().numTensors - trained;

  // A layer of ours in a hand-built functional model, with a mask from its Embedding.
  const x = tf.input({shape: [null], dtype: 'int32'});
  const embedded = tf.layers.embedding({inputDim: V, outputDim: 8, maskZero: true}).apply(x);
  const attended = tfla.layers.linearAttention({numHeads: 2, keyDim: 4}).apply(embedded);
  const small = tf.model({inputs: x, outputs: tf.layers.dense({units: 3}).apply(attended)});
  const shape = small.predict(ids).shape;
  return {
    backend: tf.getBackend(),
    hasDocument: typeof document !== 'undefined',
    loadedDiffers,
    streamDiffers,
    losses,
    leaked,
    shape,
  };
};
