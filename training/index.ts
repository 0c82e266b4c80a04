export {AdamW, type AdamWOptions, adamW, type NamedTensor} from './adam_w';
export type {CheckpointStore} from './checkpoint_store';
export {clipByGlobalNorm, globalNorm} from './clipping';
export {type CompileArgs, compile} from './compile';
export type {TokenIds, TrainingData} from './data';
export {type DistilledLayer, type DistillOptions, distill} from './distill';
export {type EvaluateOptions, type Evaluation, evaluate} from './evaluate';
export {type FetchModelOptions, fetchModel} from './fetch_model';
export {
  type LinearizeOptions,
  type LinearizeResult,
  type LinearizeStage,
  linearize,
  type StageReport,
} from './linearize';
export {loadModel, type SaveModelOptions, saveModel} from './model_files';
export {
  type ProgressPrinter,
  type ProgressStream,
  progressLine,
  progressPrinter,
  type TrainingEvent,
  type TrainingProgress,
} from './progress';
export type {Quantization} from './quantize';
export {type RedrawOptions, type RedrawSchedule, redrawSchedule} from './redraw_schedule';
export {type Decay, type ScheduleOptions, schedule} from './schedule';
export {type TokenLossOptions, tokenLoss} from './token_loss';
export {type TrainingRecord, type TrainingResult, train} from './train';
export type {TrainOptions} from './train_options';
