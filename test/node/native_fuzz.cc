// Random calls of the native operations' arithmetic under AddressSanitizer, against a reference in double precision.
// Every array has exactly its size, so that a read or write beyond it ends the program; outputs hold NaN before.
//
//     npm run fuzz:native [-- SECONDS [SEED]]
#include "../../src/node/native/run.h"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

namespace {

std::mt19937_64 generator;

int64_t among(std::initializer_list<int64_t> values) { return values.begin()[generator() % values.size()]; }
bool coin() { return generator() % 2; }

// Memory of exactly this many numbers, which starts where a row of a larger array might.
struct Array {
  int64_t size;
  std::unique_ptr<float[]> at;
  explicit Array(int64_t size, double deviation = 1, double mean = 0) : size(size), at(new float[size]) {
    std::normal_distribution<double> normal(mean, deviation);
    for (int64_t i = 0; i < size; i++) at[i] = float(normal(generator));
  }
  static Array unwritten(int64_t size) {
    Array array(size);
    for (int64_t i = 0; i < size; i++) array.at[i] = NAN;
    return array;
  }
};

double phi(Map map, double x) {
  switch (map) {
    case kElu: return x > 0 ? x + 1 : std::exp(x);
    case kRelu: return x > 0 ? x : 0;
    case kSquaredRelu: return x > 0 ? x * x : 0;
    case kExp: return std::exp(x);
    default: return x;
  }
}

double phiSlope(Map map, double x) {
  switch (map) {
    case kElu: return x > 0 ? 1 : std::exp(x);
    case kRelu: return x > 0;
    case kSquaredRelu: return x > 0 ? 2 * x : 0;
    case kExp: return std::exp(x);
    default: return 1;
  }
}

typedef std::vector<double> Numbers;

struct Reference {
  Numbers output, s, z, inverse, dq, dk, dv, ds, dz;
};

// O(N^2), one head after the other, from the definition.
Reference reference(const Call& c) {
  const int64_t heads = c.B * c.H, r = c.r, d = c.d;
  Reference want;
  want.output.resize(heads * c.Nq * d);
  want.inverse.resize(heads * c.Nq);
  want.dq.resize(heads * c.Nq * r);
  want.dk.resize(heads * c.Nk * r);
  want.dv.resize(heads * c.Nk * d);
  for (Numbers* state : {&want.s, &want.ds}) state->resize(heads * r * d);
  for (Numbers* sums : {&want.z, &want.dz}) sums->resize(heads * r);
  for (int64_t h = 0; h < heads; h++) {
    const Head head(c, h);
    double* S = &want.s[h * r * d];
    double* z = &want.z[h * r];
    for (int64_t i = 0; i < r * d; i++) S[i] = c.s ? c.s[h * r * d + i] : 0;
    for (int64_t i = 0; i < r; i++) z[i] = c.z ? c.z[h * r + i] : 0;
    for (int64_t i = 0; i < r * d; i++) want.ds[h * r * d + i] = c.dS ? c.dS[h * r * d + i] : 0;
    for (int64_t i = 0; i < r; i++) want.dz[h * r + i] = c.dZ ? c.dZ[h * r + i] : 0;
    Numbers S0(S, S + r * d), z0(z, z + r), K(c.Nk * r), V(c.Nk * d), dK(c.Nk * r), dV(c.Nk * d);
    for (int64_t n = 0; n < c.Nk; n++) {
      for (int64_t i = 0; i < r; i++) K[n * r + i] = head.keeps(n) ? phi(c.map, c.k[head.row(n, c.Nk, r) + i]) : 0;
      for (int64_t j = 0; j < d; j++) V[n * d + j] = head.keeps(n) ? c.v[head.row(n, c.Nk, d) + j] : 0;
      for (int64_t i = 0; i < r; i++) {
        z[i] += K[n * r + i];
        for (int64_t j = 0; j < d; j++) S[i * d + j] += K[n * r + i] * V[n * d + j];
        // The gradient of the final state reaches every key.
        if (c.dZ) dK[n * r + i] += c.dZ[h * r + i];
        for (int64_t j = 0; c.dS && j < d; j++) {
          dK[n * r + i] += c.dS[(h * r + i) * d + j] * V[n * d + j];
          dV[n * d + j] += c.dS[(h * r + i) * d + j] * K[n * r + i];
        }
      }
    }
    for (int64_t t = 0; t < c.Nq; t++) {
      Numbers Q(r), num(d), dQ(r);
      double den = 0;
      const int64_t seen = c.causal ? t + 1 : c.Nk;
      for (int64_t i = 0; i < r; i++) {
        Q[i] = phi(c.map, c.q[head.row(t, c.Nq, r) + i]);
        den += Q[i] * z0[i];
        for (int64_t j = 0; j < d; j++) num[j] += Q[i] * S0[i * d + j];
      }
      Numbers a(seen);
      for (int64_t n = 0; n < seen; n++) {
        for (int64_t i = 0; i < r; i++) a[n] += Q[i] * K[n * r + i];
        den += a[n];
        for (int64_t j = 0; j < d; j++) num[j] += a[n] * V[n * d + j];
      }
      const double factor = c.normalize ? (den == 0 ? 0 : 1 / (den + c.eps)) : c.scale;
      want.inverse[head.row(t, c.Nq, 1)] = factor;
      double e = 0;
      Numbers dN(d);
      for (int64_t j = 0; j < d; j++) {
        want.output[head.row(t, c.Nq, d) + j] = num[j] * factor;
        dN[j] = c.dOutput[head.row(t, c.Nq, d) + j] * factor;
        if (c.normalize) e -= dN[j] * num[j] * factor;
      }
      for (int64_t i = 0; i < r; i++) {
        dQ[i] += e * z0[i];
        want.dz[h * r + i] += e * Q[i];
        for (int64_t j = 0; j < d; j++) {
          dQ[i] += dN[j] * S0[i * d + j];
          want.ds[(h * r + i) * d + j] += dN[j] * Q[i];
        }
      }
      for (int64_t n = 0; n < seen; n++) {
        double da = e;
        for (int64_t j = 0; j < d; j++) {
          da += dN[j] * V[n * d + j];
          dV[n * d + j] += a[n] * dN[j];
        }
        for (int64_t i = 0; i < r; i++) {
          dQ[i] += da * K[n * r + i];
          dK[n * r + i] += da * Q[i];
        }
      }
      for (int64_t i = 0; i < r; i++)
        want.dq[head.row(t, c.Nq, r) + i] = dQ[i] * phiSlope(c.map, c.q[head.row(t, c.Nq, r) + i]);
    }
    for (int64_t n = 0; n < c.Nk; n++) {
      if (!head.keeps(n)) continue;
      for (int64_t i = 0; i < r; i++)
        want.dk[head.row(n, c.Nk, r) + i] = dK[n * r + i] * phiSlope(c.map, c.k[head.row(n, c.Nk, r) + i]);
      for (int64_t j = 0; j < d; j++) want.dv[head.row(n, c.Nk, d) + j] = dV[n * d + j];
    }
  }
  return want;
}

int failures = 0;

void compare(const char* name, const Array& got, const Numbers& want, const char* description) {
  double largest = 0, worst = 0;
  for (double x : want) largest = std::fmax(largest, std::fabs(x));
  for (int64_t i = 0; i < got.size; i++) {
    const double error = std::fabs(got.at[i] - want[i]);
    if (!(error <= worst)) worst = error;
  }
  if (!(worst <= 1e-4 * largest + 1e-5)) {
    fprintf(stderr, "%s: error %g of %g in %s\n", name, worst, largest, description);
    failures++;
  }
}

void once() {
  Call c = {};
  const std::initializer_list<int64_t> sizes = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 32, 33, 48, 63, 64, 65, 100};
  const std::initializer_list<int64_t> lengths = {0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 47, 48, 63, 64, 65, 97, 130};
  c.B = among({1, 1, 2, 3});
  c.H = among({1, 2, 3, 5});
  c.causal = coin();
  c.Nq = among(lengths);
  c.Nk = c.causal ? c.Nq : among(lengths);
  c.r = among(sizes);
  c.d = among(sizes);
  c.map = Map(generator() % 5);
  c.normalize = coin();
  c.bnhd = coin();
  c.eps = coin() ? 1e-6f : 0.1f;
  c.scale = coin() ? 1 : -0.5f;
  const int64_t heads = c.B * c.H, states = heads * c.r * c.d;
  // Positive features keep denominators away from 0, where no precision is promised.
  const double mean = c.map == kIdentity || c.map == kRelu || c.map == kSquaredRelu ? 1 : 0;
  const double deviation = mean == 1 ? 0.2 : 1;
  Array q(heads * c.Nq * c.r, deviation, mean), k(heads * c.Nk * c.r, deviation, mean), v(heads * c.Nk * c.d);
  Array mask(c.B * c.Nk), s(states), z(heads * c.r, 0.3, 2), dOutput(heads * c.Nq * c.d), dS(states), dZ(heads * c.r);
  for (int64_t i = 0; i < mask.size; i++) mask.at[i] = generator() % 4 ? 1 : 0;
  const bool hasMask = coin(), hasState = coin(), hasStateGradient = coin();
  c.q = q.at.get();
  c.k = k.at.get();
  c.v = v.at.get();
  c.mask = hasMask ? mask.at.get() : nullptr;
  c.s = hasState ? s.at.get() : nullptr;
  c.z = hasState ? z.at.get() : nullptr;
  c.dOutput = dOutput.at.get();
  c.dS = hasStateGradient ? dS.at.get() : nullptr;
  c.dZ = hasStateGradient ? dZ.at.get() : nullptr;
  if (hasMask && coin()) {
    // NaN under the mask has no effect.
    for (int64_t h = 0; h < heads; h++) {
      const Head head(c, h);
      for (int64_t n = 0; n < c.Nk; n++) {
        if (head.keeps(n)) continue;
        std::fill_n(&k.at[head.row(n, c.Nk, c.r)], c.r, NAN);
        std::fill_n(&v.at[head.row(n, c.Nk, c.d)], c.d, NAN);
      }
    }
  }
  Array output = Array::unwritten(heads * c.Nq * c.d), inverse = Array::unwritten(heads * c.Nq);
  Array sOut = Array::unwritten(states), zOut = Array::unwritten(heads * c.r);
  Array dq = Array::unwritten(q.size), dk = Array::unwritten(k.size), dv = Array::unwritten(v.size);
  Array ds = Array::unwritten(states), dz = Array::unwritten(heads * c.r);
  c.output = output.at.get();
  c.inverse = c.normalize ? inverse.at.get() : nullptr;
  c.sOut = sOut.at.get();
  c.zOut = zOut.at.get();
  run(kForward, c);
  c.outputIn = output.at.get();
  c.inverseIn = inverse.at.get();
  c.dq = dq.at.get();
  c.dk = dk.at.get();
  c.dv = dv.at.get();
  c.ds = hasState ? ds.at.get() : nullptr;
  c.dz = hasState ? dz.at.get() : nullptr;
  run(kBackward, c);

