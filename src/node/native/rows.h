// The rows and states of one head between the caller's arrays and scratch memory.
#pragma once
#include "vectors.h"

namespace {

template <int kBytes>
struct Rows : Vectors<kBytes> {

typedef Vectors<kBytes> Base;
typedef typename Base::V V;
using Base::kLanes;
using Base::mapRow;
using Base::loadRow;
using Base::eachVector;
using Base::writeRow;
using Base::zero;
using Base::vec;
using Base::chainRow;
using Base::sum;

// The next scan shall ask for the rows of a block.
static INLINE void fetch(Ahead& ahead, const Head& head, const float* array, int64_t N, int64_t width, Block block,
                         bool write) {
  const int64_t first = head.row(block.first, N, width), step = head.row(1, N, width) - head.row(0, N, width);
  const int64_t bytes = sizeof(float);
  ahead.arrays[ahead.count++] = {(const char*)(array + first), step * bytes, width * bytes, block.count, write};
}

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

// An output row from its numerator. Returns what the numerator was multiplied by.
static INLINE float finishRow(const Call& c, const float* numerator, float denominator, float* row) {
  const bool none = c.normalize && denominator == 0;
  const float factor = none ? 0 : c.normalize ? 1 / (denominator + c.eps) : c.scale;
  const V nothing = {};
  // Selected, not multiplied: 0 / 0 is 0 here, while the inverse of an infinite denominator must not hide infinity.
  writeRow(row, c.d, [&](int64_t i) { return none ? nothing : vec(numerator + i) * factor; });
  return factor;
}

static INLINE void storeOutput(const Head& head, int64_t n, const float* numerator, float denominator) {
  const Call& c = head.c;
  const float factor = finishRow(c, numerator, denominator, c.output + head.row(n, c.Nq, c.d));
  if (c.normalize) c.inverse[head.row(n, c.Nq, 1)] = factor;
}

// dN of a block, and e of its tokens.
static INLINE void loadGradients(const Head& head, Block block, Scratch& m, bool withE) {
  const Call& c = head.c;
  for (int64_t t = 0; t < block.count; t++) {
    const int64_t n = block.token(t), row = head.row(n, c.Nq, c.d);
    const float factor = c.normalize ? c.inverseIn[head.row(n, c.Nq, 1)] : c.scale;
    float* dN = m.dNumerators + t * m.D;
    eachVector(c.dOutput + row, c.d, [&](V x, int64_t i) { vec(dN + i) = x * factor; });
    if (!withE) continue;
    V total = {};
    if (c.normalize) eachVector(c.outputIn + row, c.d, [&](V y, int64_t i) { total -= vec(dN + i) * y; });
    m.e[n] = sum(total);
  }
}

// d phi(x) in `gradient` becomes dx, in the caller's array.
static INLINE void storeGradient(const Call& c, const float* gradient, const float* phi, float* dst) {
  chainRow(gradient, phi, c.r, c.map, dst);
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
};

}  // namespace
