// SPDX-License-Identifier: Apache-2.0
// A ValueInfoProto with another element type and name.
#pragma once

#include <string>

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/wire/wire_rope.hpp"

namespace tensorcast::models::onnx {

// Copies the rest of the message in `field`: shapes, text, unknown fields. Errors: parse, io.
[[nodiscard]] Result<WireRope> retyped_declaration(const io::InputFile& file, const WireField& field, DType element,
                                                   const std::string& name);

}  // namespace tensorcast::models::onnx
