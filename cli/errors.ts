/** How the command line ends: each error knows its exit code. The codes are documented in --help and the README. */

export const EXIT = {ok: 0, failure: 1, usage: 2, interrupted: 130} as const;

/** The command was given wrongly: nothing was read or written. */
export class UsageError extends Error {
  readonly exitCode = EXIT.usage;
}

/** The command was right and could not be carried out. */
export class Failure extends Error {
  readonly exitCode = EXIT.failure;
}

/** What the operating system's error codes mean to the person at the terminal. */
const REASONS: Record<string, string> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'a file of that name is in the way',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would exceed the size limit',
  EROFS: 'the file system is read-only',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'the name is too long',
};

/** The reason of a system error in words, or its own message. */
export function reason(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  if (code !== undefined && code in REASONS) return `${REASONS[code]} (${code})`;
  return error instanceof Error ? error.message : String(error);
}
