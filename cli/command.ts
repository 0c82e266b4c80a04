/** What a command is. */
import type {Flags} from './args';
import {flagsHelp} from './args';

export interface Command {
  name: string;
  summary: string;
  flags: Flags;
  examples: readonly string[];
  /** Further paragraphs of the command's help. */
  notes?: string;
  /** Carries the command out and returns the exit code. */
  run(argv: readonly string[]): Promise<number>;
}

export const PROGRAM = 'tfjs-linear-attention';

export function commandHelp(command: Command): string {
  return [
    `${PROGRAM} ${command.name}: ${command.summary}`,
    `Usage: ${PROGRAM} ${command.name} [flags]`,
    `Flags:\n${flagsHelp(command.flags)}`,
    ...(command.notes === undefined ? [] : [command.notes]),
    `Examples:\n${command.examples.map((example) => `  ${example}`).join('\n')}`,
  ].join('\n\n');
}
