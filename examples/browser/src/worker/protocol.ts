/**
 * What the page and its worker say to each other. The worker owns tfjs and the models; the page owns what is seen. Each
 * call has a request, a reply and, where it takes a while, events before the reply.
 */
import type {io} from '@tensorflow/tfjs-core';

export type Side = 'linear' | 'softmax';
export const SIDES: readonly Side[] = ['linear', 'softmax'];

export type BackendName = 'webgpu' | 'webgl' | 'wasm' | 'cpu';

export interface BackendReport {
  name: BackendName;
  /** Why it cannot be used here; null when it can. */
  unavailable: string | null;
}

/** A trained model that is not bound to a backend: tfjs's artifacts and the characters. */
export interface ModelFiles {
  artifacts: io.ModelArtifacts;
  /** What `models.characterTokenizerFromJSON` takes. */
  tokenizer: unknown;
}

export interface ModelFacts {
  attention: string;
  parameters: number;
  characters: number;
  layers: number;
  heads: number;
  /** Of the linear layers; null where there are none. */
  featureMap: string | null;
  /** What each token adds to a softmax layer's cache; 0 for linear attention. */
  bytesPerToken: number;
}

export interface WriteOptions {
  sides: Side[];
  prompt: string;
  characters: number;
  temperature: number;
  /** 0: all. */
  topK: number;
  seed: number;
  /** A softmax model's cache is full when it holds this many bytes. */
  cacheBytes: number;
}

/** New tokens of one side. Position and bytes are those after each token. */
export interface Written {
  event: 'written';
  side: Side;
  text: string;
  positions: number[];
  milliseconds: number[];
  bytes: number[];
}

/** Why a side's text ended. */
export type End = 'length' | 'stopped' | 'full' | 'failed';

export interface Ended {
  event: 'ended';
  side: Side;
  end: End;
  position: number;
  /** Why it failed; empty otherwise. */
  reason: string;
}

/** What one linear layer's state holds, and how its last query weighs the recent keys. */
export interface Look {
  event: 'look';
  layer: number;
  position: number;
  heads: number;
  /** s is [heads, features, values]. */
  features: number;
  values: number;
  s: Float32Array;
  /** [heads, recent.length]; each row sums to 1. */
  weights: Float32Array;
  /** Per head: the part of the whole past's weight that falls on the recent tokens. */
  share: Float32Array;
  /** The characters that the weights are of, oldest first. */
  recent: string[];
}

export interface TrainingOptions {
  attention: Side;
  dModel: number;
  layers: number;
  heads: number;
  batch: number;
  length: number;
  learningRate: number;
  seed: number;
}

/** A trained model and all that is needed to go on training it, or to keep it. */
export interface Run {
  options: TrainingOptions;
  text: string;
  step: number;
  /** The training loss of each step so far, nats per character. */
  losses: number[];
  files: ModelFiles;
  /** What `training.train` resumes from. */
  checkpoint: Uint8Array;
}

export interface TrainingEvent {
  event: 'step';
  step: number;
  steps: number;
  loss: number;
  validation: number | null;
  charactersPerSecond: number;
  secondsLeft: number;
}

/** name: [request, reply, events]. */
export interface Calls {
  /** Says which backends there are. */
  start: [{wasm: {plain: string; simd: string}}, BackendReport[], never];
  /** Changes the backend; models move along. */
  use: [BackendName, {seconds: number}, {event: 'compiled'; done: number; total: number}];
  /** Puts a model on a side: from an address, or from files. */
  load: [
    {side: Side; from: string | ModelFiles},
    ModelFacts,
    {event: 'compiled'; done: number; total: number},
  ];
  write: [WriteOptions, {leftOut: string}, Written | Ended | Look];
  /** Ends writing or training after the current step. */
  stop: [null, null, never];
  /** Which linear layer is looked at; null: none. */
  look: [number | null, null, never];
  /** `from`: the run to continue, `steps` more. */
  train: [{text: string; options: TrainingOptions; steps: number; from: Run | null}, Run, TrainingEvent];
}

export type CallName = keyof Calls;
export type Request<K extends CallName> = Calls[K][0];
export type Reply<K extends CallName> = Calls[K][1];
export type EventOf<K extends CallName> = Calls[K][2];

export type Handlers = {
  [K in CallName]: (request: Request<K>, emit: (event: EventOf<K>) => void) => Promise<Reply<K>>;
};

/** From the worker. Exactly one of event, reply, error beside the id. */
export interface Answer {
  id: number;
  event?: unknown;
  reply?: unknown;
  error?: string;
}
