/** Forward and backward by the SIMD module: which of its functions run, over which parts, with which states. */
import type {Arguments, SimdExports} from './simd_arguments';
import type {ArrayName, Part, Storage, Use} from './simd_storage';
import type {Dims, LinearAttentionAttrs} from './spec';

type Uses = {[name in ArrayName]?: Use};
type Pass = Extract<keyof SimdExports, `forward${string}` | `backward${string}`>;

/** The arrays that each pass uses. */
const USES: {[pass in Pass]: Uses} = {
  forwardCausal: {q: 'read', k: 'read', v: 'read', mask: 'read', output: 'write', inverse: 'write'},
  forwardKeys: {k: 'read', v: 'read', mask: 'read'},
  forwardQueries: {q: 'read', output: 'write', inverse: 'write'},
  backwardQueriesCausal: {
    k: 'read',
    v: 'read',
    mask: 'read',
    output: 'read',
    inverse: 'read',
    dOutput: 'read',
    dq: 'write',
    dk: 'write',
  },
  backwardKeysCausal: {
    q: 'read',
    v: 'read',
    mask: 'read',
    output: 'read',
    inverse: 'read',
    dOutput: 'read',
    dq: 'both',
    dk: 'both',
    dv: 'write',
  },
  backwardState: {k: 'read', v: 'read', mask: 'read', dk: 'write'},
  backwardQueries: {q: 'read', output: 'read', inverse: 'read', dOutput: 'read', dq: 'write'},
  backwardKeys: {v: 'read', mask: 'read', dk: 'both', dv: 'write'},
};

/** All arrays that forward or backward may stage at once. */
export const STAGED_FORWARD = Object.keys(USES.forwardCausal) as ArrayName[];
export const STAGED_BACKWARD = Object.keys(USES.backwardKeysCausal) as ArrayName[];

/** One call of a kernel. */
export class SimdAttention {
  private readonly uses = new Map<Pass, Uses>();

  constructor(
    private readonly simd: SimdExports,
    private readonly args: Arguments,
    private readonly storage: Storage,
    private readonly dims: Dims,
    private readonly attrs: LinearAttentionAttrs,
  ) {}

  /** Writes output, inverse (when normalised), and, unless nobody reads them, sOut and zOut. */
  forward(): void {
    this.eachGroup((b, h, heads) => {
      for (let i = 0; i < heads; i++) {
        this.loadState('state', i, this.attrs.hasState ? this.state('s', b, h + i, 'read') : 0, false);
        this.loadZ('z', i, this.attrs.hasState ? this.state('z', b, h + i, 'read') : 0);
      }
      if (this.attrs.causal) {
        this.run('forwardCausal', b, h, heads, this.dims.Nq);
      } else {
        this.run('forwardKeys', b, h, heads, this.dims.Nk);
        this.run('forwardQueries', b, h, heads, this.dims.Nq);
      }
      for (let i = 0; this.attrs.returnState !== false && i < heads; i++) {
        this.storeState('state', i, this.state('sOut', b, h + i, 'write'));
        this.storeZ('z', i, this.state('zOut', b, h + i, 'write'));
      }
    });
  }

  /** Writes dq, dk and dv, and ds and dz when there is a state. */
  backward(): void {
    const {Nq, Nk} = this.dims;
    const {hasState, causal} = this.attrs;
    this.eachGroup((b, h, heads) => {
      for (let i = 0; i < heads; i++) {
        this.loadState('transposed', i, hasState ? this.state('s', b, h + i, 'read') : 0, true);
        this.loadZ('z', i, hasState ? this.state('z', b, h + i, 'read') : 0);
      }
      if (causal) {
        this.run('backwardQueriesCausal', b, h, heads, Nq);
        for (let i = 0; i < heads; i++) {
          this.loadState('state', i, this.finalGradient('dS', b, h + i), false);
          this.loadZ('z', i, this.finalGradient('dZ', b, h + i));
        }
        this.run('backwardKeysCausal', b, h, heads, Nk, true);
      } else {
        this.run('backwardState', b, h, heads, Nk);
        for (let i = 0; i < heads; i++) {
          this.loadState('state', i, this.finalGradient('dS', b, h + i), false);
          this.loadZ('zLocal', i, this.finalGradient('dZ', b, h + i));
        }
        this.run('backwardQueries', b, h, heads, Nq);
        for (let i = 0; i < heads; i++) {
          this.transpose(i);
        }
        this.run('backwardKeys', b, h, heads, Nk);
      }
      for (let i = 0; hasState && i < heads; i++) {
        this.storeState('state', i, this.state('ds', b, h + i, 'write'));
        this.storeZ(causal ? 'z' : 'zLocal', i, this.state('dz', b, h + i, 'write'));
      }
    });
  }

