// SPDX-License-Identifier: Apache-2.0
// Writes a model whose nodes changed and whose external data did not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/wire_rope.hpp"

namespace tensorcast::models::onnx {

// The contents of an entry of opset_import.
[[nodiscard]] inline std::string encode_opset(std::string_view domain, std::int64_t version) {
  return (domain.empty() ? std::string() : encode_field(opset_field::domain, domain)) +
         encode_varint_field(opset_field::version, static_cast<std::uint64_t>(version));
}

// Writes `rope`, made from `model`, which `file` holds. External data stays where it is, or its files are copied if
// `output` is in another folder. Errors: as write_model(); unsupported: more than protobuf's limit.
[[nodiscard]] Result<void> write_spliced(const io::InputFile& file, const Model& model, WireRope rope,
                                         const std::string& output, bool overwrite);

}  // namespace tensorcast::models::onnx
