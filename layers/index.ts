export {LinearAttention, type LinearAttentionArgs, linearAttention} from './linear_attention';
export {SeededDropout, type SeededDropoutArgs, seededDropout} from './seeded_dropout';
export {SoftmaxAttention, type SoftmaxAttentionArgs, softmaxAttention} from './softmax_attention';
export {
  isStreamingLayer,
  type StreamContext,
  type StreamingLayer,
  type StreamResult,
  type StreamState,
} from './streaming';
