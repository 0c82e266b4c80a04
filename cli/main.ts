/** The command line: picks the command, and turns every fault into a line of text and an exit code. */
import {version} from '../package.json';
import {nearest} from './args';
import {benchCommand} from './bench';
import {type Command, commandHelp, PROGRAM} from './command';
import {EXIT, Failure, reason, UsageError} from './errors';
import {exportCommand} from './export';
import {generateCommand} from './generate';
import {setupNodeCommand} from './setup_node';
import {trainCommand} from './train';

const COMMANDS: readonly Command[] = [
  trainCommand,
  generateCommand,
  exportCommand,
  benchCommand,
  setupNodeCommand,
];

const help = `${PROGRAM} ${version}: trains small language models with linear attention, and writes with them.

Usage: ${PROGRAM} COMMAND [flags]

Commands:
${COMMANDS.map(({name, summary}) => `  ${name.padEnd(12)}${summary}`).join('\n')}

Flags:
  --help      this text; after a command, the command's flags
  --version   the version

Examples:
${COMMANDS.map(({examples}) => `  ${examples[0]}`).join('\n')}

Exit codes: ${EXIT.ok} done; ${EXIT.failure} failed (the last line says why); ${EXIT.usage} wrong usage; \
${EXIT.interrupted} interrupted by Ctrl-C.`;

async function main(argv: readonly string[]): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined) {
    console.error(help);
    return EXIT.usage;
  }
  if (first === '--help' || first === '-h' || first === 'help') {
    const named = COMMANDS.find(({name}) => name === rest[0]);
    console.log(named === undefined ? help : commandHelp(named));
    return EXIT.ok;
  }
  if (first === '--version' || first === '-v') {
    console.log(version);
    return EXIT.ok;
  }
  const command = COMMANDS.find(({name}) => name === first);
  if (command === undefined) {
    const hint = nearest(
      first,
      COMMANDS.map(({name}) => name),
    );
    throw new UsageError(
      `unknown command '${first}'${hint === undefined ? '.' : `; did you mean ${hint}?`} See ${PROGRAM} --help.`,
    );
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    console.log(commandHelp(command));
    return EXIT.ok;
  }
  return command.run(rest);
}

/** A reader that has had enough (`| head`) is no fault of ours. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  console.error(`${PROGRAM}: cannot write the output: ${reason(error)}`);
  process.exit(EXIT.failure);
});

/** Nor is one of messages (`2>&1 | head`): training goes on without a reader and saves what it has. */
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exitCode = EXIT.failure;
});

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    const known = error instanceof UsageError || error instanceof Failure;
    console.error(`${PROGRAM}: ${known ? error.message : reason(error)}`);
    if (!known && process.env.DEBUG && error instanceof Error) console.error(error.stack);
    process.exitCode = known ? error.exitCode : EXIT.failure;
  },
);
