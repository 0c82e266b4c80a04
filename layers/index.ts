export type {AttentionArgs} from './args';
export {Gelu, type GeluArgs, gelu} from './gelu';
export {LayerNorm, type LayerNormArgs, layerNorm} from './layer_norm';
export {LinearAttention, type LinearAttentionArgs, linearAttention} from './linear_attention';
export {PositionEmbedding, type PositionEmbeddingArgs, positionEmbedding} from './position_embedding';
export {redrawFeatures} from './redraw';
export {SeededDropout, type SeededDropoutArgs, seededDropout} from './seeded_dropout';
export {
  type Pooling,
  SequencePooling,
  type SequencePoolingArgs,
  sequencePooling,
} from './sequence_pooling';
export {SoftmaxAttention, type SoftmaxAttentionArgs, softmaxAttention} from './softmax_attention';
export {
  isStreamingLayer,
  type StreamContext,
  type StreamingLayer,
  type StreamResult,
  type StreamState,
} from './streaming';
export {TiedEmbedding, type TiedEmbeddingArgs, tiedEmbedding} from './tied_embedding';
