/** The documents whose snippets are run, and a folder to run them in. */
import {mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {basename, dirname, join} from 'node:path';
import {root} from '../helpers/dist';

export interface Block {
  language: string;
  code: string;
  /** Of the first line of the code, from 1. */
  line: number;
}

/** README.md and the guides, by their paths from the root. */
export const GUIDES: string[] = readdirSync(join(root, 'docs', 'guides'))
  .filter((name) => name.endsWith('.md'))
  .sort()
  .map((name) => `docs/guides/${name}`);

export const read = (document: string): string => readFileSync(join(root, document), 'utf8');

/** The fenced blocks of a document. */
export function blocksOf(document: string, language?: string): Block[] {
  const text = read(document);
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .map((match) => ({
      language: match[1]!,
      code: match[2]!,
      line: text.slice(0, match.index).split('\n').length + 1,
    }))
    .filter((block) => language === undefined || block.language === language);
}

/** The JavaScript blocks of a document as one module whose lines have the document's numbers. */
export function programOf(document: string): string {
  const lines: string[] = [];
  for (const {code, line} of blocksOf(document, 'js')) {
    while (lines.length < line - 1) lines.push('');
    lines.push(...code.trimEnd().split('\n'));
  }
  return `${lines.join('\n')}\n`;
}

/** Every `// prints ..` of a text, by line number. */
export function promisesOf(text: string): {line: number; text: string}[] {
  return text.split('\n').flatMap((line, i) => {
    const promised = /\/\/ prints (.*)$/.exec(line)?.[1];
    return promised === undefined ? [] : [{line: i + 1, text: promised}];
  });
}

/** A temporary folder in which the packages that snippets import are installed. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'snippets-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  symlinkSync(root, join(modules, 'tfjs-linear-attention'));
  for (const name of ['@tensorflow', 'esbuild']) {
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  return folder;
}

/** Where a document's snippets run. */
export const placeOf = (folder: string, document: string): string => join(folder, basename(document, '.md'));

/** Writes a file with the folders above it. */
export function write(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), {recursive: true});
  writeFileSync(path, content);
}
