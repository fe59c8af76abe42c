// SPDX-License-Identifier: Apache-2.0
// OpenVINO's element types: `f32` in attributes, `FP32` at ports.
#pragma once

#include <string_view>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::models::openvino_ir {

// Errors: unsupported: an OpenVINO type that tensorcast does not have (nf4, u3, u6, string, dynamic); parse: not a type
// of OpenVINO.
[[nodiscard]] Result<DType> parse_element_type(std::string_view name);  // "f32", of <data>
[[nodiscard]] Result<DType> parse_precision(std::string_view name);     // "FP32", of <port>
[[nodiscard]] std::string_view element_type_name(DType dtype);          // "f32"

// Returns the options that give the results of OpenVINO's Convert: 8-bit floats overflow to NaN or infinity, powers of
// two round to the nearest, NaN becomes the largest float4. `undefined`: known at run time only.
[[nodiscard]] CastOptions convert_options(DType from, DType to);

}  // namespace tensorcast::models::openvino_ir
