/** The backends to choose from; those that this browser lacks are disabled and say why. */
import {element, make} from '../dom';
import type {BackendName, BackendReport} from '../worker/protocol';

/**
 * Which one to take unasked. WebAssembly first: at one token at a time a small model is done in less time than a GPU
 * needs to be asked and to answer.
 */
const PREFERENCE: readonly BackendName[] = ['wasm', 'webgpu', 'webgl', 'cpu'];

const DESCRIPTIONS: Record<BackendName, string> = {
  webgpu: 'graphics card, compute shaders',
  webgl: 'graphics card, fragment shaders',
  wasm: 'processor, SIMD',
  cpu: 'processor, plain JavaScript',
};

/** Fills the field set. Returns the one that is chosen at first: `wanted` if it can be had, else the best. */
export function showBackends(
  reports: BackendReport[],
  wanted: string | null,
  onChange: (name: BackendName) => void,
): BackendName {
  const available = PREFERENCE.filter((name) =>
    reports.some((report) => report.name === name && report.unavailable === null),
  );
  const first = available.find((name) => name === wanted) ?? available[0];
  element('backends').replaceChildren(
    ...reports.map(({name, unavailable}) => {
      const radio = make('input', {
        ...{type: 'radio', name: 'backend', value: name, id: `backend-${name}`},
        checked: name === first,
        disabled: unavailable !== null,
      });
      radio.addEventListener('change', () => onChange(name));
      const note = make('small', {}, unavailable ?? DESCRIPTIONS[name]);
      return make('label', {className: 'backend'}, radio, make('span', {}, make('b', {}, name), note));
    }),
  );
  return first;
}

/** While something runs the backend cannot be changed. */
export function lockBackends(locked: boolean): void {
  element<HTMLFieldSetElement>('backend-set').disabled = locked;
}

export function selectBackend(name: BackendName): void {
  element<HTMLInputElement>(`backend-${name}`).checked = true;
}
