/** Reads a text file that a person named: whatever is wrong with it is said in words, before anything is made. */
import {closeSync, openSync, readFileSync, readSync, statSync} from 'node:fs';
import {Failure, reason} from './errors';

/** Text of more than this is not held as one string by Node. */
const MAX_BYTES = 256 * 1024 * 1024;

/** The file's text; a byte order mark is dropped and CRLF becomes LF. */
export function readTextFile(flag: string, path: string): string {
  const fail = (text: string) => new Failure(`${flag} ${path}: ${text}`);
  let bytes: Buffer;
  try {
    const stat = statSync(path);
    if (stat.isDirectory()) throw fail('it is a folder; expected a text file.');
    if (stat.size > MAX_BYTES) {
      throw fail(`it has ${stat.size} bytes; expected at most ${MAX_BYTES}. Cut it into parts.`);
    }
    bytes = stat.isFile() ? readFileSync(path) : readStream(path);
    if (bytes.length > MAX_BYTES) {
      throw fail(`it has more than ${MAX_BYTES} bytes. Cut it into parts.`);
    }
  } catch (error) {
    throw error instanceof Failure ? error : fail(`cannot read it: ${reason(error)}.`);
  }
  if (bytes.length === 0) throw fail('it is empty.');
  const zero = bytes.indexOf(0);
  if (zero >= 0) throw fail(`it is not text: byte ${zero} is 0.`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', {fatal: true}).decode(bytes);
  } catch {
    throw fail('it is not valid UTF-8 text. If it is text in another encoding, convert it first.');
  }
  text = text.replaceAll('\r\n', '\n');
  if (text.trim() === '') throw fail('it holds nothing but white space.');
  return text;
}

/** What a pipe or a device holds, until its end, its first zero byte or too much: /dev/zero has no end. */
function readStream(path: string): Buffer {
  const pieces: Buffer[] = [];
  const file = openSync(path, 'r');
  try {
    for (let size = 0; size <= MAX_BYTES; ) {
      const piece = Buffer.alloc(65536);
      const got = piece.subarray(0, readSync(file, piece));
      pieces.push(got);
      size += got.length;
      if (got.length === 0 || got.includes(0)) break;
    }
  } finally {
    closeSync(file);
  }
  return Buffer.concat(pieces);
}
