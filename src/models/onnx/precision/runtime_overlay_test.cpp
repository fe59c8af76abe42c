// SPDX-License-Identifier: Apache-2.0
// The kernels that runtimes have.
#include "models/onnx/precision/runtime_overlay.hpp"

#include <gtest/gtest.h>

#include "models/onnx/ir/model_testing.hpp"
#include "models/onnx/ir/op_rules.hpp"

namespace tensorcast::models::onnx {
namespace {

using ::tensorcast::onnx::Runtime;
using testing::bf16, testing::f16, testing::f32, testing::f64;

constexpr Runtime runtimes[] = {Runtime::onnxruntime_cpu, Runtime::onnxruntime_cuda, Runtime::tensorrt,
                                Runtime::openvino, Runtime::any};

bool has(Runtime runtime, std::string_view op, int since, DType element, std::string_view domain = "") {
  Node node;
  node.op_type = op;
  node.domain = domain;
  return runtime_has_kernel(runtime, node, since, element);
}

TEST(RuntimeOverlay, EveryRuntimeRunsFloat32) {
  for (const Runtime runtime : runtimes) {
    for (const std::string_view op : {"MatMul", "AffineGrid", "Det"}) EXPECT_TRUE(has(runtime, op, 22, f32)) << op;
    EXPECT_TRUE(has(runtime, "Scaler", 1, f32, "ai.onnx.ml"));
    EXPECT_EQ(has(runtime, "Scaler", 1, f16, "ai.onnx.ml"), runtime == Runtime::any);
    EXPECT_TRUE(has(runtime, "MatMul", 13, f16));
  }
}

TEST(RuntimeOverlay, CudaHasMoreKernelsThanTheCpu) {
  for (const std::string_view op : {"MatMul", "Gemm", "Softmax", "Relu", "LayerNormalization", "Add"}) {
    EXPECT_FALSE(has(Runtime::onnxruntime_cpu, op, 17, bf16)) << op;
    EXPECT_TRUE(has(Runtime::onnxruntime_cuda, op, 17, bf16)) << op;
  }
  EXPECT_FALSE(has(Runtime::onnxruntime_cpu, "Conv", 11, f64));
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "Conv", 11, f64));
  EXPECT_FALSE(has(Runtime::onnxruntime_cpu, "RandomNormal", 1, f16));
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "RandomNormal", 1, f16));
}

TEST(RuntimeOverlay, AnOperatorThatCudaHasInFloat32OnlyStaysThere) {
  EXPECT_TRUE(has(Runtime::onnxruntime_cpu, "GridSample", 16, f16));  // with Casts
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "GridSample", 16, f16));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "Resize", 19, bf16));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "NonZero", 13, f64));
}

TEST(RuntimeOverlay, TheCpuDecidesAboutWhatCudaDoesNotHave) {
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "CastLike", 19, bf16));
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "Hardmax", 13, f16));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "Hardmax", 13, bf16));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "Bernoulli", 15, f16));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "Tan", 7, f64));
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "CumProd", 26, f64));
}

TEST(RuntimeOverlay, VersionsOfAnOperatorDiffer) {
  EXPECT_FALSE(has(Runtime::onnxruntime_cpu, "Clip", 11, f64));
  EXPECT_TRUE(has(Runtime::onnxruntime_cpu, "Clip", 12, f64));
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "Elu", 6, f64));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "Elu", 22, f64));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "Pow", 13, bf16));
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "Pow", 15, bf16));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "RoiAlign", 10, f16));
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "RoiAlign", 16, f16));
}

// Each was tried as a model of one node, in ONNX Runtime 1.31.1.
TEST(RuntimeOverlay, KernelsThatCameWithALaterOpset) {
  EXPECT_FALSE(has(Runtime::onnxruntime_cpu, "IsNaN", 13, bf16));
  EXPECT_TRUE(has(Runtime::onnxruntime_cpu, "IsNaN", 20, bf16));
  for (const int since : {1, 6, 7, 9}) {
    EXPECT_FALSE(has(Runtime::onnxruntime_cpu, "LeakyRelu", since, f64)) << since;
    EXPECT_FALSE(has(Runtime::onnxruntime_cpu, "PRelu", since, f64)) << since;
  }
  for (const std::string_view op : {"Max", "Min"}) {
    EXPECT_FALSE(has(Runtime::onnxruntime_cpu, op, 6, f64)) << op;
    EXPECT_TRUE(has(Runtime::onnxruntime_cpu, op, 8, f64)) << op;
  }
  EXPECT_FALSE(has(Runtime::onnxruntime_cpu, "MaxPool", 1, f64));
  EXPECT_TRUE(has(Runtime::onnxruntime_cpu, "MaxPool", 8, f64));
}

