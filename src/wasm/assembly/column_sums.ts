/** Rows added up before their sum joins the total: rounding errors grow with this, not with the number of rows. */
const CHUNK: i32 = 128;

/** out[n] = sum over m of x[m][n]; x is M x N. */
export function columnSums(M: i32, N: i32, x: usize, out: usize): void {
  const row = (<usize>N) << 2;
  memory.fill(out, 0, row);
  for (let m = 0; m < M; m += CHUNK) {
    addChunk(min(CHUNK, M - m), N, x + <usize>m * row, out);
  }
}

function addChunk(M: i32, N: i32, x: usize, out: usize): void {
  const row = (<usize>N) << 2;
  const end = <usize>M * row;
  let n = 0;
  for (; n + 16 <= N; n += 16) {
    let s0 = f32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    const from = x + ((<usize>n) << 2);
    for (let at = from; at != from + end; at += row) {
      s0 = f32x4.add(s0, v128.load(at));
      s1 = f32x4.add(s1, v128.load(at, 16));
      s2 = f32x4.add(s2, v128.load(at, 32));
      s3 = f32x4.add(s3, v128.load(at, 48));
    }
    const to = out + ((<usize>n) << 2);
    v128.store(to, f32x4.add(v128.load(to), s0));
    v128.store(to, f32x4.add(v128.load(to, 16), s1), 16);
    v128.store(to, f32x4.add(v128.load(to, 32), s2), 32);
    v128.store(to, f32x4.add(v128.load(to, 48), s3), 48);
  }
  for (; n < N; n++) {
    let s: f32 = 0;
    const from = x + ((<usize>n) << 2);
    for (let at = from; at != from + end; at += row) {
      s += load<f32>(at);
    }
    const to = out + ((<usize>n) << 2);
    store<f32>(to, load<f32>(to) + s);
  }
}
