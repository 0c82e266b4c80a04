// Linear attention as TensorFlow operations of the process that tfjs-node runs in: forward, backward and one step.
//
// The scan is that of the wasm core: f(A, B, C; S)_t = a_t . (S + sum_{s <= t} b_s c_s^T). A tile of the state, four
// rows wide, stays in registers while all tokens of a block pass through it; each token adds to the tile before it
// reads it, so there is no triangle and a later token never touches an earlier one. The derivatives are the same scan:
//
//     output   = f(Q, K, V; S) / denominator           dQ = f(dN, V, K; S^T) + e z
//     dK, dV   = f(V, dN, Q; G^T) + w,  f(K, Q, dN; G)  from the last token to the first
//
// with dN = dY / denominator, e = -(dN . Y), z the running sum of K, w that of e Q, G the gradient of the state (see
// src/linear_attention/composed.ts). Letters: B batch, H heads, N length, r features, d values. Q and K are mapped.
//
// Built by scripts/node/native_operation.mjs with one compiler call. TensorFlow's C API is declared here, because the
// headers that come with some of its builds lack the part that is used.
#include <sched.h>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <thread>
#include <utility>

namespace {

#define INLINE __attribute__((always_inline)) inline


// Rows in scratch memory are filled up with zeros to whole vectors of 16; rows of a state to whole tiles of 4.
constexpr int64_t kVector = 16;
constexpr int64_t kTile = 4;
// Tokens that pass through the state together. What they need lies in the first-level cache.
constexpr int64_t kBlock = 32;

typedef float Tile __attribute__((vector_size(16), may_alias));

constexpr int64_t roundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

enum Map { kIdentity, kElu, kRelu, kSquaredRelu, kExp };  // the order of POINTWISE_MAPS in src/pointwise.ts

struct Call {
  int64_t B, H, Nq, Nk, r, d;
  Map map;
  bool causal, normalize, bnhd;
  float eps, scale;
  const float *q, *k, *v, *mask, *s, *z;  // mask, s and z may be null
  const float *outputIn, *inverseIn, *dOutput, *dS, *dZ;  // backward; dS and dZ may be null
  float *output, *sOut, *zOut, *inverse;  // forward; all but output may be null
  float *dq, *dk, *dv, *ds, *dz;          // backward; ds and dz may be null
};

// What a thread works in: carved out of one allocation, which lives as long as the thread.
struct Scratch {
  float *state, *transposed, *z, *w, *keys, *queries, *values, *dNumerators, *outputs, *pairs, *e;
  int64_t R, D, rows, columns;  // r and d in whole vectors, and in whole tiles

  Scratch(int64_t r, int64_t d) : R(roundUp(r, kVector)), D(roundUp(d, kVector)) {
    rows = roundUp(r, kTile);
    columns = roundUp(d, kTile);
    const int64_t wide = R > D ? R : D;
    const int64_t sizes[] = {rows * D,   columns * R, R,             R,                 kBlock * R, kBlock * R,
                             kBlock * D, kBlock * D,  kBlock * wide, 2 * kBlock * wide, kBlock};
    float** parts[] = {&state, &transposed, &z, &w, &keys, &queries, &values, &dNumerators, &outputs, &pairs, &e};
    int64_t total = 0;
    for (int64_t size : sizes) total += roundUp(size, kVector);
    float* at = memory(total);
    for (int i = 0; i < 11; i++) {
      *parts[i] = at;
      at += roundUp(sizes[i], kVector);
    }
  }

 private:
  static float* memory(int64_t size) {
    struct Memory {
      float* at = nullptr;
      int64_t size = 0;
      ~Memory() { free(at); }
    };
    static thread_local Memory kept;
    if (kept.size < size) {
      free(kept.at);
      kept.at = (float*)aligned_alloc(64, size * sizeof(float));
      kept.size = size;
    }
    return kept.at;
  }
};

// The rows of one head: row n of an array with `width` numbers a row.
struct Head {
  const Call& c;
  int64_t index, b, h;

