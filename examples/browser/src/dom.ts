/** The page's elements, typed. */

/** The element with this id; the page's own HTML has it. */
export function element<T extends Element = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as Element as T;
}

export const input = (id: string) => element<HTMLInputElement>(id);
export const button = (id: string) => element<HTMLButtonElement>(id);

/** Makes an element with properties and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** The number in a field, moved into its limits; its default where it holds none. */
export function numberIn(id: string): number {
  const field = input(id);
  const {min, max, step, defaultValue, value} = field;
  let number = value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isFinite(number)) number = Number(defaultValue);
  if (min !== '') number = Math.max(Number(min), number);
  if (max !== '') number = Math.min(Number(max), number);
  if (step === '' || step === '1') number = Math.round(number);
  field.value = String(number);
  return number;
}