  private eachGroup(body: (b: number, h: number, heads: number) => void): void {
    const {B, H} = this.dims;
    for (let b = 0; b < B; b++) {
      for (let h = 0; h < H; h += this.args.plan.heads) {
        body(b, h, Math.min(this.args.plan.heads, H - h));
      }
    }
  }

  /** The arrays of a pass that this call has. */
  private usesOf(pass: Pass): Uses {
    let uses = this.uses.get(pass);
    if (uses === undefined) {
      uses = {...USES[pass]};
      if (!this.attrs.hasMask) {
        delete uses.mask;
      }
      if (!this.attrs.normalize) {
        delete uses.inverse;
      }
      this.uses.set(pass, uses);
    }
    return uses;
  }

  /** One pass over all tokens, range by range. */
  private run(pass: Pass, b: number, h: number, heads: number, length: number, reverse = false): void {
    const uses = this.usesOf(pass);
    const range = Math.min(length, this.storage.range(Object.keys(uses) as ArrayName[], heads));
    const ranges = Math.ceil(length / range);
    for (let i = 0; i < ranges; i++) {
      const n = (reverse ? ranges - 1 - i : i) * range;
      const part: Part = {b, h, heads, n, count: Math.min(range, length - n)};
      this.args.set('heads', heads);
      this.args.set('length', part.count);
      this.storage.open(this.args, part, uses);
      this.simd[pass](this.args.at);
      this.storage.close();
    }
  }

  private state(name: Parameters<Storage['openState']>[0], b: number, h: number, use: Use): number {
    return this.storage.openState(name, b * this.dims.H + h, use);
  }

  /** Where the gradient of one head's final state is; 0, which stands for zeros, when the state went nowhere. */
  private finalGradient(name: 'dS' | 'dZ', b: number, h: number): number {
    return this.attrs.returnState === false ? 0 : this.state(name, b, h, 'read');
  }

  /** Packs one head's [r, d] at `src` (0: zeros), or its transpose. */
  private loadState(part: 'state' | 'transposed', head: number, src: number, transpose: boolean): void {
    const {r, d} = this.dims;
    const {rows, columns} = this.args.plan;
    const at = this.args.part(part, head, rows * columns * 4);
    if (transpose) {
      this.simd.packState(src, 1, d, d, r, at, columns, rows);
    } else {
      this.simd.packState(src, d, 1, r, d, at, rows, columns);
    }
  }

  private storeState(part: 'state' | 'transposed', head: number, dst: number): void {
    const {r, d} = this.dims;
    const {rows, columns} = this.args.plan;
    this.simd.unpackState(this.args.part(part, head, rows * columns * 4), rows, columns, r, d, dst);
    this.storage.close();
  }

  /** z is a state of one row. */
  private loadZ(part: 'z' | 'zLocal', head: number, src: number): void {
    const {rows} = this.args.plan;
    const {r} = this.dims;
    this.simd.packState(src, r, 1, 1, r, this.args.part(part, head, rows * 4), 1, rows);
  }

  private storeZ(part: 'z' | 'zLocal', head: number, dst: number): void {
    const {rows} = this.args.plan;
    this.simd.unpackState(this.args.part(part, head, rows * 4), 1, rows, 1, this.dims.r, dst);
    this.storage.close();
  }

  /** `transposed` of one head = the transpose of its `state`. */
  private transpose(head: number): void {
    const {rows, columns} = this.args.plan;
    const bytes = rows * columns * 4;
    const state = this.args.part('state', head, bytes);
    const to = this.args.part('transposed', head, bytes);
    this.simd.transposeState(state, rows, columns, to);
  }
}
