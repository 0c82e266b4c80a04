// Arithmetic on vectors of kBytes bytes: feature maps, rows, and the scan that forward and backward consist of. Everything
// is inlined into functions that are compiled for one kind of processor (run.h).
#pragma once
#include <cstring>
#include "call.h"

namespace {

template <int kBytes>
struct Vectors {

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

// x > 0 ? x + 1 : exp(x), as exp(min(x, 0)) + max(x, 0).
static INLINE V elu(V x) {
  const V zero = {};
  const V low = x > 0.0f ? zero : x;
  const V high = x <= 0.0f ? zero : x;
  const V bits = low * kLog2E + kRound;
  const V n = bits - kRound;
  const V p = powerOfTwo(low * kLog2E - n);
  // The exponent is added to the bits of p; below -87.3 exp(x) is not a normal number.
  const V e = (V)((I)p + ((I)bits << 23));
  return (low < -87.3f ? zero : e) + high;
}

// exp(x) over the whole range of float, denormal numbers and infinity included: 2^n is applied in two halves.
static INLINE V exponential(V x) {
  const V zero = {}, least = zero - 104.0f, most = zero + 89.0f;
  const V c = x < -104.0f ? least : (x > 89.0f ? most : x);
  const V bits = c * kLog2E + kRound;
  const V n = bits - kRound;
  // ln 2 in two parts, so that n times the first is exact.
  const V y = ((c - n * 0.693145751953125f) - n * 1.428606765330187e-6f) * kLog2E;
  const I whole = (I)bits - 0x4b400000;
  const I half = whole >> 1;
  const I one = (I)(zero + 1.0f);
  return powerOfTwo(y) * (V)(one + (half << 23)) * (V)(one + ((whole - half) << 23));
}

template <Map map>
static INLINE V mapped(V x) {
  const V zero = {}, positive = x <= 0.0f ? zero : x;
  switch (map) {
    case kElu: return elu(x);
    case kRelu: return positive;
    case kSquaredRelu: return positive * positive;
    case kExp: return exponential(x);
    default: return x;
  }
}

// phi'(x) from phi(x).
template <Map map>
static INLINE V slope(V phi) {
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

template <Map map>
static INLINE void mapRowBy(const float* row, int64_t width, float* out) {
  eachVector(row, width, [&](V x, int64_t i) { vec(out + i) = mapped<map>(x); });
  for (int64_t i = width; i < roundUp(width, kVector); i++) out[i] = 0;
}

// The choice of the map stands outside of the loop.
static INLINE void mapRow(const float* row, int64_t width, Map map, float* out) {
  switch (map) {
    case kElu: return mapRowBy<kElu>(row, width, out);
    case kRelu: return mapRowBy<kRelu>(row, width, out);
    case kSquaredRelu: return mapRowBy<kSquaredRelu>(row, width, out);
    case kExp: return mapRowBy<kExp>(row, width, out);
    default: return mapRowBy<kIdentity>(row, width, out);
  }
}

template <Map map>
static INLINE void chainRowBy(const float* gradient, const float* phi, int64_t width, float* out) {
  writeRow(out, width, [&](int64_t i) { return vec(gradient + i) * slope<map>(vec(phi + i)); });
}

// out [width] = gradient phi'(x), both in scratch.
static INLINE void chainRow(const float* gradient, const float* phi, int64_t width, Map map, float* out) {
  switch (map) {
    case kElu: return chainRowBy<kElu>(gradient, phi, width, out);
    case kRelu: return chainRowBy<kRelu>(gradient, phi, width, out);
    case kSquaredRelu: return chainRowBy<kSquaredRelu>(gradient, phi, width, out);
    case kExp: return chainRowBy<kExp>(gradient, phi, width, out);
    default: return chainRowBy<kIdentity>(gradient, phi, width, out);
  }
}

static INLINE float sum(V x) {
  Tile tiles[kLanes / 4];
  *(V*)tiles = x;
  for (int64_t n = kLanes / 8; n > 0; n /= 2)
    for (int64_t i = 0; i < n; i++) tiles[i] += tiles[i + n];
  return (tiles[0][0] + tiles[0][2]) + (tiles[0][1] + tiles[0][3]);
}

static INLINE float dot(const float* x, const float* y, int64_t padded) {
  V total = {};
  for (int64_t i = 0; i < padded; i += kLanes) total += vec(x + i) * vec(y + i);
  return sum(total);
}

// ---- The scan.

// Four rows of one panel of columns, which stay in registers. kWrite: tokens add b c^T to the state; kRead: they add
// a . state to their outputs, or start them with that (kStart). b and a are read where they lie: to lay them out side
// by side first took longer than it saved.
template <int kVectors, bool kWrite, bool kRead, bool kStart>
static INLINE void scanTile(float* state, int64_t columns, int64_t count, int64_t step, const float* b, const float* a,
                            const float* c, float* o) {
  V tile[kTile][kVectors];
  for (int j = 0; j < kTile; j++)
    for (int x = 0; x < kVectors; x++) tile[j][x] = vec(state + j * columns + x * kLanes);
  for (int64_t t = 0; t < count; t++, b += step, a += step, c += columns, o += columns) {
    float from[kTile], to[kTile];  // read once, before anything is written
    for (int j = 0; j < kTile; j++) {
      to[j] = kWrite ? b[j] : 0;
      from[j] = kRead ? a[j] : 0;
    }
    for (int x = 0; kWrite && x < kVectors; x++) {
      const V value = vec(c + x * kLanes);
      for (int j = 0; j < kTile; j++) tile[j][x] += to[j] * value;
    }
    for (int x = 0; kRead && x < kVectors; x++) {
      V output = kStart ? from[0] * tile[0][x] : vec(o + x * kLanes) + from[0] * tile[0][x];
      for (int j = 1; j < kTile; j++) output += from[j] * tile[j][x];
      vec(o + x * kLanes) = output;
    }
  }
  for (int j = 0; kWrite && j < kTile; j++)
    for (int x = 0; x < kVectors; x++) vec(state + j * columns + x * kLanes) = tile[j][x];
}

// `asked`: how many rows to ask for after each tile.
template <int kVectors, bool kWrite, bool kRead, bool kStart>
static INLINE void scanPanel(Ahead& ahead, int64_t asked, float* state, int64_t rows, int64_t columns, int64_t count,
                             int64_t step, const float* b, const float* a, const float* c, float* o) {
  scanTile<kVectors, kWrite, kRead, kStart>(state, columns, count, step, b, a, c, o);
  ahead.ask(asked);
  for (int64_t i = kTile; i < rows; i += kTile) {
    scanTile<kVectors, kWrite, kRead, false>(state + i * columns, columns, count, step, b + i, a + i, c, o);
    ahead.ask(asked);
  }
}

// A block of tokens through a state [rows, columns]; rows of c and o are `columns` apart, those of b and a `step`. A
// panel is as wide as the registers hold.
template <bool kWrite, bool kRead, bool kStart>
static INLINE void scan(Ahead& ahead, float* state, int64_t rows, int64_t columns, int64_t count, int64_t step,
                        const float* b, const float* a, const float* c, float* o) {
  const int64_t wide = 2 * kLanes, tiles = rows / kTile * roundUp(columns, wide) / wide;
  const int64_t asked = roundUp(kBlock, tiles) / tiles;
  int64_t j = 0;
  for (; j + wide <= columns; j += wide)
    scanPanel<2, kWrite, kRead, kStart>(ahead, asked, state + j, rows, columns, count, step, b, a, c + j, o + j);
  for (; j < columns; j += kLanes)
    scanPanel<1, kWrite, kRead, kStart>(ahead, asked, state + j, rows, columns, count, step, b, a, c + j, o + j);
}

// Tokens add b c^T to the state. What a scan does not use is given in place of what it does not have.
static INLINE void add(Ahead& ahead, float* state, int64_t rows, int64_t columns, int64_t count, const float* b,
                       int64_t step, const float* c) {
  scan<true, false, false>(ahead, state, rows, columns, count, step, b, b, c, state);
}

// Tokens read: o = a . state; `Onto`: it is added to what is there.
static INLINE void read(Ahead& ahead, float* state, int64_t rows, int64_t columns, int64_t count, const float* a,
                        int64_t step, float* o) {
  scan<false, true, true>(ahead, state, rows, columns, count, step, a, a, o, o);
}

static INLINE void readOnto(Ahead& ahead, float* state, int64_t rows, int64_t columns, int64_t count, const float* a,
                            int64_t step, float* o) {
  scan<false, true, false>(ahead, state, rows, columns, count, step, a, a, o, o);
}

// Each token adds, then reads.
static INLINE void addAndRead(Ahead& ahead, float* state, int64_t rows, int64_t columns, int64_t count, const float* b,
                              const float* a, int64_t step, const float* c, float* o) {
  scan<true, true, true>(ahead, state, rows, columns, count, step, b, a, c, o);
}

static INLINE void addAndReadOnto(Ahead& ahead, float* state, int64_t rows, int64_t columns, int64_t count,
                                  const float* b, const float* a, int64_t step, const float* c, float* o) {
  scan<true, true, false>(ahead, state, rows, columns, count, step, b, a, c, o);
}
};

}  // namespace