  Head(const Call& c, int64_t index) : c(c), index(index), b(index / c.H), h(index % c.H) {}
  int64_t row(int64_t n, int64_t N, int64_t width) const {
    return (c.bnhd ? (b * N + n) * c.H + h : index * N + n) * width;
  }
  bool keeps(int64_t n) const { return !c.mask || c.mask[b * c.Nk + n] != 0; }
};

// Blocks of tokens; a reversed one holds its last token first.
struct Block {
  int64_t first, count;
  bool reverse;
  int64_t token(int64_t t) const { return reverse ? first + count - 1 - t : first + t; }
};

INLINE int64_t blocksOf(int64_t N) { return (N + kBlock - 1) / kBlock; }

INLINE Block blockAt(int64_t i, int64_t N) {
  const int64_t first = i * kBlock;
  return {first, N - first < kBlock ? N - first : kBlock, false};
}

// The same from the end.
INLINE Block blockFromEnd(int64_t i, int64_t N) {
  Block block = blockAt(blocksOf(N) - 1 - i, N);
  block.reverse = true;
  return block;
}

// ---- What follows is built once for each kind of processor, by the size of its vectors.

template <int kBytes>
struct Kernels {

typedef float V __attribute__((vector_size(kBytes), may_alias));
typedef int32_t I __attribute__((vector_size(kBytes), may_alias));
typedef float Unaligned __attribute__((vector_size(kBytes), may_alias, aligned(4)));
static constexpr int64_t kLanes = kBytes / sizeof(float);

// ---- Feature maps. NaN in, NaN out: every selection keeps x where a comparison with it is false.

// 2^y (1 + e) with |y| <= 1/2 and |e| < 1e-7; p(0) = 1.
static INLINE V powerOfTwo(V y) {
  const V yy = y * y;
  return (1.0f + y * 0.6931469763772637f) +
         yy * ((0.24022240451045662f + y * 0.055507350354502646f) +
               yy * (0.00967161962440307f + y * 0.0013264591493843344f));
}

static constexpr float kLog2E = 1.4426950408889634f;
static constexpr float kRound = 12582912.0f;  // adding 1.5 * 2^23 rounds to a whole number, which is then in the low bits

// x > 0 ? x + 1 : exp(x)
static INLINE V elu(V x) {
  const V low = x < 0.0f ? x : x * 0.0f;
  const V bits = low * kLog2E + kRound;
  const V n = bits - kRound;
  const V p = powerOfTwo(low * kLog2E - n);
  // The exponent is added to the bits of p; below -87.3 exp(x) is not a normal number.
  const V e = (V)((I)p + ((I)bits << 23));
  const V zero = {};
  return x <= 0.0f ? (low < -87.3f ? zero : e) : x + 1.0f;
}

// exp(x) over the whole range of float, denormal numbers and infinity included: 2^n is applied in two halves.
static INLINE V exponential(V x) {
  const V least = x * 0.0f - 104.0f, most = x * 0.0f + 89.0f;
  const V c = x < -104.0f ? least : (x > 89.0f ? most : x);
  const V bits = c * kLog2E + kRound;
  const V n = bits - kRound;
  // ln 2 in two parts, so that n times the first is exact.
  const V y = ((c - n * 0.693145751953125f) - n * 1.428606765330187e-6f) * kLog2E;
  const I whole = (I)bits - 0x4b400000;
  const I half = whole >> 1;
  const I one = (I)(x * 0.0f + 1.0f);
  return powerOfTwo(y) * (V)(one + (half << 23)) * (V)(one + ((whole - half) << 23));
}

static INLINE V mapped(Map map, V x) {
  const V positive = x <= 0.0f ? x * 0.0f : x;
  switch (map) {
    case kElu: return elu(x);
    case kRelu: return positive;
    case kSquaredRelu: return positive * positive;
    case kExp: return exponential(x);
    default: return x;
  }
}

// phi'(x) from phi(x).
static INLINE V slope(Map map, V phi) {
  const V zero = {}, one = zero + 1.0f;
  switch (map) {
    case kElu: return phi > 1.0f ? one : phi;
    case kRelu: return phi > 0.0f ? one : zero;
    case kSquaredRelu: {
      alignas(kBytes) float root[kLanes];
      *(V*)root = phi;
      for (int64_t i = 0; i < kLanes; i++) root[i] = 2 * __builtin_sqrtf(root[i]);
      return *(V*)root;
    }
    case kExp: return phi;
    default: return one;
  }
}

// ---- Rows between the caller's arrays (any width) and scratch (whole vectors).

static INLINE V& vec(float* at) { return *(V*)at; }
static INLINE const V& vec(const float* at) { return *(const V*)at; }

// f(vector, index of its first element) for a row of `width` numbers; lanes beyond it are 0.
template <class F>
static INLINE void eachVector(const float* row, int64_t width, F f) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) f((V)*(const Unaligned*)(row + i), i);
  if (i < width) {
    V tail = {};
    memcpy(&tail, row + i, (width - i) * sizeof(float));
    f(tail, i);
  }
}

// Writes `width` numbers of the row whose vectors are value(index).
template <class F>
static INLINE void writeRow(float* row, int64_t width, F value) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) *(Unaligned*)(row + i) = value(i);
  if (i < width) {
    const V tail = value(i);
    memcpy(row + i, &tail, (width - i) * sizeof(float));
  }
}

static INLINE void zero(float* row, int64_t padded) {
  const V none = {};
  for (int64_t i = 0; i < padded; i += kLanes) vec(row + i) = none;
}

static INLINE void loadRow(const float* row, int64_t width, float* out) {
  eachVector(row, width, [&](V x, int64_t i) { vec(out + i) = x; });
}

static INLINE void mapRow(const float* row, int64_t width, Map map, float* out) {
  eachVector(row, width, [&](V x, int64_t i) { vec(out + i) = mapped(map, x); });
  for (int64_t i = width; i < roundUp(width, kVector); i++) out[i] = 0;
}

static INLINE float sum(V x) {
  alignas(kBytes) float lanes[kLanes];
  *(V*)lanes = x;
  for (int64_t n = kLanes / 2; n > 0; n /= 2)
    for (int64_t i = 0; i < n; i++) lanes[i] += lanes[i + n];
  return lanes[0];
}

static INLINE float dot(const float* x, const float* y, int64_t padded) {
  V total = {};
  for (int64_t i = 0; i < padded; i += kLanes) total += vec(x + i) * vec(y + i);
  return sum(total);
}

// ---- The scan.

// pairs[rows / 4][count][4 of b, 4 of a] from rows of b and a that are `step` apart. A null is left out.
static INLINE void interleave(const float* b, const float* a, int64_t rows, int64_t step, int64_t count, float* pairs) {
  for (int64_t i = 0; i < rows; i += kTile) {
    for (int64_t t = 0; t < count; t++, pairs += 2 * kTile) {
      if (b) *(Tile*)pairs = *(const Tile*)(b + t * step + i);
      if (a) *(Tile*)(pairs + kTile) = *(const Tile*)(a + t * step + i);
    }
  }
}