TEST(RuntimeOverlay, AnOperatorIsNotTheStartOfAnother) {
  EXPECT_TRUE(has(Runtime::onnxruntime_cuda, "RandomNormal", 22, bf16));
  EXPECT_FALSE(has(Runtime::onnxruntime_cuda, "Random", 22, bf16));
  EXPECT_FALSE(has(Runtime::tensorrt, "ReduceLog", 18, f16));
  EXPECT_FALSE(has(Runtime::tensorrt, "", 18, f16));
}

TEST(RuntimeOverlay, TensorrtHasNoOtherOperatorsAndNoFloat64) {
  EXPECT_TRUE(has(Runtime::tensorrt, "LayerNormalization", 17, bf16));
  EXPECT_TRUE(has(Runtime::tensorrt, "DequantizeLinear", 19, f16));
  EXPECT_TRUE(has(Runtime::tensorrt, "GridSample", 16, f16));
  EXPECT_FALSE(has(Runtime::tensorrt, "GridSample", 22, bf16));
  EXPECT_FALSE(has(Runtime::tensorrt, "Det", 11, f16));
  EXPECT_FALSE(has(Runtime::tensorrt, "STFT", 17, f16));
  EXPECT_FALSE(has(Runtime::tensorrt, "MatMul", 13, f64));
}

TEST(RuntimeOverlay, SomeRuntimesHaveNoFloat64) {
  for (const Runtime runtime : runtimes) {
    const bool casts = runtime == Runtime::tensorrt || runtime == Runtime::openvino;
    EXPECT_EQ(runtime_has_type(runtime, DType::float64), !casts);
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::int8}) {
      EXPECT_TRUE(runtime_has_type(runtime, dtype));
    }
  }
}

TEST(RuntimeOverlay, OpenvinoRunsNearlyAll) {
  for (const DType element : {f16, bf16}) {
    EXPECT_TRUE(has(Runtime::openvino, "MatMul", 13, element));
    EXPECT_TRUE(has(Runtime::openvino, "GridSample", 16, element));
    EXPECT_FALSE(has(Runtime::openvino, "AffineGrid", 20, element));
    EXPECT_EQ(has(Runtime::openvino, "MaxRoiPool", 1, element), element == f16);
  }
}

TEST(RuntimeOverlay, FusedOperatorsOfTransformers) {
  const auto fused = [](Runtime runtime, std::string_view op, DType element) {
    return has(runtime, op, 1, element, fused_domain);
  };
  for (const std::string_view op : {"Attention", "FastGelu", "SkipLayerNormalization"}) {
    EXPECT_TRUE(fused(Runtime::onnxruntime_cpu, op, f16)) << op;
    EXPECT_TRUE(fused(Runtime::onnxruntime_cuda, op, bf16)) << op;
    EXPECT_TRUE(fused(Runtime::openvino, op, f16)) << op;
    EXPECT_FALSE(fused(Runtime::onnxruntime_cpu, op, bf16)) << op;
    EXPECT_FALSE(fused(Runtime::tensorrt, op, f16)) << op;
  }
  EXPECT_FALSE(fused(Runtime::openvino, "QuickGelu", f16));
  EXPECT_TRUE(fused(Runtime::onnxruntime_cpu, "FusedMatMul", f64));
  EXPECT_FALSE(fused(Runtime::onnxruntime_cpu, "Gelu", f64));
  EXPECT_TRUE(fused(Runtime::onnxruntime_cuda, "Gelu", f64));
  EXPECT_FALSE(fused(Runtime::onnxruntime_cpu, "Inverse", f16));
}

TEST(RuntimeOverlay, AScatterThatReducesIsAnotherOperator) {
  Node node;
  node.op_type = "ScatterND";
  for (const auto& [value, expected] : {std::pair{"none", true}, std::pair{"add", false}}) {
    node.attributes.clear();
    Attribute& reduction = node.attributes.emplace_back();
    reduction.name = "reduction";
    reduction.s = value;
    EXPECT_EQ(runtime_has_kernel(Runtime::onnxruntime_cpu, node, 18, f16), expected);
    EXPECT_EQ(runtime_has_kernel(Runtime::onnxruntime_cuda, node, 18, bf16), expected);
    EXPECT_EQ(runtime_has_kernel(Runtime::onnxruntime_cuda, node, 18, f64), expected);
    EXPECT_EQ(runtime_has_kernel(Runtime::tensorrt, node, 18, f16), expected);
    EXPECT_TRUE(runtime_has_kernel(Runtime::onnxruntime_cpu, node, 18, f64));
    EXPECT_TRUE(runtime_has_kernel(Runtime::any, node, 18, f16));
  }
}

}  // namespace
}  // namespace tensorcast::models::onnx
