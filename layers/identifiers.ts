/**
 * Initializers, regularizers and constraints by name, by config or as objects. tfjs does not export its own look-up
 * (getInitializer and its kin), so this asks the serialization registry, where user classes are found as well.
 */
import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {fail, show} from '../src/errors';

export type Initializer = ReturnType<typeof tfl.initializers.ones>;
export type Regularizer = ReturnType<typeof tfl.regularizers.l1l2>;
export type Constraint = ReturnType<typeof tfl.constraints.maxNorm>;

/** What an argument such as `kernelInitializer` takes: a name, `{className, config}`, or an object. */
export type Identifier<T> = string | {className: string; config: object} | T;

type Kind = 'initializer' | 'regularizer' | 'constraint';

/** `glorotUniform` -> `GlorotUniform`; names in one case stay what they are. */
function classNameOf(name: string): string {
  return name === 'l1l2' ? 'L1L2' : name.charAt(0).toUpperCase() + name.slice(1);
}

function build(fn: string, argument: string, kind: Kind, className: string, config: object): unknown {
  const entry = tf.serialization.SerializationMap.getMap().classNameMap[className];
  if (entry === undefined) {
    fail(fn, `unknown ${kind} ${show(className)} in ${argument}; expected a registered ${kind}.`);
  }
  const [cls, fromConfig] = entry;
  return fromConfig(cls, {...config} as tf.serialization.ConfigDict);
}

/** Resolves an identifier to an object of the wanted kind; undefined and null give null. */
export function resolve<T extends {apply: unknown}>(
  fn: string,
  argument: string,
  kind: Kind,
  identifier: Identifier<T> | null | undefined,
): T | null {
  if (identifier === undefined || identifier === null) {
    return null;
  }
  let made: unknown = identifier;
  if (typeof identifier === 'string') {
    made = build(fn, argument, kind, classNameOf(identifier), {});
  } else if (typeof identifier === 'object' && 'className' in identifier) {
    made = build(fn, argument, kind, identifier.className, identifier.config ?? {});
  }
  if (made === null || typeof made !== 'object' || typeof (made as T).apply !== 'function') {
    const article = kind === 'initializer' ? 'an' : 'a';
    fail(
      fn,
      `expected ${argument} to be the name, config or object of ${article} ${kind}; got ${show(identifier)}.`,
    );
  }
  return made as T;
}

/** `{className, config}` as Keras writes it, or null. */
export function serialize(object: tf.serialization.Serializable | null): tf.serialization.ConfigDict | null {
  return object === null ? null : {className: object.getClassName(), config: object.getConfig()};
}

/**
 * The same initializer with its seed moved by `shift`. One seeded initializer serves several kernels of a layer; with
 * one seed, query and key kernels of equal shape would start out identical.
 */
export function reseeded(initializer: Initializer, shift: number): Initializer {
  const config = initializer.getConfig();
  const entry = tf.serialization.SerializationMap.getMap().classNameMap[initializer.getClassName()];
  if (shift === 0 || typeof config['seed'] !== 'number' || entry === undefined) {
    return initializer;
  }
  const [cls, fromConfig] = entry;
  return fromConfig(cls, {...config, seed: config['seed'] + shift}) as Initializer;
}

/** An initializer that gives fixed values: the constants of a feature map. */
export class FixedValues extends tf.serialization.Serializable {
  static className = 'FixedValues';

  constructor(private readonly values: Float32Array) {
    super();
  }

  apply(shape: (number | null)[]): tf.Tensor {
    return tf.tensor(this.values, shape as number[], 'float32');
  }

  fromConfigUsesCustomObjects(): boolean {
    return false;
  }

  getConfig(): tf.serialization.ConfigDict {
    return {};
  }
}