  char description[200];
  snprintf(description, sizeof description, "B %d H %d Nq %d Nk %d r %d d %d map %d causal %d normalize %d bnhd %d mask %d state %d",
           int(c.B), int(c.H), int(c.Nq), int(c.Nk), int(c.r), int(c.d), int(c.map), c.causal, c.normalize, c.bnhd,
           hasMask, hasState);
  const Reference want = reference(c);
  compare("output", output, want.output, description);
  if (c.normalize) compare("inverse", inverse, want.inverse, description);
  compare("s", sOut, want.s, description);
  compare("z", zOut, want.z, description);
  compare("dq", dq, want.dq, description);
  compare("dk", dk, want.dk, description);
  compare("dv", dv, want.dv, description);
  if (hasState) {
    compare("ds", ds, want.ds, description);
    compare("dz", dz, want.dz, description);
  }
  if (c.causal && c.Nq == 1 && hasState && !hasMask) {
    Array stepOutput = Array::unwritten(output.size), stepS = Array::unwritten(states), stepZ = Array::unwritten(zOut.size);
    c.output = stepOutput.at.get();
    c.sOut = stepS.at.get();
    c.zOut = stepZ.at.get();
    run(kStep, c);
    compare("step output", stepOutput, want.output, description);
    compare("step s", stepS, want.s, description);
    compare("step z", stepZ, want.z, description);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int seconds = count > 1 ? atoi(arguments[1]) : 20;
  const int64_t seed = count > 2 ? atoll(arguments[2]) : 1;
  generator.seed(seed);
  const time_t end = time(nullptr) + seconds;
  int64_t calls = 0;
  for (; time(nullptr) < end && failures < 10; calls++) once();
  printf("%s: %lld calls, %d failures (seed %lld)\n", getenv("TFLA_TARGET") ? getenv("TFLA_TARGET") : "best target",
         (long long)calls, failures, (long long)seed);
  return failures > 0;
}
