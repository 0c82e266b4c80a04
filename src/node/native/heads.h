// Forward, backward and one step of one head, block by block.
#pragma once
#include "rows.h"

namespace {

template <int kBytes>
struct Heads : Rows<kBytes> {

typedef Rows<kBytes> Base;
typedef typename Base::V V;
using Base::kLanes;
using Base::mapRow;
using Base::loadRow;
using Base::eachVector;
using Base::writeRow;
using Base::zero;
using Base::vec;
using Base::dot;
using Base::add;
using Base::addAndRead;
using Base::addAndReadOnto;
using Base::read;
using Base::readOnto;
using Base::fetch;
using Base::loadQueries;
using Base::loadKeys;
using Base::loadValues;
using Base::loadState;
using Base::loadTransposed;
using Base::storeState;
using Base::loadZ;
using Base::accumulate;
using Base::scaled;
using Base::finishRow;
using Base::storeOutput;
using Base::loadGradients;
using Base::storeGradient;
using Base::storeKeyGradients;
using Base::storeValueGradients;

static INLINE void forwardHead(const Call& c, int64_t index) {
  const Head head(c, index);
  Scratch m(c.r, c.d);
  loadState(c.s ? c.s + index * c.r * c.d : nullptr, c.r, c.d, m.D, m.state);
  loadZ(c.z ? c.z + index * c.r : nullptr, c.r, m.z);

  if (!c.causal) {
    for (int64_t i = 0, blocks = blocksOf(c.Nk); i < blocks; i++) {
      const Block block = blockAt(i, c.Nk);
      loadKeys(head, block, c.k, c.map, m);
      loadValues(head, block, m);
      for (int64_t t = 0; t < block.count; t++) accumulate(m.z, m.keys + t * m.R, 1, m.R);
      add(m.ahead, m.state, m.rows, m.D, block.count, m.keys, m.R, m.values);
    }
  }
  for (int64_t i = 0, blocks = blocksOf(c.Nq); i < blocks; i++) {
    const Block block = blockAt(i, c.Nq);
    const Block next = blockAt(i + 1 < blocks ? i + 1 : i, c.Nq);
    m.ahead = {};
    loadQueries(head, block, m);
    fetch(m.ahead, head, c.q, c.Nq, c.r, next, false);
    fetch(m.ahead, head, c.output, c.Nq, c.d, block, true);
    if (c.causal) {
      loadKeys(head, block, c.k, c.map, m);
      loadValues(head, block, m);
      fetch(m.ahead, head, c.k, c.Nk, c.r, next, false);
      fetch(m.ahead, head, c.v, c.Nk, c.d, next, false);
    }
    for (int64_t t = 0; t < block.count; t++) {
      if (c.causal) accumulate(m.z, m.keys + t * m.R, 1, m.R);
      m.e[t] = c.normalize ? dot(m.queries + t * m.R, m.z, m.R) : 0;
    }
    if (c.causal)
      addAndRead(m.ahead, m.state, m.rows, m.D, block.count, m.keys, m.queries, m.R, m.values, m.outputs);
    else
      read(m.ahead, m.state, m.rows, m.D, block.count, m.queries, m.R, m.outputs);
    for (int64_t t = 0; t < block.count; t++) storeOutput(head, block.token(t), m.outputs + t * m.D, m.e[t]);
  }
  storeState(m.state, c.r, c.d, m.D, c.sOut ? c.sOut + index * c.r * c.d : nullptr);
  storeState(m.z, 1, c.r, m.R, c.zOut ? c.zOut + index * c.r : nullptr);
}

// phi is computed once: the first pass leaves phi(k) in dk and, when causal, d phi(q) in dq.
static INLINE void backwardHead(const Call& c, int64_t index) {
  const Head head(c, index);
  Scratch m(c.r, c.d, c.Nq);
  loadTransposed(c.s ? c.s + index * c.r * c.d : nullptr, c.r, c.d, m.R, m.transposed);
  loadZ(c.z ? c.z + index * c.r : nullptr, c.r, m.z);

  for (int64_t i = 0, blocks = blocksOf(c.Nk); i < blocks; i++) {
    const Block block = blockAt(i, c.Nk);
    const Block next = blockAt(i + 1 < blocks ? i + 1 : i, c.Nk);
    m.ahead = {};
    loadKeys(head, block, c.k, c.map, m);
    loadValues(head, block, m);
    fetch(m.ahead, head, c.k, c.Nk, c.r, next, false);
    fetch(m.ahead, head, c.v, c.Nk, c.d, next, false);
    if (c.causal) {
      loadGradients(head, block, m, true);
      fetch(m.ahead, head, c.dOutput, c.Nq, c.d, next, false);
      fetch(m.ahead, head, c.outputIn, c.Nq, c.d, next, false);
      fetch(m.ahead, head, c.dq, c.Nq, c.r, block, true);
    }
    for (int64_t t = 0; t < block.count; t++) {
      const float* key = m.keys + t * m.R;
      writeRow(c.dk + head.row(block.token(t), c.Nk, c.r), c.r, [&](int64_t i) { return vec(key + i); });
      accumulate(m.z, key, 1, m.R);
      if (c.causal) scaled(m.z, m.e[block.token(t)], m.outputs + t * m.R, m.R);
    }
    if (!c.causal) {
      add(m.ahead, m.transposed, m.columns, m.R, block.count, m.values, m.D, m.keys);
      continue;
    }
    addAndReadOnto(m.ahead, m.transposed, m.columns, m.R, block.count, m.values, m.dNumerators, m.D, m.keys, m.outputs);
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
    for (int64_t i = 0, blocks = blocksOf(c.Nq); i < blocks; i++) {
      const Block block = blockAt(i, c.Nq);
      loadQueries(head, block, m);
      loadGradients(head, block, m, true);
      for (int64_t t = 0; t < block.count; t++) {
        scaled(m.z, m.e[block.token(t)], m.outputs + t * m.R, m.R);
        accumulate(m.w, m.queries + t * m.R, m.e[block.token(t)], m.R);
      }
      readOnto(m.ahead, m.transposed, m.columns, m.R, block.count, m.dNumerators, m.D, m.outputs);
      for (int64_t t = 0; t < block.count; t++)
        storeGradient(c, m.outputs + t * m.R, m.queries + t * m.R, c.dq + head.row(block.token(t), c.Nq, c.r));
      add(m.ahead, m.state, m.rows, m.D, block.count, m.queries, m.R, m.dNumerators);
    }
    for (int64_t i = 0; i < m.rows; i++)
      for (int64_t j = 0; j < m.columns; j++) m.transposed[j * m.R + i] = m.state[i * m.D + j];
  }

  for (int64_t i = 0, blocks = blocksOf(c.Nk); i < blocks; i++) {
    const Block block = blockFromEnd(i, c.Nk);
    const Block next = blockFromEnd(i + 1 < blocks ? i + 1 : i, c.Nk);
    m.ahead = {};
    loadKeys(head, block, c.dk, kIdentity, m);
    loadValues(head, block, m);
    fetch(m.ahead, head, c.dk, c.Nk, c.r, next, true);
    fetch(m.ahead, head, c.v, c.Nk, c.d, next, false);
    if (c.causal) {
      loadQueries(head, block, m);
      loadGradients(head, block, m, false);
      fetch(m.ahead, head, c.q, c.Nq, c.r, next, false);
      fetch(m.ahead, head, c.dOutput, c.Nq, c.d, next, false);
      fetch(m.ahead, head, c.dq, c.Nq, c.r, next, true);
    }
    fetch(m.ahead, head, c.dv, c.Nk, c.d, block, true);
    for (int64_t t = 0; t < block.count; t++) {
      if (c.causal) accumulate(m.w, m.queries + t * m.R, m.e[block.token(t)], m.R);
      scaled(m.w, 1, m.outputs + t * m.R, m.R);
    }
    if (c.causal)
      addAndReadOnto(m.ahead, m.transposed, m.columns, m.R, block.count, m.dNumerators, m.values, m.D, m.queries,
                     m.outputs);
    else
      readOnto(m.ahead, m.transposed, m.columns, m.R, block.count, m.values, m.D, m.outputs);
    storeKeyGradients(head, block, m);

    if (c.causal)
      addAndRead(m.ahead, m.state, m.rows, m.D, block.count, m.queries, m.keys, m.R, m.dNumerators, m.outputs);
    else
      read(m.ahead, m.state, m.rows, m.D, block.count, m.keys, m.R, m.outputs);
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
  finishRow(c, m.outputs, dot(m.queries, m.z, m.R), c.output + index * c.d);
}
};

}  // namespace
