// SPDX-License-Identifier: Apache-2.0
// The fields of a TensorProto, and which field holds the elements of each type.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::onnx {

// Field numbers.
enum class Field : std::uint32_t {
  dims = 1,
  data_type = 2,
  segment = 3,
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  doc_string = 12,
  external_data = 13,
  data_location = 14,
  metadata_props = 16,
};

// Field numbers of the messages in external_data and metadata_props.
enum class EntryField : std::uint32_t { key = 1, value = 2 };

inline constexpr std::uint64_t external_location = 1;  // of data_location

// protobuf's own limit for one message.
inline constexpr std::uint64_t max_message_bytes = (std::uint64_t{1} << 31) - 1;

[[nodiscard]] std::string_view field_name(Field field) noexcept;

// Returns the type of TensorProto.data_type. Errors: parse, unsupported.
[[nodiscard]] Result<DType> parse_data_type(std::uint64_t number);

// Returns the field that holds elements of `dtype` if raw_data does not.
[[nodiscard]] Field typed_field(DType dtype) noexcept;

// Returns the bytes of storage per value of the typed field: those of an element, or one byte of packed elements under
// 8 bits.
[[nodiscard]] std::uint64_t bytes_per_value(DType dtype) noexcept;

// Reports whether each value of the typed field is the code of one element although storage is packed: 6-bit types.
[[nodiscard]] bool has_value_per_code(DType dtype) noexcept;

// Returns the number of values of the typed field that `elements` elements take.
[[nodiscard]] std::uint64_t value_count(DType dtype, std::uint64_t elements) noexcept;

}  // namespace tensorcast::formats::onnx
