// SPDX-License-Identifier: Apache-2.0
#include "cast_op.hpp"

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "element_type.hpp"
#include "runtime.hpp"

namespace tensorcast::onnxruntime {
namespace {

const CastOp& self(const OrtCustomOp* op) { return *static_cast<const CastOp*>(op); }

bool is_like(const OrtCustomOp* op) { return self(op).kind == CastKind::own_like; }

OrtStatus* create_kernel(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info, void** kernel) {
  return guarded(*api, [&] { *kernel = new CastKernel(*api, *info, self(op).kind); });
}

// The output has the shape of the input, and the type that `to` or the second input names. The runtime calls this also
// for inputs without a type, and then reports the node itself.
void infer_output(const CastOp& op, OrtShapeInferContext& context) {
  const OrtApi& api = *op.api;
  OrtTensorTypeAndShapeInfo* input = nullptr;  // belongs to the runtime
  check(api.ShapeInferContext_GetInputTypeShape(&context, 0, &input));
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (is_like(&op)) {
    OrtTensorTypeAndShapeInfo* target = nullptr;
    check(api.ShapeInferContext_GetInputTypeShape(&context, 1, &target));
    check(api.GetTensorElementType(target, &type));
    type = op.system->declared(dtype_of(type));
  } else {
    const OrtOpAttr* attribute = nullptr;
    std::int64_t to = 0;
    std::size_t size = 0;
    check(api.ShapeInferContext_GetAttribute(&context, "to", &attribute));
    check(api.ReadOpAttr(attribute, ORT_OP_ATTR_INT, &to, sizeof(to), &size));
    if (to < 1 || to > int2) {
      fail(api, ORT_INVALID_GRAPH, "`to` of Cast is " + std::to_string(to) + ", which is not the number of a type");
    }
    type = op.system->declared(static_cast<tc_dtype>(to));
  }
  std::size_t rank = 0;
  check(api.GetDimensionsCount(input, &rank));
  std::vector<std::int64_t> dims(rank);
  std::vector<const char*> names(rank);
  check(api.GetDimensions(input, dims.data(), rank));
  check(api.GetSymbolicDimensions(input, names.data(), rank));
  OrtTensorTypeAndShapeInfo* output = nullptr;
  check(api.CreateTensorTypeAndShapeInfo(&output));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, decltype(api.ReleaseTensorTypeAndShapeInfo)> owner(
      output, api.ReleaseTensorTypeAndShapeInfo);
  check(api.SetTensorElementType(output, type));
  check(api.SetDimensions(output, dims.data(), rank));
  check(api.SetSymbolicDimensions(output, names.data(), rank));
  check(api.ShapeInferContext_SetOutputTypeShape(&context, 0, output));
}

CastOp declare(const OrtApi& api, std::uint32_t api_version, const TypeSystem& system, CastKind kind, tc_dtype from,
               tc_dtype to) {
  CastOp op = {};
  op.version = api_version;
  op.api = &api;
  op.system = &system;
  op.kind = kind;
  op.from = from;
  op.to = to;
  op.GetName = [](const OrtCustomOp* me) { return is_like(me) ? "CastLike" : "Cast"; };
  op.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op.GetInputTypeCount = [](const OrtCustomOp* me) -> std::size_t { return is_like(me) ? 2 : 1; };
  op.GetInputType = [](const OrtCustomOp* me, std::size_t index) {
    return self(me).system->declared(index == 0 ? self(me).from : self(me).to);
  };
  op.GetOutputTypeCount = [](const OrtCustomOp*) -> std::size_t { return 1; };
  op.GetOutputType = [](const OrtCustomOp* me, std::size_t) { return self(me).system->declared(self(me).to); };
  op.GetInputCharacteristic = [](const OrtCustomOp*, std::size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.GetOutputCharacteristic = [](const OrtCustomOp*, std::size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.GetInputMemoryType = [](const OrtCustomOp*, std::size_t) { return OrtMemTypeDefault; };
  op.GetVariadicInputMinArity = [](const OrtCustomOp*) { return 1; };
  op.GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 1; };
  op.GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 1; };
  op.GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 1; };
  // 1 also for the ONNX domain: nodes get this version, and the runtime has no kernel for 1. With one that it has, its
  // constant folding would try its own kernel, whose type names do not fit, and fail.
  op.GetStartVersion = [](const OrtCustomOp*) { return 1; };
  op.GetEndVersion = [](const OrtCustomOp*) { return std::numeric_limits<int>::max(); };
  op.CreateKernelV2 = create_kernel;
  op.KernelComputeV2 = [](void* kernel, OrtKernelContext* context) {
    const auto& cast = *static_cast<const CastKernel*>(kernel);
    return guarded(cast.api(), [&] { cast.compute(*context); });
  };
  op.KernelDestroy = [](void* kernel) { delete static_cast<CastKernel*>(kernel); };
  op.InferOutputShapeFn = [](const OrtCustomOp* me, OrtShapeInferContext* context) {
    return guarded(*self(me).api, [&] { infer_output(self(me), *context); });
  };
  // The runtime then still compares the sizes, but takes types of fewer than 8 bits for bytes.
  if (is_packed(from)) return op;
  op.GetMayInplace = [](int** inputs, int** outputs) -> std::size_t {
    *inputs = new int(0);
    *outputs = new int(0);
    return 1;
  };
  op.ReleaseMayInplace = [](int* inputs, int* outputs) {
    delete inputs;
    delete outputs;
  };
  return op;
}

// Declarations, and the runtime's lists of them, for one version of the runtime. They are never released, as sessions
// may outlive every other object of this library.
struct Domains {
  TypeSystem system;
  std::deque<CastOp> ops;
  OrtCustomOpDomain* own = nullptr;
  OrtCustomOpDomain* own_with_all_pairs = nullptr;
  OrtCustomOpDomain* onnx = nullptr;
};

// Declares Cast or CastLike in `domain`. The types of all declarations together are those of the operator, and
// "undefined" does not include the newest, so each source is named. Targets need not be; the newest of Cast are, which
// are outputs alone. One declaration with an undefined target takes the others from CastLike, where they are inputs: so
// `all_pairs` names every pair, and the runtime, which compares all with all, takes 20 ms for a session.
void add_ops(const OrtApi& api, std::uint32_t api_version, Domains& domains, OrtCustomOpDomain& domain, CastKind kind,
             bool all_pairs) {
  for (const tc_dtype from : domains.system.types) {
    const auto add = [&](tc_dtype to) {
      CastOp& op = domains.ops.emplace_back(declare(api, api_version, domains.system, kind, from, to));
      check(api.CustomOpDomain_Add(&domain, &op));
    };
    if (!all_pairs) add(0);
    for (const tc_dtype to : domains.system.types) {
      if (all_pairs || (kind != CastKind::own_like && is_new(to))) add(to);
    }
  }
}

}  // namespace

