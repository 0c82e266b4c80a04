export {AdamW, type AdamWOptions, adamW, type NamedTensor} from './adam_w';
export {clipByGlobalNorm, globalNorm} from './clipping';
export {type CompileArgs, compile} from './compile';
export {type Decay, type ScheduleOptions, schedule} from './schedule';
export {type TokenLossOptions, tokenLoss} from './token_loss';
