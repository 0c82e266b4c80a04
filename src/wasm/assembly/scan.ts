/** The module's exports: linear attention over float32 arrays in one linear memory. See args.ts. */
export {forwardCausal} from './forward';
export {backwardKeysCausal, backwardQueriesCausal} from './backward';
export {backwardKeys, backwardQueries, backwardState, forwardKeys, forwardQueries} from './noncausal';
export {step, stepScratch} from './step';
export {packState, transposeState, unpackState} from './state';
