// SPDX-License-Identifier: Apache-2.0
// One Cast or CastLike node of a session.
#pragma once

#include <onnxruntime_c_api.h>

#include <tensorcast/c_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tensorcast::onnxruntime {

// Which operator a kernel computes.
enum class CastKind {
  own,               // ai.tensorcast::Cast, whose attributes are all options of tc_cast()
  own_like,          // ai.tensorcast::CastLike, with the same attributes
  onnx,              // the ONNX domain's Cast
  onnx_or_built_in,  // the ONNX domain's Cast; what tensorcast does not take goes to the runtime's own
};

class CastKernel {
 public:
  // Reads the node's types and attributes. Fails if neither tensorcast nor, for onnx_or_built_in, the runtime itself
  // can do the conversion.
  CastKernel(const OrtApi& api, const OrtKernelInfo& info, CastKind kind);

  // Converts the node's input. Runs on many threads at once, of one session and of several.
  void compute(OrtKernelContext& context) const;

  [[nodiscard]] const OrtApi& api() const { return api_; }

 private:
  struct ReleaseOp {
    const OrtApi* api;
    void operator()(OrtOp* op) const { api->ReleaseOp(op); }
  };

  void use_built_in(const OrtKernelInfo& info, ONNXTensorElementDataType from, ONNXTensorElementDataType to);
  void convert_constant(const OrtKernelInfo& info);
  void convert(OrtKernelContext& context, const std::byte* src, std::byte* dst, std::size_t count) const;
  void convert_from_strings(const OrtValue& src, OrtValue& dst, std::size_t count) const;
  void convert_to_strings(const OrtValue& src, OrtValue& dst, std::size_t count) const;
  void write_strings(OrtValue& dst, std::span<const char> data, std::span<const std::int64_t> offsets) const;
  [[noreturn]] void fail_with_last_error() const;

  const OrtApi& api_;
  tc_dtype from_ = 0;
  tc_dtype to_ = 0;
  tc_cast_options options_;
  std::unique_ptr<OrtOp, ReleaseOp> built_in_{nullptr, ReleaseOp{nullptr}};  // set: converts instead of tensorcast
  std::vector<std::byte> constant_;  // not empty: the result, as the input is a constant
};

}  // namespace tensorcast::onnxruntime
