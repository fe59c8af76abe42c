// SPDX-License-Identifier: Apache-2.0
// Iterates over the fields of a model's messages.
#pragma once

#include <string>
#include <string_view>

#include "dtype/try.hpp"
#include "formats/onnx/wire_reader.hpp"

namespace tensorcast::models::onnx {

using formats::onnx::ByteRange;
using formats::onnx::malformed_message;
using formats::onnx::WireField;
using formats::onnx::WireReader;

[[nodiscard]] inline std::uint64_t end_of(const WireField& field) noexcept { return field.offset + field.length; }

// Calls take(field) for each field up to the end of the message; contents that it does not read are skipped.
template <class Take>
[[nodiscard]] Result<void> each_field(WireReader& wire, Take take) {
  while (!wire.at_end()) {
    const WireField field = TRY(wire.next());
    const std::uint64_t contents = wire.position();
    TRY(take(field));
    if (wire.position() != contents) continue;
    TRY(wire.skip(field));
  }
  return {};
}

[[nodiscard]] inline Result<void> expect(const WireField& field, protozero::pbf_wire_type type) {
  if (field.type == type) return {};
  return malformed_message(field.offset, "a field has the wrong wire type, so this is not an ONNX model");
}

// Does the same for the message in `field`.
template <class Take>
[[nodiscard]] Result<void> each_field_of(WireReader& wire, const WireField& field, Take take) {
  TRY(expect(field, protozero::pbf_wire_type::length_delimited));
  wire.seek(field.offset);
  const std::uint64_t outer_end = wire.narrow(field.offset + field.length);
  Result<void> done = each_field(wire, take);
  wire.seek(field.offset + field.length);
  wire.narrow(outer_end);
  return done;
}

[[nodiscard]] inline Result<std::uint64_t> read_varint(WireReader& wire, const WireField& field) {
  TRY(expect(field, protozero::pbf_wire_type::varint));
  return wire.varint();
}

}  // namespace tensorcast::models::onnx