// One panel of columns. kWrite: tokens add b c^T to the state; kRead: they add a . state to their outputs.
template <int kVectors, bool kWrite, bool kRead>
static INLINE void scanPanel(float* state, const float* pairs, int64_t rows, int64_t columns, int64_t count, const float* c,
                      float* o) {
  for (int64_t i = 0; i < rows; i += kTile) {
    V tile[kTile][kVectors];
    for (int j = 0; j < kTile; j++)
      for (int x = 0; x < kVectors; x++) tile[j][x] = *(V*)(state + (i + j) * columns + x * kLanes);
    for (int64_t t = 0; t < count; t++, pairs += 2 * kTile) {
      for (int x = 0; kWrite && x < kVectors; x++) {
        const V value = *(const V*)(c + t * columns + x * kLanes);
        for (int j = 0; j < kTile; j++) tile[j][x] += pairs[j] * value;
      }
      for (int x = 0; kRead && x < kVectors; x++) {
        V output = *(V*)(o + t * columns + x * kLanes);
        for (int j = 0; j < kTile; j++) output += pairs[kTile + j] * tile[j][x];
        *(V*)(o + t * columns + x * kLanes) = output;
      }
    }
    for (int j = 0; kWrite && j < kTile; j++)
      for (int x = 0; x < kVectors; x++) *(V*)(state + (i + j) * columns + x * kLanes) = tile[j][x];
  }
}

// A block of tokens through a state [rows, columns]; rows of c and o are `columns` apart. A panel is as wide as the
// registers hold.
template <bool kWrite, bool kRead>
static INLINE void scan(float* state, const float* pairs, int64_t rows, int64_t columns, int64_t count, const float* c,
                 float* o) {
  int64_t j = 0;
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes)
    scanPanel<2, kWrite, kRead>(state + j, pairs, rows, columns, count, c + j, o + j);
  for (; j < columns; j += kLanes)
    scanPanel<1, kWrite, kRead>(state + j, pairs, rows, columns, count, c + j, o + j);
}

// ---- One head.

static INLINE void loadQueries(const Head& head, Block block, Scratch& m) {
  const Call& c = head.c;
  for (int64_t t = 0; t < block.count; t++)
    mapRow(c.q + head.row(block.token(t), c.Nq, c.r), c.r, c.map, m.queries + t * m.R);
}

// Mapped and masked. `from` holds k, or phi(k) when `map` is the identity.
static INLINE void loadKeys(const Head& head, Block block, const float* from, Map map, Scratch& m) {
  const Call& c = head.c;
  for (int64_t t = 0; t < block.count; t++) {
    const int64_t n = block.token(t);
    if (head.keeps(n))
      mapRow(from + head.row(n, c.Nk, c.r), c.r, map, m.keys + t * m.R);
    else
      zero(m.keys + t * m.R, m.R);
  }
}

static INLINE void loadValues(const Head& head, Block block, Scratch& m) {
  const Call& c = head.c;
  for (int64_t t = 0; t < block.count; t++) {
    const int64_t n = block.token(t);
    if (head.keeps(n))
      loadRow(c.v + head.row(n, c.Nk, c.d), c.d, m.values + t * m.D);
    else
      zero(m.values + t * m.D, m.D);
  }
}

// state [rows, width] = src [height, columns] (zeros where src is null), and its transpose.
static INLINE void loadState(const float* src, int64_t height, int64_t width, int64_t padded, float* state) {
  for (int64_t i = 0; i < roundUp(height, kTile); i++) {
    zero(state + i * padded, padded);
    if (src && i < height) memcpy(state + i * padded, src + i * width, width * sizeof(float));
  }
}

static INLINE void loadTransposed(const float* src, int64_t height, int64_t width, int64_t padded, float* state) {
  loadState(nullptr, width, height, padded, state);
  for (int64_t i = 0; src && i < height; i++)
    for (int64_t j = 0; j < width; j++) state[j * padded + i] = src[i * width + j];
}

static INLINE void storeState(const float* state, int64_t height, int64_t width, int64_t padded, float* dst) {
  for (int64_t i = 0; dst && i < height; i++) memcpy(dst + i * width, state + i * padded, width * sizeof(float));
}

static INLINE void loadZ(const float* src, int64_t r, float* z) {
  zero(z, roundUp(r, kVector));
  if (src) memcpy(z, src, r * sizeof(float));
}

// z += row * factor
static INLINE void accumulate(float* z, const float* row, float factor, int64_t padded) {
  for (int64_t i = 0; i < padded; i += kLanes) vec(z + i) += vec(row + i) * factor;
}

// out = row * factor
static INLINE void scaled(const float* row, float factor, float* out, int64_t padded) {
  for (int64_t i = 0; i < padded; i += kLanes) vec(out + i) = vec(row + i) * factor;
}

static INLINE float inverseOf(float denominator, float eps) { return denominator == 0 ? 0 : 1 / (denominator + eps); }

static INLINE void storeOutput(const Head& head, int64_t n, const float* numerator, float factor, bool none) {
  const Call& c = head.c;
  writeRow(c.output + head.row(n, c.Nq, c.d), c.d, [&](int64_t i) {
    const V nothing = {};
    return none ? nothing : vec(numerator + i) * factor;
  });
}

