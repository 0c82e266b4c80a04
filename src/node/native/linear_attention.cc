// Linear attention as TensorFlow operations of the process that tfjs-node runs in: forward, backward and one step.
//
// The scan (vectors.h) is that of the wasm core: f(A, B, C; S)_t = a_t . (S + sum_{s <= t} b_s c_s^T). A tile of the
// state, four rows high, stays in registers while all tokens of a block pass through it; each token adds to the tile
// before it reads it, so there is no triangle and a later token never touches an earlier one. The derivatives are the
// same scan (heads.h):
//
//     output = f(Q, K, V; S) / denominator           dQ = f(dN, V, K; S^T) + e z
//     dK = f(V, dN, Q; G^T) + w      dV = f(K, Q, dN; G)      from the last token to the first
//
// with dN = dY / denominator, e = -(dN . Y), z the running sum of K, w that of e Q, G the gradient of the state (see
// src/linear_attention/composed.ts). Letters: B batch, H heads, N length, r features, d values. Q and K are mapped.
//
// Built by scripts/node/native_operation.mjs with one compiler call. TensorFlow's C API is declared here, because the
// headers that come with some of its builds lack the part that is used.
#include <node_api.h>
#include <initializer_list>
#include <mutex>
#include <utility>
#include "run.h"

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
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder*, const char*);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder*,
                                                     void (*)(TF_ShapeInferenceContext*, TF_Status*));
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext*, TF_Status*);
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder*, TF_Status*);
TF_KernelBuilder* TF_NewKernelBuilder(const char* name, const char* device, void* (*create)(TF_OpKernelConstruction*),
                                      void (*compute)(void*, TF_OpKernelContext*), void (*remove)(void*));
void TF_RegisterKernelBuilder(const char* name, TF_KernelBuilder*, TF_Status*);
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

// The attributes of src/linear_attention/spec.ts, in the order of settingsOf in src/linear_attention/node.ts.
struct Settings {
  Map map;
  float eps, scale;
  bool causal, normalize, bnhd, hasMask, hasState, returnState;
};

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

  // They are the last input, not attributes of the operation: tfjs-node keeps the names of attributes in a set that its
  // threads share without a lock, and a call in one worker thread can lose an attribute to a call in another.
  Settings settings(int index) {
    const float* x = input(index, {9});
    if (!x) return {};
    return {Map(int(x[0])), x[1],      x[2],      x[3] != 0, x[4] != 0,
            x[5] != 0,      x[6] != 0, x[7] != 0, x[8] != 0};
  }

  void require(bool holds, const char* otherwise) {
    if (ok && !holds) fail(otherwise);
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
Call callOf(const Settings& a, Tensors& t) {
  Call c = {};
  const int length = a.bnhd ? 1 : 2, head = a.bnhd ? 2 : 1;
  c.B = t.dim(0, 0, 4);
  c.H = t.dim(0, head, 4);
  c.Nq = t.dim(0, length, 4);
  c.Nk = t.dim(1, length, 4);
  c.r = t.dim(0, 3, 4);
  c.d = t.dim(2, 3, 4);
  t.require(c.r > 0 && c.d > 0, "q and v must have at least one column");
  c.map = a.map;
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

void computeForward(void*, TF_OpKernelContext* context) {
  Tensors t(context);
  const Settings a = t.settings(6);
  Call c = callOf(a, t);
  c.output = t.output(0, {QUERY_ROWS(c), c.d});
  c.sOut = a.returnState ? t.output(1, {c.B, c.H, c.r, c.d}) : t.output(1, {});
  c.zOut = a.returnState ? t.output(2, {c.B, c.H, c.r}) : t.output(2, {});
  c.inverse = a.normalize ? t.output(3, {QUERY_ROWS(c)}) : t.output(3, {});
  if (t.ok) run(kForward, c);
}

void computeBackward(void*, TF_OpKernelContext* context) {
  Tensors t(context);
  const Settings a = t.settings(11);
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
void computeStep(void*, TF_OpKernelContext* context) {
  Tensors t(context);
  const Settings a = t.settings(5);
  Call c = {};
  c.B = t.dim(0, 0, 3);
  c.H = t.dim(0, 1, 3);
  c.Nq = c.Nk = 1;
  c.r = t.dim(0, 2, 3);
  c.d = t.dim(2, 2, 3);
  c.map = a.map;
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
  for (const char* input : inputs) TF_OpDefinitionBuilderAddInput(builder, input);
  for (const char* output : outputs) TF_OpDefinitionBuilderAddOutput(builder, output);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknownShape);
  TF_RegisterOpDefinition(builder, status);
  if (TF_GetCode(status) == 0)
    TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", nullptr, compute, nullptr), status);
}

// Once in a process, however many threads load this file. Null, or what is wrong.
const char* registerAll() {
  static Status s;
  static const bool done = [] {
    registerOperation("TflaForward" TFLA_TAG, {"q: float", "k: float", "v: float", "mask: float", "s: float", "z: float",
                       "settings: float"},
                      {"output: float", "s_out: float", "z_out: float", "inverse: float"}, computeForward, s.status);
    if (s.ok())
      registerOperation("TflaBackward" TFLA_TAG,
                        {"q: float", "k: float", "v: float", "mask: float", "s: float", "z: float", "output: float",
                         "inverse: float", "d_output: float", "d_s: float", "d_z: float",
                         "settings: float"},
                        {"dq: float", "dk: float", "dv: float", "ds: float", "dz: float"}, computeBackward, s.status);
    if (s.ok())
      registerOperation("TflaStep" TFLA_TAG, {"q: float", "k: float", "v: float", "s: float", "z: float", "settings: float"},
                        {"output: float", "s_out: float", "z_out: float"}, computeStep, s.status);
    return true;
  }();
  return done && s.ok() ? nullptr : TF_Message(s.status);
}

// alone(callback): calls it while no other thread of the process is in here.
napi_value alone(napi_env env, napi_callback_info info) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  size_t count = 1;
  napi_value callback, undefined;
  napi_get_undefined(env, &undefined);
  napi_get_cb_info(env, info, &count, &callback, nullptr, nullptr);
  napi_call_function(env, undefined, callback, 0, nullptr, nullptr);
  return undefined;
}

}  // namespace

NAPI_MODULE_INIT() {
  const char* fault = registerAll();
  if (fault) {
    napi_throw_error(env, nullptr, fault);
    return exports;
  }
  napi_value function;
  napi_create_function(env, "alone", NAPI_AUTO_LENGTH, alone, nullptr, &function);
  napi_set_named_property(env, exports, "alone", function);
  return exports;
}
