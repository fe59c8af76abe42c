// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/retyped_declaration.hpp"

#include <utility>

#include "dtype/try.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

// Encodes a TypeProto with another element type at any depth; the depth was checked when the model was read.
Result<WireRope> retyped(const io::InputFile& file, const WireField& field, DType element) {
  return rewritten(file, field, [&](const WireField& part, std::uint64_t end, WireRope& rope) -> Result<void> {
    const bool is_tensor = part.number == type_field::tensor;
    if (!is_tensor && part.number != type_field::sequence && part.number != type_field::optional) {
      rope.copy(part.begin, end);
      return {};
    }
    const auto change = [&](const WireField& fact, std::uint64_t fact_end, WireRope& inner) -> Result<void> {
      if (fact.number != tensor_type_field::elem_type) {
        inner.copy(fact.begin, fact_end);
      } else if (is_tensor) {
        inner.text(encode_varint_field(tensor_type_field::elem_type, element));
      } else {
        WireRope contents = TRY(retyped(file, fact, element));
        inner.message(fact.number, std::move(contents));
      }
      return {};
    };
    WireRope inner = TRY(rewritten(file, part, change));
    rope.message(part.number, std::move(inner));
    return {};
  });
}

}  // namespace

Result<WireRope> retyped_declaration(const io::InputFile& file, const WireField& field, DType element,
                                     const std::string& name) {
  return rewritten(file, field, [&](const WireField& part, std::uint64_t end, WireRope& rope) -> Result<void> {
    if (part.number == value_field::name) {
      rope.text(encode_field(part.number, name));
    } else if (part.number == value_field::type) {
      WireRope contents = TRY(retyped(file, part, element));
      rope.message(part.number, std::move(contents));
    } else {
      rope.copy(part.begin, end);
    }
    return {};
  });
}

}  // namespace tensorcast::models::onnx