static INLINE void forwardHead(const Call& c, int64_t index) {
  const Head head(c, index);
  Scratch m(c.r, c.d);
  loadState(c.s ? c.s + index * c.r * c.d : nullptr, c.r, c.d, m.D, m.state);
  loadZ(c.z ? c.z + index * c.r : nullptr, c.r, m.z);

  if (!c.causal) {
    for (int64_t i = 0; i < blocksOf(c.Nk); i++) {
      const Block block = blockAt(i, c.Nk);
      loadKeys(head, block, c.k, c.map, m);
      loadValues(head, block, m);
      for (int64_t t = 0; t < block.count; t++) accumulate(m.z, m.keys + t * m.R, 1, m.R);
      interleave(m.keys, nullptr, m.rows, m.R, block.count, m.pairs);
      scan<true, false>(m.state, m.pairs, m.rows, m.D, block.count, m.values, nullptr);
    }
  }
  for (int64_t i = 0; i < blocksOf(c.Nq); i++) {
    const Block block = blockAt(i, c.Nq);
    loadQueries(head, block, m);
    if (c.causal) {
      loadKeys(head, block, c.k, c.map, m);
      loadValues(head, block, m);
    }
    for (int64_t t = 0; t < block.count; t++) {
      if (c.causal) accumulate(m.z, m.keys + t * m.R, 1, m.R);
      if (c.normalize) {
        m.e[t] = inverseOf(dot(m.queries + t * m.R, m.z, m.R), c.eps);
        c.inverse[head.row(block.token(t), c.Nq, 1)] = m.e[t];
      }
      zero(m.outputs + t * m.D, m.D);
    }
    interleave(c.causal ? m.keys : nullptr, m.queries, m.rows, m.R, block.count, m.pairs);
    if (c.causal)
      scan<true, true>(m.state, m.pairs, m.rows, m.D, block.count, m.values, m.outputs);
    else
      scan<false, true>(m.state, m.pairs, m.rows, m.D, block.count, nullptr, m.outputs);
    for (int64_t t = 0; t < block.count; t++)
      storeOutput(head, block.token(t), m.outputs + t * m.D, c.normalize ? m.e[t] : c.scale,
                  c.normalize && m.e[t] == 0);
  }
  storeState(m.state, c.r, c.d, m.D, c.sOut ? c.sOut + index * c.r * c.d : nullptr);
  storeState(m.z, 1, c.r, m.R, c.zOut ? c.zOut + index * c.r : nullptr);
}

// dN and e of a block.
static INLINE void loadGradients(const Head& head, Block block, Scratch& m) {
  const Call& c = head.c;
  for (int64_t t = 0; t < block.count; t++) {
    const int64_t row = head.row(block.token(t), c.Nq, c.d);
    const float factor = c.normalize ? c.inverseIn[head.row(block.token(t), c.Nq, 1)] : c.scale;
    float* dN = m.dNumerators + t * m.D;
    eachVector(c.dOutput + row, c.d, [&](V x, int64_t i) { vec(dN + i) = x * factor; });
    V total = {};
    if (c.normalize) eachVector(c.outputIn + row, c.d, [&](V y, int64_t i) { total -= vec(dN + i) * y; });
    m.e[t] = sum(total);
  }
}

// d phi(x) in `gradient` becomes dx, in the caller's array.
static INLINE void storeGradient(const Call& c, const float* gradient, const float* phi, float* dst) {
  writeRow(dst, c.r, [&](int64_t i) { return vec(gradient + i) * slope(c.map, vec(phi + i)); });
}

static INLINE void clear(float* dst, int64_t width) { memset(dst, 0, width * sizeof(float)); }

// dk from m.outputs.
static INLINE void storeKeyGradients(const Head& head, Block block, Scratch& m) {
  const Call& c = head.c;
  for (int64_t t = 0; t < block.count; t++) {
    const int64_t n = block.token(t);
    float* dk = c.dk + head.row(n, c.Nk, c.r);
    if (head.keeps(n))
      storeGradient(c, m.outputs + t * m.R, m.keys + t * m.R, dk);
    else
      clear(dk, c.r);
  }
}

static INLINE void storeValueGradients(const Head& head, Block block, Scratch& m) {
  const Call& c = head.c;
  for (int64_t t = 0; t < block.count; t++) {
    const int64_t n = block.token(t);
    float* dv = c.dv + head.row(n, c.Nk, c.d);
    if (head.keeps(n))
      writeRow(dv, c.d, [&](int64_t i) { return vec(m.outputs + t * m.D + i); });
    else
      clear(dv, c.d);
  }
}

