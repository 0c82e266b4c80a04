/**
 * tfjs writes the strings and keys of a layer's config in snake case and reads them in camel case. These are its two
 * conversions, so that a name which would come back changed can be refused before a model is saved with it.
 */

function toSnakeCase(name: string): string {
  return name
    .replace(/(.)([A-Z][a-z0-9]+)/g, '$1_$2')
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase();
}

function toCamelCase(name: string): string {
  return name.length <= 1 ? name : name.replace(/_+(\w|$)/g, (_, next: string) => next.toUpperCase());
}

/** True when `name`, as a config key or string, is the same after saving and loading. */
export function survivesSaving(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z]\w*$/.test(name) && toCamelCase(toSnakeCase(name)) === name;
}
