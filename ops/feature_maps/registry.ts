/** Feature maps by name, the package's own and users'. */
import {check, fail, show} from '../../src/errors';
import {POINTWISE_MAPS} from '../../src/pointwise';
import {survivesSaving} from '../../src/saved_names';
import {cosFormer} from './cos_former';
import {dpfp} from './dpfp';
import {elu} from './elu';
import {exp} from './exp';
import {favor} from './favor';
import {hedgehog} from './hedgehog';
import {identity} from './identity';
import {rebased} from './rebased';
import {relu} from './relu';
import {softmax} from './softmax';
import {squaredRelu} from './squared_relu';
import {taylor2} from './taylor2';
import type {FeatureMap} from './types';

/** A registered name, or a map. */
export type FeatureMapLike = string | FeatureMap;

/** Makes a map from the config that its getConfig returned; called without one for the defaults. */
// biome-ignore lint/suspicious/noExplicitAny: each factory has its own config type
export type FeatureMapFactory = (config?: any) => FeatureMap;

/**
 * The package's maps, each a factory; every one can also be given by its name.
 *
 * ```js
 * const map = tfla.featureMaps.squaredRelu();
 * tfla.linearAttention(q, k, v, {featureMap: map}); // the same as {featureMap: 'squaredRelu'}
 * ```
 */
export const featureMaps = {
  elu,
  relu,
  squaredRelu,
  exp,
  identity,
  softmax,
  taylor2,
  rebased,
  dpfp,
  hedgehog,
  cosFormer,
  favor,
};

const registered = new Map<string, FeatureMapFactory>();

function factoryOf(name: string): FeatureMapFactory | undefined {
  const own = featureMaps as {[name: string]: FeatureMapFactory};
  return Object.hasOwn(own, name) ? own[name] : registered.get(name);
}

/**
 * Makes a map available by name, to ops and layers, and to models that are loaded later.
 *
 * @param name Lower camel case ('myMap'): tfjs's serialization changes other names ('my_map', 'MyMap').
 * @param factory Called with the config that the map's own getConfig returned, or without one.
 * @throws Error for a name that is taken or would not survive, for a factory that makes no map of that name, or whose
 *   config has keys that would not survive.
 *
 * ```js
 * tfla.registerFeatureMap('shiftedRelu', ({shift = 1} = {}) => ({
 *   name: 'shiftedRelu',
 *   dim: (r) => r,
 *   queries: (x) => tf.relu(tf.add(x, shift)),
 *   keys: (x) => tf.relu(tf.add(x, shift)),
 *   getConfig: () => ({shift}),
 * }));
 * tfla.linearAttention(q, k, v, {featureMap: 'shiftedRelu'});
 * ```
 */
export function registerFeatureMap(name: string, factory: FeatureMapFactory): void {
  const fn = 'registerFeatureMap';
  check(
    survivesSaving(name),
    fn,
    () => `expected name to be in lower camel case, such as 'myMap', to survive saving; got ${show(name)}.`,
  );
  check(factoryOf(name) === undefined, fn, () => `expected a new name; '${name}' is registered already.`);
  check(
    typeof factory === 'function',
    fn,
    () => `expected factory to be a function that returns a FeatureMap; got ${show(factory)}.`,
  );
  const map = checkFeatureMap(fn, factory(), 'what factory() returns');
  check(
    map.name === name,
    fn,
    () => `expected factory() to return a map named '${name}'; got ${show(map.name)}.`,
  );
  for (const key of Object.keys(map.getConfig())) {
    check(
      survivesSaving(key),
      fn,
      () => `expected config keys in lower camel case, such as 'myKey', to survive saving; got '${key}'.`,
    );
  }
  registered.set(name, factory);
}

/**
 * The map that a name or a map stands for.
 *
 * @param fn Name of the calling function, for error messages.
 * @throws Error for an unknown name, or an object that is not a FeatureMap.
 */
export function resolveFeatureMap(featureMap: FeatureMapLike, fn = 'resolveFeatureMap'): FeatureMap {
  if (typeof featureMap !== 'string') {
    return checkFeatureMap(fn, featureMap, 'featureMap');
  }
  const factory = factoryOf(featureMap);
  if (factory === undefined) {
    const known = [...Object.keys(featureMaps), ...registered.keys()].map((name) => `'${name}'`).join(', ');
    fail(fn, `expected featureMap to be one of ${known}, or a FeatureMap; got '${featureMap}'.`);
  }
  return factory();
}

/**
 * A map from its saved name and config, for layers that are loaded.
 *
 * @throws Error when no map of that name is registered.
 */
export function featureMapFromConfig(
  name: string,
  config: {[key: string]: unknown} = {},
  fn = 'featureMapFromConfig',
): FeatureMap {
  const factory = factoryOf(name);
  check(
    factory !== undefined,
    fn,
    () =>
      `feature map '${name}' is not registered; call registerFeatureMap('${name}', factory) before loading.`,
  );
  return factory(config);
}

function checkFeatureMap(fn: string, value: unknown, name: string): FeatureMap {
  const map = value as Partial<FeatureMap> | null | undefined;
  check(
    map !== null && typeof map === 'object' && typeof map.name === 'string',
    fn,
    () => `expected ${name} to be a FeatureMap {name, dim, queries, keys, getConfig}; got ${show(value)}.`,
  );
  for (const method of ['dim', 'queries', 'keys', 'getConfig'] as const) {
    check(
      typeof map[method] === 'function',
      fn,
      () => `expected ${name}.${method} to be a function; got ${show(map[method])}.`,
    );
  }
  check(
    map.pointwise === undefined || POINTWISE_MAPS.includes(map.pointwise),
    fn,
    () =>
      `expected ${name}.pointwise to be one of ${POINTWISE_MAPS.map((p) => `'${p}'`).join(', ')}; got ${show(map.pointwise)}.`,
  );
  return map as FeatureMap;
}
