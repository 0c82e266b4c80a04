/** One side that writes: a stream, a sampler, and what each token took. */
import {generation} from 'tfjs-linear-attention';
import type {Loaded} from './loaded_models';
import type {End, Side, WriteOptions} from './protocol';

export interface Token {
  character: string;
  position: number;
  milliseconds: number;
  bytes: number;
}

export class Writer {
  /** Milliseconds of its own work so far. */
  spent = 0;
  /** Why it ended; null while it goes on. */
  end: End | null = null;
  /** Why it failed; empty otherwise. */
  reason = '';
  private readonly stream: generation.Stream;
  private readonly pick: (logits: ArrayLike<number>) => number;
  private latest: Int32Array | number;
  private made = 0;

  constructor(
    readonly side: Side,
    private readonly loaded: Loaded,
    private readonly options: WriteOptions,
  ) {
    const {temperature, topK, seed, prompt} = options;
    this.pick = generation.sampler({temperature, seed, ...(topK > 0 && {topK})});
    this.latest = loaded.tokenizer.encode(prompt);
    if (this.latest.length === 0) {
      throw new Error('The prompt has no character that the model knows.');
    }
    this.stream = generation.stream(loaded.model);
  }

  /** The next token; null when it fails, which leaves the other side alone. */
  async next(): Promise<Token | null> {
    try {
      return await this.advance();
    } catch (error) {
      this.end = 'failed';
      this.reason = (error as Error).message;
      return null;
    }
  }

  /** Reads what came last (first the prompt), and chooses the next character. */
  private async advance(): Promise<Token> {
    const {stream, loaded, options} = this;
    const started = performance.now();
    const logits = typeof this.latest === 'number' ? stream.step(this.latest) : stream.prefill(this.latest);
    let values: ArrayLike<number>;
    try {
      values = await logits.data();
    } finally {
      logits.dispose();
    }
    this.latest = this.pick(values);
    const milliseconds = performance.now() - started;
    this.spent += milliseconds;
    const {position, stateBytes: bytes} = stream;
    if (++this.made === options.characters) this.end = 'length';
    else if ((position + 1) * loaded.facts.bytesPerToken > options.cacheBytes) this.end = 'full';
    return {character: loaded.tokenizer.decode([this.latest]), position, milliseconds, bytes};
  }

  get position(): number {
    return this.stream.position;
  }

  dispose(): void {
    this.stream.dispose();
  }
}
