// Measured with ONNX Runtime 1.31.1: each operator of ONNX's node tests, alone in a model of the type.
#include "models/onnx/precision/runtime_overlay.hpp"

#include <algorithm>
#include <iterator>

#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx::precision {
namespace {

// ONNX Runtime runs float16 in float32 where it has a kernel for that only, but not bfloat16 or float64.
constexpr std::string_view without_float16[] = {
    "Bernoulli",     "BlackmanWindow",   "Celu",          "EyeLike",           "GlobalLpPool",
    "HammingWindow", "HannWindow",       "MaxRoiPool",    "MelWeightMatrix",   "Multinomial",
    "RandomNormal",  "RandomNormalLike", "RandomUniform", "RandomUniformLike", "RoiAlign",
};
constexpr std::string_view with_bfloat16[] = {
    "Cast",           "CastLike", "Concat",   "Constant",  "ConstantOfShape", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "IsInf",     "IsNaN",           "Reshape", "Shape",
    "Slice",          "Split",    "Squeeze",  "Transpose", "Unsqueeze",
};
constexpr std::string_view without_float64[] = {
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Attention",
    "AveragePool",
    "Bernoulli",
    "Celu",
    "Col2Im",
    "Conv",
    "ConvTranspose",
    "Cosh",
    "Det",
    "Elu",
    "Erf",
    "GRU",
    "Gelu",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "InstanceNormalization",
    "LRN",
    "LSTM",
    "LpPool",
    "MaxRoiPool",
    "MaxUnpool",
    "Mean",
    "MelWeightMatrix",
    "Mish",
    "OneHot",
    "RNN",
    "Resize",
    "RoiAlign",
    "Selu",
    "Sinh",
    "Softplus",
    "Softsign",
    "Tan",
    "ThresholdedRelu",
    "Upsample",
};

template <std::size_t count>
bool contains(const std::string_view (&words)[count], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool onnxruntime_cpu_has_kernel(const Node& node, int since, DType dtype) {
  if (!node.domain.empty()) return dtype == DType::float32;
  switch (dtype) {
    case DType::float16: {
      if (contains(without_float16, node.op_type)) return false;
      const Attribute* reduction = node.attribute("reduction");
      const bool scatters = node.op_type == "ScatterND" || node.op_type == "ScatterElements";
      return !scatters || reduction == nullptr || reduction->s == "none";
    }
    case DType::bfloat16:
      return contains(with_bfloat16, node.op_type);
    case DType::float64:
      return !contains(without_float64, node.op_type) && (node.op_type != "Clip" || since >= 12);
    default:
      return true;
  }
}

}  // namespace

bool runtime_has_kernel(::tensorcast::onnx::Runtime runtime, const Node& node, int since, std::uint32_t element) {
  return runtime == ::tensorcast::onnx::Runtime::any ||
         onnxruntime_cpu_has_kernel(node, since, static_cast<DType>(element));
}

}  // namespace tensorcast::models::onnx::precision
