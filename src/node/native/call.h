// One call of an operation, the scratch memory of a thread, and where the rows of a head lie.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace {

#define INLINE __attribute__((always_inline)) inline


// Rows in scratch memory are filled up with zeros to whole vectors of 16; rows of a state to whole tiles of 4.
constexpr int64_t kVector = 16;
constexpr int64_t kTile = 4;
// Tokens that pass through the state together. What they need lies in the first-level cache.
constexpr int64_t kBlock = 32;
constexpr int64_t kLine = 64;  // bytes in a line of the cache

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

// Rows that are needed soon. The processor cannot foresee them, because a block's are too few. The scan asks for some
// of them after each tile: all at once they would wait for one another, which takes a seventh of the time at N=16384.
struct Ahead {
  struct Rows {
    const char* next;
    int64_t step, size, left;  // bytes, bytes, rows
    bool write;                // they will be written
  };
  Rows arrays[8];
  int64_t count = 0;

  // For the next `rows` rows of each array. They come into the second-level cache: in [B,N,H,D] the rows of a head are
  // so far apart that they share a few sets of the first, where they would drive each other out before they are used.
  INLINE void ask(int64_t rows) {
    for (Rows* array = arrays; array < arrays + count; array++) {
      for (int64_t i = 0; i < rows && array->left > 0; i++, array->left--, array->next += array->step) {
        for (int64_t byte = 0; byte < array->size; byte += kLine) {
          if (array->write) __builtin_prefetch(array->next + byte, 1, 2);
          if (!array->write) __builtin_prefetch(array->next + byte, 0, 2);
        }
      }
    }
  }
};

// What a thread works in: carved out of one allocation, which lives as long as the thread.
struct Scratch {
  float *state, *transposed, *z, *w, *keys, *queries, *values, *dNumerators, *outputs, *e;
  Ahead ahead;
  int64_t R, D, rows, columns;  // r and d in whole vectors, and in whole tiles

  // `tokens`: how many numbers e holds.
  Scratch(int64_t r, int64_t d, int64_t tokens = kBlock) : R(roundUp(r, kVector)), D(roundUp(d, kVector)) {
    rows = roundUp(r, kTile);
    columns = roundUp(d, kTile);
    const int64_t wide = R > D ? R : D;
    const int64_t sizes[] = {rows * D,   columns * R, R,             R,                 kBlock * R, kBlock * R,
                             kBlock * D, kBlock * D,  kBlock * wide, tokens};
    float** parts[] = {&state, &transposed, &z, &w, &keys, &queries, &values, &dNumerators, &outputs, &e};
    int64_t total = 0;
    for (int64_t size : sizes) total += roundUp(size, kVector);
    float* at = memory(total);
    for (int i = 0; i < 10; i++) {
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

}  // namespace
