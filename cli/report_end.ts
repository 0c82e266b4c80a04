/** The last lines of a training, and its exit code. */
import type {TrainingResult} from '../training';
import {EXIT} from './errors';

/** `text` is what the model was trained on: the prompt of the command that is suggested is a word of it. */
export function reportEnd(
  {step, stopped, loss, validation, tokensPerSecond}: TrainingResult,
  out: string,
  {interrupted, text}: {interrupted: boolean; text: string},
): number {
  const trained = Number.isNaN(loss) ? '' : `, loss ${loss.toFixed(4)}`;
  const bits =
    validation === null ? '' : `, validation ${validation.bitsPerCharacter.toFixed(3)} bits per character`;
  // A run that was finished before has no speed.
  const speed = tokensPerSecond === 0 ? '' : `, ${Math.round(tokensPerSecond)} tokens/s`;
  console.log(`${step} steps${trained}${bits}${speed}; saved in ${out}`);
  if (stopped === 'aborted') {
    console.log(
      `${interrupted ? 'Interrupted' : 'The time is up'}; the same command with --resume continues from step ${step}.`,
    );
  } else {
    console.log(`Write with it: tfjs-linear-attention generate --model ${out} --prompt ${promptFrom(text)}`);
  }
  return interrupted && stopped === 'aborted' ? EXIT.interrupted : EXIT.ok;
}

/** The first word: the model knows its characters, and a shell leaves them as they are. */
function promptFrom(text: string): string {
  const word = /[\p{L}\p{N}]+/u.exec(text);
  return word === null ? 'TEXT' : `"${word[0]}"`;
}
