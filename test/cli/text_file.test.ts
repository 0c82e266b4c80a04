import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Failure} from '../../cli/errors';
import {readTextFile} from '../../cli/text_file';

describe('reading a text file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tfla-text-'));
  });
  afterAll(() => rmSync(folder, {recursive: true}));

  const written = (bytes: string | number[]): string => {
    const path = join(folder, 'file.txt');
    writeFileSync(path, typeof bytes === 'string' ? bytes : Uint8Array.from(bytes));
    return path;
  };

  it('gives its text, without a byte order mark and with plain line ends', () => {
    expect(readTextFile('--data', written([0xef, 0xbb, 0xbf, 0x61, 0x0d, 0x0a, 0xc3, 0xa9]))).toBe('a\né');
  });

  it.each([
    ['an empty file', () => written(''), /it is empty/],
    ['white space only', () => written(' \n\t\n'), /nothing but white space/],
    ['a file with zero bytes', () => written([0x61, 0, 0x62]), /it is not text: byte 1 is 0/],
    ['a device without an end', () => '/dev/zero', /it is not text: byte 0 is 0/],
    ['invalid UTF-8', () => written([0x61, 0xff, 0x62]), /not valid UTF-8/],
    ['a truncated character at the end', () => written([0x61, 0xc3]), /not valid UTF-8/],
    ['a folder', () => folder, /it is a folder/],
    ['a missing file', () => join(folder, 'nowhere.txt'), /no such file or folder \(ENOENT\)/],
    [
      'a path through a file',
      () => join(written('text'), 'more'),
      /a part of the path is a file \(ENOTDIR\)/,
    ],
  ])('refuses %s by a text that names the flag and the path', (_, make, text) => {
    const path = make();
    expect(() => readTextFile('--data', path)).toThrow(Failure);
    expect(() => readTextFile('--data', path)).toThrow(text);
    expect(() => readTextFile('--data', path)).toThrow(`--data ${path}: `);
  });
});
