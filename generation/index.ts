export {type GenerateOptions, type GenerateTextOptions, generate, type TextCodec} from './generate';
export {type SamplerOptions, sampler} from './sampler';
export type {SamplingOptions} from './sampling';
export {type PrefillOptions, type Stream, type StreamOptions, stream} from './stream';
export type {TokenInput} from './tokens';
export {type WarmupOptions, type WarmupProgress, type WarmupResult, warmup} from './warmup';
export type {WarmupShapes, WarmupUse} from './warmup_tasks';