// phi is computed once: the first pass leaves phi(k) in dk and, when causal, d phi(q) in dq.
static INLINE void backwardHead(const Call& c, int64_t index) {
  const Head head(c, index);
  Scratch m(c.r, c.d);
  loadTransposed(c.s ? c.s + index * c.r * c.d : nullptr, c.r, c.d, m.R, m.transposed);
  loadZ(c.z ? c.z + index * c.r : nullptr, c.r, m.z);

  for (int64_t i = 0; i < blocksOf(c.Nk); i++) {
    const Block block = blockAt(i, c.Nk);
    loadKeys(head, block, c.k, c.map, m);
    loadValues(head, block, m);
    if (c.causal) loadGradients(head, block, m);
    for (int64_t t = 0; t < block.count; t++) {
      const float* key = m.keys + t * m.R;
      writeRow(c.dk + head.row(block.token(t), c.Nk, c.r), c.r, [&](int64_t i) { return vec(key + i); });
      accumulate(m.z, key, 1, m.R);
      if (c.causal) scaled(m.z, m.e[t], m.outputs + t * m.R, m.R);
    }
    interleave(m.values, c.causal ? m.dNumerators : nullptr, m.columns, m.D, block.count, m.pairs);
    if (!c.causal) {
      scan<true, false>(m.transposed, m.pairs, m.columns, m.R, block.count, m.keys, nullptr);
      continue;
    }
    scan<true, true>(m.transposed, m.pairs, m.columns, m.R, block.count, m.keys, m.outputs);
    for (int64_t t = 0; t < block.count; t++)
      writeRow(c.dq + head.row(block.token(t), c.Nq, c.r), c.r,
               [&](int64_t i) { return vec(m.outputs + t * m.R + i); });
  }

  const float* dS = c.dS ? c.dS + index * c.r * c.d : nullptr;
  const float* dZ = c.dZ ? c.dZ + index * c.r : nullptr;
  loadState(dS, c.r, c.d, m.D, m.state);
  loadZ(dZ, c.r, m.w);
  if (c.causal) {
    loadTransposed(dS, c.r, c.d, m.R, m.transposed);
  } else {
    for (int64_t i = 0; i < blocksOf(c.Nq); i++) {
      const Block block = blockAt(i, c.Nq);
      loadQueries(head, block, m);
      loadGradients(head, block, m);
      for (int64_t t = 0; t < block.count; t++) {
        scaled(m.z, m.e[t], m.outputs + t * m.R, m.R);
        accumulate(m.w, m.queries + t * m.R, m.e[t], m.R);
      }
      interleave(nullptr, m.dNumerators, m.columns, m.D, block.count, m.pairs);
      scan<false, true>(m.transposed, m.pairs, m.columns, m.R, block.count, nullptr, m.outputs);
      for (int64_t t = 0; t < block.count; t++)
        storeGradient(c, m.outputs + t * m.R, m.queries + t * m.R, c.dq + head.row(block.token(t), c.Nq, c.r));
      interleave(m.queries, nullptr, m.rows, m.R, block.count, m.pairs);
      scan<true, false>(m.state, m.pairs, m.rows, m.D, block.count, m.dNumerators, nullptr);
    }
    for (int64_t i = 0; i < m.rows; i++)
      for (int64_t j = 0; j < m.columns; j++) m.transposed[j * m.R + i] = m.state[i * m.D + j];
  }

  for (int64_t i = 0; i < blocksOf(c.Nk); i++) {
    const Block block = blockFromEnd(i, c.Nk);
    loadKeys(head, block, c.dk, kIdentity, m);
    loadValues(head, block, m);
    if (c.causal) {
      loadQueries(head, block, m);
      loadGradients(head, block, m);
    }
    for (int64_t t = 0; t < block.count; t++) {
      if (c.causal) accumulate(m.w, m.queries + t * m.R, m.e[t], m.R);
      scaled(m.w, 1, m.outputs + t * m.R, m.R);
    }
    interleave(c.causal ? m.dNumerators : nullptr, m.values, m.columns, m.D, block.count, m.pairs);
    if (c.causal)
      scan<true, true>(m.transposed, m.pairs, m.columns, m.R, block.count, m.queries, m.outputs);
    else
      scan<false, true>(m.transposed, m.pairs, m.columns, m.R, block.count, nullptr, m.outputs);
    storeKeyGradients(head, block, m);

    for (int64_t t = 0; t < block.count; t++) zero(m.outputs + t * m.D, m.D);
    interleave(c.causal ? m.queries : nullptr, m.keys, m.rows, m.R, block.count, m.pairs);
    if (c.causal)
      scan<true, true>(m.state, m.pairs, m.rows, m.D, block.count, m.dNumerators, m.outputs);
    else
      scan<false, true>(m.state, m.pairs, m.rows, m.D, block.count, nullptr, m.outputs);
    storeValueGradients(head, block, m);
    for (int64_t t = 0; c.causal && t < block.count; t++) {
      float* dq = c.dq + head.row(block.token(t), c.Nq, c.r);
      loadRow(dq, c.r, m.outputs);
      storeGradient(c, m.outputs, m.queries + t * m.R, dq);
    }
  }
  storeState(m.state, c.r, c.d, m.D, c.ds ? c.ds + index * c.r * c.d : nullptr);
  storeState(m.w, 1, c.r, m.R, c.dz ? c.dz + index * c.r : nullptr);
}

// One token of all heads: q, k [H,r], v [H,d]; the states are read and written once, where they are.
static INLINE void stepHead(const Call& c, int64_t index) {
  Scratch m(c.r, c.d);
  const float* v = c.v + index * c.d;
  mapRow(c.q + index * c.r, c.r, c.map, m.queries);
  mapRow(c.k + index * c.r, c.r, c.map, m.keys);
  loadZ(c.z + index * c.r, c.r, m.z);
  accumulate(m.z, m.keys, 1, m.R);
  memcpy(c.zOut + index * c.r, m.z, c.r * sizeof(float));
  zero(m.outputs, m.D);
  for (int64_t i = 0; i < c.r; i++) {
    const float key = m.keys[i], query = m.queries[i];
    const float* from = c.s + (index * c.r + i) * c.d;
    float* to = c.sOut + (index * c.r + i) * c.d;
    eachVector(from, c.d, [&](V s, int64_t j) {
      V value = {};
      memcpy(&value, v + j, (c.d - j < kLanes ? c.d - j : kLanes) * sizeof(float));
      s += key * value;
      vec(m.outputs + j) += query * s;
      memcpy(to + j, &s, (c.d - j < kLanes ? c.d - j : kLanes) * sizeof(float));
    });
  }
  const float inverse = c.normalize ? inverseOf(dot(m.queries, m.z, m.R), c.eps) : c.scale;
  writeRow(c.output + index * c.d, c.d, [&](int64_t j) {
    const V nothing = {};
    return c.normalize && inverse == 0 ? nothing : vec(m.outputs + j) * inverse;
  });
}
};

