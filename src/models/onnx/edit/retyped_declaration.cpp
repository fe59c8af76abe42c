#include "models/onnx/edit/retyped_declaration.hpp"

#include <utility>

#include "models/onnx/wire/message_edits.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

// A TypeProto with another element type, however deep; the depth was checked when the model was read.
Result<WireRope> retyped(const io::InputFile& file, const WireField& field, std::uint32_t element) {
  WireReader wire(file, field.offset, field.offset + field.length);
  WireRope rope;
  Result<void> done = each_field(wire, [&](const WireField& part) -> Result<void> {
    if (Result<void> skipped = wire.skip(part); !skipped) return skipped;
    const bool is_tensor = part.number == type_field::tensor;
    if (!is_tensor && part.number != type_field::sequence && part.number != type_field::optional) {
      rope.copy(part.begin, wire.position());
      return {};
    }
    WireRope inner;
    WireReader inside(file, part.offset, part.offset + part.length);
    Result<void> rewritten = each_field(inside, [&](const WireField& fact) -> Result<void> {
      if (Result<void> skipped = inside.skip(fact); !skipped) return skipped;
      if (fact.number != 1) {
        inner.copy(fact.begin, inside.position());
      } else if (is_tensor) {
        inner.text(encode_varint_field(tensor_type_field::elem_type, element));
      } else {
        Result<WireRope> contents = retyped(file, fact, element);
        if (!contents) return std::move(contents).error();
        inner.message(fact.number, std::move(*contents));
      }
      return {};
    });
    if (!rewritten) return rewritten;
    rope.message(part.number, std::move(inner));
    return {};
  });
  if (!done) return std::move(done).error();
  return rope;
}

}  // namespace

Result<WireRope> retyped_declaration(const io::InputFile& file, const WireField& field, std::uint32_t element,
                                     const std::string& name) {
  WireReader wire(file, field.offset, field.offset + field.length);
  WireRope rope;
  Result<void> done = each_field(wire, [&](const WireField& part) -> Result<void> {
    if (Result<void> skipped = wire.skip(part); !skipped) return skipped;
    if (part.number == value_field::name) {
      rope.text(encode_field(part.number, name));
    } else if (part.number == value_field::type) {
      Result<WireRope> contents = retyped(file, part, element);
      if (!contents) return std::move(contents).error();
      rope.message(part.number, std::move(*contents));
    } else {
      rope.copy(part.begin, wire.position());
    }
    return {};
  });
  if (!done) return std::move(done).error();
  return rope;
}

}  // namespace tensorcast::models::onnx
