// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/runtime_overlay.hpp"

#include <charconv>
#include <string>

#include "dtype/text_parts.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {
namespace {

using ::tensorcast::onnx::Runtime;

// Operators with and without a kernel for a type, in words: OPERATOR, OPERATOR<SINCE or OPERATOR>=SINCE for some of
// its versions; OPERATOR+reduction is a scatter that reduces.
struct Kernels {
  enum class Others : std::uint8_t { have, lack, as_on_cpu } others;  // operators in neither list
  std::string_view have = {};
  std::string_view lack = {};
  std::string_view fused = {};  // operators of com.microsoft that have one
};

struct Overlay {
  Kernels float16, bfloat16, float64;
};

// The fused operators that schema_table.cpp has.
constexpr std::string_view all_fused =
    "Attention BiasGelu EmbedLayerNormalization FastGelu FusedMatMul Gelu GroupQueryAttention MultiHeadAttention "
    "QuickGelu RotaryEmbedding SkipLayerNormalization SkipSimplifiedLayerNormalization";

// Measured with ONNX Runtime 1.31.1: each operator of ONNX's node tests, alone in a model of the type, also in the
// newest opset, where ONNX Runtime no longer expands LeakyRelu and PRelu into other operators. It runs float16 in
// float32 where it has a kernel for that only, but not bfloat16 or float64.
constexpr Overlay onnxruntime_cpu{
    .float16 = {.others = Kernels::Others::have,
                .lack = "Bernoulli BlackmanWindow Celu EyeLike GlobalLpPool HammingWindow HannWindow MaxRoiPool "
                        "MelWeightMatrix Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
                        "RoiAlign ScatterElements+reduction ScatterND+reduction",
                .fused = all_fused},
    .bfloat16 = {.others = Kernels::Others::lack,
                 .have = "Cast CastLike Concat Constant ConstantOfShape Flatten Gather GatherElements GatherND "
                         "Identity IsInf IsNaN>=20 Reshape Shape Slice Split Squeeze Transpose Unsqueeze"},
    .float64 = {.others = Kernels::Others::have,
                .lack = "Acos Acosh Asin Asinh Atan Atanh Attention AveragePool Bernoulli Celu Clip<12 Col2Im Conv "
                        "ConvTranspose Cosh Det Elu Erf GRU Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool "
                        "GridSample<20 HardSigmoid HardSwish Hardmax InstanceNormalization LRN LSTM LeakyRelu "
                        "LpPool Max<8 MaxPool<8 MaxRoiPool MaxUnpool Mean MelWeightMatrix Min<8 Mish Multinomial "
                        "NonZero OneHot PRelu "
                        "RNN Resize RoiAlign Selu Sinh Softplus Softsign Tan ThresholdedRelu Upsample",
                .fused = "FusedMatMul"},
};

// The kernels that onnxruntime-gpu 1.31.1 registers, by get_all_opkernel_def(), where they differ from the CPU's. An
// operator that has none in its version runs on the CPU. One that has float32 but not the type stays float32, as a Cast
// costs less than the way to the CPU. Scatters with a reduction, and ScatterElements in bfloat16, are registered but
// left out: their code may throw for the type.
constexpr Overlay onnxruntime_cuda{
    .float16 = {.others = Kernels::Others::as_on_cpu,
                .have = "RandomNormal RandomNormalLike RandomUniform RandomUniformLike RoiAlign>=16",
                .lack = "Clip<12 GridSample Range",
                .fused = all_fused},
    .bfloat16 = {.others = Kernels::Others::as_on_cpu,
                 .have = "Abs Add Attention AveragePool Conv Cos DeformConv Div Dropout<22 Erf Exp Expand Gelu "
                         "Gemm HardSigmoid HardSwish LayerNormalization LpNormalization MatMul Max Min Mod Mul Neg "
                         "Pow>=15 RMSNormalization RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
                         "ReduceMean ReduceSum Relu RoiAlign RotaryEmbedding ScatterND Sigmoid Sign "
                         "SimplifiedLayerNormalization Sin Size Softmax Softplus Softsign Sqrt Sub Sum Tanh "
                         "TensorScatter Tile TopK Trilu Where",
                 .fused = "Attention BiasGelu FastGelu FusedMatMul Gelu GroupQueryAttention MultiHeadAttention "
                          "QuickGelu RotaryEmbedding SkipLayerNormalization SkipSimplifiedLayerNormalization"},
    .float64 = {.others = Kernels::Others::as_on_cpu,
                .have =
                    "AveragePool Conv ConvTranspose Elu<22 Erf GRU Gelu GlobalAveragePool GlobalMaxPool HardSigmoid "
                    "HardSwish InstanceNormalization<22 LRN LSTM RNN Resize RoiAlign Selu<22 Softplus Softsign "
                    "ThresholdedRelu<22 Upsample",
                .lack = "GridSample LpNormalization NonZero ScatterElements+reduction ScatterND+reduction",
                .fused = "BiasGelu FastGelu FusedMatMul Gelu QuickGelu"},
};

// docs/operators.md of onnx-tensorrt for TensorRT 10.15; it leaves out the output of DequantizeLinear, whose type is in
// QuantDequantLinearHelper of the parser. TensorRT casts float64 to float32.
constexpr std::string_view tensorrt_operators =
    "Abs Acos Acosh Add ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization BlackmanWindow "
    "Cast "
    "CastLike Ceil Celu Clip Concat Constant ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DeformConv "
    "DepthToSpace "
    "DequantizeLinear Div Dropout Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements "
    "GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample "
    "GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf "
    "IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul Max "
    "MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg NonZero OneHot PRelu Pad Pow QuantizeLinear "
    "RMSNormalization RNN RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1 "
    "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu "
    "Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round Scatter ScatterElements ScatterND Selu Shape Shrink "
    "Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh "
    "TensorScatter ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Upsample Where";
constexpr Overlay tensorrt{
    .float16 = {.others = Kernels::Others::lack, .have = tensorrt_operators},
    .bfloat16 = {.others = Kernels::Others::lack,
                 .have = tensorrt_operators,
                 .lack = "BlackmanWindow DeformConv GridSample HammingWindow HannWindow Mish NonZero RoiAlign"},
    .float64 = {.others = Kernels::Others::lack},
};

// Measured with OpenVINO 2026.4.1 on a CPU, in the same way: tests/interop/onnx_node_models.py --openvino --with
// '--runtime any', and tests/interop/onnx_fused_models.py. It casts float64 to float32, and infinite numbers to finite
// ones.
constexpr std::string_view openvino_fused =
    "Attention BiasGelu FastGelu FusedMatMul Gelu MultiHeadAttention SkipLayerNormalization "
    "SkipSimplifiedLayerNormalization";
constexpr Overlay openvino{
    .float16 = {.others = Kernels::Others::have,
                .lack = "AffineGrid Bernoulli CausalConvWithState DeformConv Det LinearAttention MaxUnpool "
                        "MelWeightMatrix RandomUniform RandomUniformLike TensorScatter",
                .fused = openvino_fused},
    .bfloat16 = {.others = Kernels::Others::have,
                 .lack = "AffineGrid Bernoulli CausalConvWithState DeformConv Det LinearAttention MaxRoiPool MaxUnpool "
                         "MelWeightMatrix RandomUniform RandomUniformLike TensorScatter",
                 .fused = openvino_fused},
    .float64 = {.others = Kernels::Others::lack},
};

const Overlay& overlay_of(Runtime runtime) {
  switch (runtime) {
    case Runtime::onnxruntime_cuda:
      return onnxruntime_cuda;
    case Runtime::tensorrt:
      return tensorrt;
    case Runtime::openvino:
      return openvino;
    default:
      return onnxruntime_cpu;
  }
}

bool is_listed(std::string_view words, std::string_view name, int since) {
  for (const std::string_view word : split(words, ' ')) {
    if (!word.starts_with(name)) continue;
    std::string_view condition = word.substr(name.size());
    if (condition.empty()) return true;
    const bool is_older = condition[0] == '<';
    if (!is_older && condition[0] != '>') continue;  // another operator
    condition.remove_prefix(is_older ? 1 : 2);
    int version = 0;
    std::from_chars(condition.data(), condition.data() + condition.size(), version);
    if (is_older ? since < version : since >= version) return true;
  }
  return false;
}

const Kernels* kernels_of(const Overlay& overlay, DType dtype) {
  switch (dtype) {
    case DType::float16:
      return &overlay.float16;
    case DType::bfloat16:
      return &overlay.bfloat16;
    case DType::float64:
      return &overlay.float64;
    default:
      return nullptr;
  }
}

bool has_kernel(const Overlay& overlay, std::string_view name, int since, DType dtype) {
  const Kernels* kernels = kernels_of(overlay, dtype);
  if (kernels == nullptr) return true;
  if (is_listed(kernels->lack, name, since)) return false;
  if (is_listed(kernels->have, name, since)) return true;
  if (kernels->others == Kernels::Others::as_on_cpu) return has_kernel(onnxruntime_cpu, name, since, dtype);
  return kernels->others == Kernels::Others::have;
}

}  // namespace

bool runtime_has_type(Runtime runtime, DType dtype) {
  const Kernels* kernels = runtime == Runtime::any ? nullptr : kernels_of(overlay_of(runtime), dtype);
  return kernels == nullptr || kernels->others != Kernels::Others::lack || !kernels->have.empty();
}

bool runtime_has_kernel(Runtime runtime, const Node& node, int since, DType dtype) {
  if (runtime == Runtime::any) return true;
  if (!node.domain.empty()) {
    const Kernels* kernels = kernels_of(overlay_of(runtime), dtype);
    return kernels == nullptr ? dtype == DType::float32
                              : node.domain == fused_domain && is_listed(kernels->fused, node.op_type, since);
  }
  std::string name(node.op_type);
  const Attribute* reduction = name.starts_with("Scatter") ? node.attribute("reduction") : nullptr;
  if (reduction != nullptr && reduction->s != "none") name += "+reduction";
  return has_kernel(overlay_of(runtime), name, since, dtype);
}

}  // namespace tensorcast::models::onnx