// ---- One build of the above for each kind of processor.

enum Work { kForward, kBackward, kStep };

template <int kBytes>
INLINE void runHead(Work work, const Call& c, int64_t index) {
  typedef Kernels<kBytes> K;
  if (work == kForward) K::forwardHead(c, index);
  if (work == kBackward) K::backwardHead(c, index);
  if (work == kStep) K::stepHead(c, index);
}

__attribute__((flatten, target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"))) void avx512(Work work, const Call& c,
                                                                                          int64_t index) {
  runHead<64>(work, c, index);
}

__attribute__((flatten, target("avx2,fma"))) void avx2(Work work, const Call& c, int64_t index) {
  runHead<32>(work, c, index);
}

__attribute__((flatten)) void baseline(Work work, const Call& c, int64_t index) { runHead<16>(work, c, index); }

typedef void (*RunHead)(Work, const Call&, int64_t);

// The best that the processor has; TFLA_TARGET=avx2 or baseline asks for less, to compare.
RunHead chooseTarget() {
  const char* wanted = getenv("TFLA_TARGET");
  const bool any = !wanted || !*wanted;
  const bool has512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  const bool has2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has512 && has2 && (any || !strcmp(wanted, "avx512"))) return avx512;
  if (has2 && (any || !strcmp(wanted, "avx2"))) return avx2;
  return baseline;
}

// ---- Threads.

// As many as TensorFlow is told to use inside an operation, else the processors that this process may use.
int threadCount() {
  const char* wanted = getenv("TF_NUM_INTRAOP_THREADS");
  const int count = wanted ? atoi(wanted) : 0;
  if (count > 0) return count;
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Threads that wait for work. They are never ended: the process's end does that. One call at a time has them; another,
// from a worker thread, meanwhile works alone.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; i++) std::thread(&Pool::wait, this).detach();
  }

  void each(int64_t count, const std::function<void(int64_t)>& task) {
    std::unique_lock<std::mutex> alone(calls, std::try_to_lock);
    if (!alone.owns_lock()) {
      for (int64_t i = 0; i < count; i++) task(i);
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mutex);
      current = &task;
      tasks = count;
      next = 0;
    }
    wake.notify_all();
    work();
    std::unique_lock<std::mutex> lock(mutex);
    done.wait(lock, [&] { return running == 0; });
    current = nullptr;
  }

 private:
  void work() {
    for (int64_t i; (i = next.fetch_add(1)) < tasks;) (*current)(i);
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return current && next < tasks; });
      running++;
      lock.unlock();
      work();
      lock.lock();
      if (--running == 0) done.notify_all();
    }
  }

  std::mutex calls, mutex;
  std::condition_variable wake, done;
  const std::function<void(int64_t)>* current = nullptr;
  int64_t tasks = 0;
  std::atomic<int64_t> next{0};
  int running = 0;
};

// Below this many multiplications waking a thread takes longer than it saves.
constexpr double kAlone = 1e6;

void run(Work work, const Call& c) {
  static const RunHead runHead = chooseTarget();
  static Pool* const pool = new Pool(threadCount());
  const int64_t heads = c.B * c.H;
  const double size = double(heads) * double(c.Nq + c.Nk) * double(c.r) * double(c.d);
  if (heads > 1 && size > kAlone) {
    pool->each(heads, [&](int64_t i) { runHead(work, c, i); });
  } else {
    for (int64_t i = 0; i < heads; i++) runHead(work, c, i);
  }
}

}  // namespace

// ---- TensorFlow operations. TFLA_CORE_ONLY leaves them out: a test program includes the rest (test/node/fuzz.cc).
#ifndef TFLA_CORE_ONLY
#include <node_api.h>

extern "C" {
typedef struct TF_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;

TF_Status* TF_NewStatus();
void TF_DeleteStatus(TF_Status*);
void TF_SetStatus(TF_Status*, int code, const char* message);
int TF_GetCode(const TF_Status*);
const char* TF_Message(const TF_Status*);
int TF_NumDims(const TF_Tensor*);
int64_t TF_Dim(const TF_Tensor*, int index);
void* TF_TensorData(const TF_Tensor*);
void TF_DeleteTensor(TF_Tensor*);
TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* name);
void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder*,
                                                     void (*)(TF_ShapeInferenceContext*, TF_Status*));
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext*, TF_Status*);
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder*, TF_Status*);
TF_KernelBuilder* TF_NewKernelBuilder(const char* name, const char* device, void* (*create)(TF_OpKernelConstruction*),
                                      void (*compute)(void*, TF_OpKernelContext*), void (*remove)(void*));
void TF_RegisterKernelBuilder(const char* name, TF_KernelBuilder*, TF_Status*);
void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction*, const char*, int32_t*, TF_Status*);
void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction*, const char*, float*, TF_Status*);
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction*, const char*, unsigned char*, TF_Status*);
void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction*, TF_Status*);
void TF_GetInput(TF_OpKernelContext*, int index, TF_Tensor**, TF_Status*);
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext*, int index, int type, const int64_t* dims, int rank, size_t bytes,
                             TF_Status*);
