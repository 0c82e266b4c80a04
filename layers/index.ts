export {SeededDropout, type SeededDropoutArgs, seededDropout} from './seeded_dropout';
