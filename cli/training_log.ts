/** log.jsonl: one line of JSON per step. */
import {appendFileSync, readFileSync, writeFileSync} from 'node:fs';
import type {TrainingProgress} from '../training';
import {reason} from './errors';

export interface TrainingLog {
  write(progress: TrainingProgress): void;
}

/** A log that cannot be written is said once, and training goes on: the checkpoint matters more. */
export function trainingLog(path: string, say: (text: string) => void): TrainingLog {
  let state: 'new' | 'open' | 'broken' = 'new';
  return {
    write(progress) {
      if (state === 'broken') return;
      const {step, loss, learningRate, gradientNorm, tokensPerSecond, validation, events} = progress;
      const measured = events.some(({kind}) => kind === 'validation') ? validation : null;
      const record = {
        step,
        loss,
        learningRate,
        gradientNorm,
        tokensPerSecond: Math.round(tokensPerSecond),
        ...(measured === null ? {} : {validationBitsPerCharacter: measured.bitsPerCharacter}),
      };
      try {
        if (state === 'new') dropFrom(path, step);
        appendFileSync(path, `${JSON.stringify(record)}\n`);
        state = 'open';
      } catch (error) {
        state = 'broken';
        say(`cannot write ${path}: ${reason(error)}; training goes on without it.`);
      }
    },
  };
}

/** A run that was killed after its last checkpoint repeats some steps: their first lines go. */
function dropFrom(path: string, step: number): void {
  let lines: string[];
  try {
    lines = readFileSync(path, 'utf8').split('\n');
  } catch {
    return;
  }
  const kept = lines.filter((line) => {
    try {
      return (JSON.parse(line) as {step: number}).step < step;
    } catch {
      return false;
    }
  });
  writeFileSync(path, kept.map((line) => `${line}\n`).join(''));
}