void TF_OpKernelContext_Failure(TF_OpKernelContext*, TF_Status*);
}

namespace {

constexpr int kFloat = 1, kInvalidArgument = 3;

struct Status {
  TF_Status* const status = TF_NewStatus();
  ~Status() { TF_DeleteStatus(status); }
  bool ok() const { return TF_GetCode(status) == 0; }
};

// The attributes of src/linear_attention/spec.ts.
struct Attributes {
  int32_t map;
  unsigned char causal, normalize, bnhd, hasMask, hasState, returnState;
  float eps, scale;
};

void* create(TF_OpKernelConstruction* context) {
  Status s;
  Attributes* a = new Attributes();
  TF_OpKernelConstruction_GetAttrInt32(context, "map", &a->map, s.status);
  if (s.ok()) TF_OpKernelConstruction_GetAttrFloat(context, "eps", &a->eps, s.status);
  if (s.ok()) TF_OpKernelConstruction_GetAttrFloat(context, "scale", &a->scale, s.status);
  const std::pair<const char*, unsigned char*> flags[] = {
      {"causal", &a->causal},     {"normalize", &a->normalize}, {"bnhd", &a->bnhd},
      {"has_mask", &a->hasMask}, {"has_state", &a->hasState},  {"return_state", &a->returnState}};
  for (const auto& flag : flags)
    if (s.ok()) TF_OpKernelConstruction_GetAttrBool(context, flag.first, flag.second, s.status);
  if (!s.ok()) TF_OpKernelConstruction_Failure(context, s.status);
  return a;
}

void destroy(void* attributes) { delete (Attributes*)attributes; }

// One call's tensors. After a failure everything is null and `ok` is false.
class Tensors {
 public:
  explicit Tensors(TF_OpKernelContext* context) : context(context) {}
  ~Tensors() {
    for (int i = 0; i < count; i++) TF_DeleteTensor(all[i]);
  }

  // The values of input `index`, whose shape must be the given one, unless it is empty (a placeholder: null).
  const float* input(int index, std::initializer_list<int64_t> shape) {
    TF_Tensor* tensor = get(index);
    if (!tensor || shape.size() == 0) return nullptr;
    bool same = TF_NumDims(tensor) == int(shape.size());
    int axis = 0;
    for (int64_t size : shape) same = same && TF_Dim(tensor, axis++) == size;
    if (!same) fail("an input has another shape than the others ask for");
    return same ? (const float*)TF_TensorData(tensor) : nullptr;
  }

  int64_t dim(int index, int axis, int rank) {
    TF_Tensor* tensor = get(index);
    if (!tensor) return 0;
    if (TF_NumDims(tensor) != rank) {
      fail("an input has another rank than expected");
      return 0;
    }
    return TF_Dim(tensor, axis);
  }

  // Memory for output `index`; with an empty shape a placeholder, [1] of 0, and null.
  float* output(int index, std::initializer_list<int64_t> shape) {
    if (!ok) return nullptr;
    const int64_t one[] = {1};
    int64_t size = 1;
    for (int64_t n : shape) size *= n;
    TF_Tensor* tensor = TF_AllocateOutput(context, index, kFloat, shape.size() ? shape.begin() : one,
                                          shape.size() ? int(shape.size()) : 1, size * sizeof(float), status.status);
    if (!status.ok()) {
      report();
      return nullptr;
    }
    keep(tensor);
    float* values = (float*)TF_TensorData(tensor);
    if (shape.size()) return values;
    *values = 0;
    return nullptr;
  }

  bool ok = true;

 private:
  TF_Tensor* get(int index) {
    if (!ok) return nullptr;
    TF_Tensor* tensor = nullptr;
    TF_GetInput(context, index, &tensor, status.status);
    if (!status.ok()) {
      report();
      return nullptr;
    }
    return keep(tensor);
  }
  TF_Tensor* keep(TF_Tensor* tensor) { return all[count++] = tensor; }
  void fail(const char* message) {
    TF_SetStatus(status.status, kInvalidArgument, message);
    report();
  }
  void report() {
    ok = false;
    TF_OpKernelContext_Failure(context, status.status);
  }

