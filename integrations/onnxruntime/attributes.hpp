// SPDX-License-Identifier: Apache-2.0
// The attributes of a node: those of ONNX's Cast, and in the domain ai.tensorcast all options of tc_cast().
#pragma once

#include <onnxruntime_c_api.h>

#include <tensorcast/c_api.h>

#include <cstdint>
#include <string_view>

namespace tensorcast::onnxruntime {

// The integer attribute `name` of the node, or `otherwise` if the node lacks it. Fails if it is of another kind.
[[nodiscard]] std::int64_t int_attribute(const OrtApi& api, const OrtKernelInfo& info, const char* name,
                                         std::int64_t otherwise);

// Reports whether the operator of the domain ai.tensorcast has an attribute of this name.
[[nodiscard]] bool has_attribute(std::string_view op, std::string_view name);

// The options that ONNX's Cast has; with `all`, every option, by the names and values of the Python package. Fails on a
// value or a kind of value that an attribute does not have; a number may be an integer.
[[nodiscard]] tc_cast_options read_options(const OrtApi& api, const OrtKernelInfo& info, bool all);

}  // namespace tensorcast::onnxruntime
