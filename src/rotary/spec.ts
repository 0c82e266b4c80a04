/**
 * The kernel of rotary embedding. Inputs x, [B,H,N,r] or [B,N,H,r] (attribute `dataFormat`), and the tables cos and sin,
 * [1,N,r] or [B,N,r], where sin is negative for the first member of a pair; attribute `pairing`. Output like x:
 *
 *     y = x cos + swapped(x) sin,   `swapped` exchanges the members of each pair.
 */
export const Rotate = 'RotatePairs';

/** 'half' pairs x_i with x_(i + r/2), 'interleaved' x_2i with x_(2i+1). */
export type RotaryPairing = 'half' | 'interleaved';