  TF_OpKernelContext* context;
  Status status;
  TF_Tensor* all[32];
  int count = 0;
};

// The three leading dimensions of arrays with a row for each query, or each key.
#define QUERY_ROWS(c) c.B, c.bnhd ? c.Nq : c.H, c.bnhd ? c.H : c.Nq
#define KEY_ROWS(c) c.B, c.bnhd ? c.Nk : c.H, c.bnhd ? c.H : c.Nk

// Sizes, options and the inputs 0 to 5, which forward and backward share: q, k, v, mask, s, z.
Call callOf(const Attributes& a, Tensors& t) {
  Call c = {};
  const int length = a.bnhd ? 1 : 2, head = a.bnhd ? 2 : 1;
  c.B = t.dim(0, 0, 4);
  c.H = t.dim(0, head, 4);
  c.Nq = t.dim(0, length, 4);
  c.Nk = t.dim(1, length, 4);
  c.r = t.dim(0, 3, 4);
  c.d = t.dim(2, 3, 4);
  c.map = Map(a.map);
  c.causal = a.causal;
  c.normalize = a.normalize;
  c.bnhd = a.bnhd;
  c.eps = a.eps;
  c.scale = a.scale;
  c.q = t.input(0, {QUERY_ROWS(c), c.r});
  c.k = t.input(1, {KEY_ROWS(c), c.r});
  c.v = t.input(2, {KEY_ROWS(c), c.d});
  c.mask = a.hasMask ? t.input(3, {c.B, c.Nk}) : nullptr;
  c.s = a.hasState ? t.input(4, {c.B, c.H, c.r, c.d}) : nullptr;
  c.z = a.hasState ? t.input(5, {c.B, c.H, c.r}) : nullptr;
  return c;
}

void computeForward(void* attributes, TF_OpKernelContext* context) {
  const Attributes& a = *(const Attributes*)attributes;
  Tensors t(context);
  Call c = callOf(a, t);
  c.output = t.output(0, {QUERY_ROWS(c), c.d});
  c.sOut = a.returnState ? t.output(1, {c.B, c.H, c.r, c.d}) : t.output(1, {});
  c.zOut = a.returnState ? t.output(2, {c.B, c.H, c.r}) : t.output(2, {});
  c.inverse = a.normalize ? t.output(3, {QUERY_ROWS(c)}) : t.output(3, {});
  if (t.ok) run(kForward, c);
}

void computeBackward(void* attributes, TF_OpKernelContext* context) {
  const Attributes& a = *(const Attributes*)attributes;
  Tensors t(context);
  Call c = callOf(a, t);
  c.outputIn = t.input(6, {QUERY_ROWS(c), c.d});
  c.inverseIn = a.normalize ? t.input(7, {QUERY_ROWS(c)}) : nullptr;
  c.dOutput = t.input(8, {QUERY_ROWS(c), c.d});
  c.dS = a.returnState ? t.input(9, {c.B, c.H, c.r, c.d}) : nullptr;
  c.dZ = a.returnState ? t.input(10, {c.B, c.H, c.r}) : nullptr;
  c.dq = t.output(0, {QUERY_ROWS(c), c.r});
  c.dk = t.output(1, {KEY_ROWS(c), c.r});
  c.dv = t.output(2, {KEY_ROWS(c), c.d});
  c.ds = a.hasState ? t.output(3, {c.B, c.H, c.r, c.d}) : t.output(3, {});
  c.dz = a.hasState ? t.output(4, {c.B, c.H, c.r}) : t.output(4, {});
  if (t.ok) run(kBackward, c);
}

// q, k [B,H,r], v [B,H,d], s and z.
void computeStep(void* attributes, TF_OpKernelContext* context) {
  const Attributes& a = *(const Attributes*)attributes;
  Tensors t(context);
  Call c = {};
  c.B = t.dim(0, 0, 3);
  c.H = t.dim(0, 1, 3);
  c.Nq = c.Nk = 1;
  c.r = t.dim(0, 2, 3);
  c.d = t.dim(2, 2, 3);
  c.map = Map(a.map);
  c.normalize = a.normalize;
  c.eps = a.eps;
  c.scale = a.scale;
  c.q = t.input(0, {c.B, c.H, c.r});
  c.k = t.input(1, {c.B, c.H, c.r});
  c.v = t.input(2, {c.B, c.H, c.d});
  c.s = t.input(3, {c.B, c.H, c.r, c.d});
  c.z = t.input(4, {c.B, c.H, c.r});
  c.output = t.output(0, {c.B, c.H, c.d});
  c.sOut = t.output(1, {c.B, c.H, c.r, c.d});
  c.zOut = t.output(2, {c.B, c.H, c.r});
  if (t.ok) run(kStep, c);
}

void unknownShape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

void registerOperation(const char* name, std::initializer_list<const char*> inputs,
                       std::initializer_list<const char*> outputs, void (*compute)(void*, TF_OpKernelContext*),
                       TF_Status* status) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  for (const char* attribute :
       {"map: int", "eps: float", "scale: float", "causal: bool", "normalize: bool", "bnhd: bool", "has_mask: bool",
        "has_state: bool", "return_state: bool"})
    TF_OpDefinitionBuilderAddAttr(builder, attribute);
  for (const char* input : inputs) TF_OpDefinitionBuilderAddInput(builder, input);
  for (const char* output : outputs) TF_OpDefinitionBuilderAddOutput(builder, output);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknownShape);
  TF_RegisterOpDefinition(builder, status);
  if (TF_GetCode(status) == 0)
    TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", create, compute, destroy), status);
}

// Once in a process, however many threads load this file. Null, or what is wrong.
const char* registerAll() {
  static Status s;
  static const bool done = [] {
    registerOperation("TflaForward" TFLA_TAG, {"q: float", "k: float", "v: float", "mask: float", "s: float", "z: float"},
                      {"output: float", "s_out: float", "z_out: float", "inverse: float"}, computeForward, s.status);
    if (s.ok())
      registerOperation("TflaBackward" TFLA_TAG,
                        {"q: float", "k: float", "v: float", "mask: float", "s: float", "z: float", "output: float",
                         "inverse: float", "d_output: float", "d_s: float", "d_z: float"},
                        {"dq: float", "dk: float", "dv: float", "ds: float", "dz: float"}, computeBackward, s.status);
    if (s.ok())
      registerOperation("TflaStep" TFLA_TAG, {"q: float", "k: float", "v: float", "s: float", "z: float"},
                        {"output: float", "s_out: float", "z_out: float"}, computeStep, s.status);
    return true;
  }();
  return done && s.ok() ? nullptr : TF_Message(s.status);
}

}  // namespace

NAPI_MODULE_INIT() {
  const char* fault = registerAll();
  if (fault) napi_throw_error(env, nullptr, fault);
  return exports;
}
#endif
