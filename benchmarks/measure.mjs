/**
 * One process of one case: `fork`ed by bench.mjs, which sends {name, quick, choices}, and gets the case's rows and the
 * choices that were made (chunk sizes of the peers) for the next process.
 */
import {load} from './lib/machine.mjs';
import {fastest} from './lib/timing.mjs';

process.once('message', async ({name, quick, choices}) => {
  try {
    const {run, title, about} = await import(`./cases/${name}.mjs`);
    /** The fastest of several forms of a peer, chosen in the first process. */
    const tune = async (key, forms, runForm, runs = 2) => {
      if (choices[key] === undefined) {
        const candidates = forms.map((form) => ({form, run: () => runForm(form)}));
        choices[key] = forms.length === 1 ? forms[0] : (await fastest(candidates, quick ? 1 : runs)).form;
      }
      return choices[key];
    };
    const before = load();
    const result = await run({quick, tune});
    process.send({title, about, ...result, choices, load: [before, load()]}, () => process.exit(0));
  } catch (error) {
    process.send({error: error.stack}, () => process.exit(1));
  }
});