void add_domains(const OrtApi& api, std::uint32_t api_version, OrtSessionOptions& options, const Wishes& wishes) {
  if (wishes.override && api_version < 22) fail(api, ORT_FAIL, "replacing Cast needs ONNX Runtime 1.22 or newer");
  static std::mutex mutex;
  static auto& every = *new std::map<const OrtApi*, Domains>;
  const std::scoped_lock lock(mutex);
  Domains& domains = every[&api];
  if (domains.system.types.empty()) domains.system = type_system(api);
  OrtCustomOpDomain*& own = wishes.all_pairs ? domains.own_with_all_pairs : domains.own;
  if (own == nullptr) {
    OrtCustomOpDomain* domain = nullptr;
    check(api.CreateCustomOpDomain("ai.tensorcast", &domain));
    if (api_version >= 22) add_ops(api, api_version, domains, *domain, CastKind::own, false);
    add_ops(api, api_version, domains, *domain, CastKind::own_like, wishes.all_pairs || api_version < 22);
    own = domain;
  }
  check(api.AddCustomOpDomain(&options, own));
  if (!wishes.override) return;
  if (domains.onnx == nullptr) {
    OrtCustomOpDomain* domain = nullptr;
    check(api.CreateCustomOpDomain("", &domain));  // "ai.onnx" would be another domain to the runtime
    add_ops(api, api_version, domains, *domain, CastKind::onnx_or_built_in, false);
    domains.onnx = domain;
  }
  check(api.AddCustomOpDomain(&options, domains.onnx));
}

}  // namespace tensorcast::onnxruntime
