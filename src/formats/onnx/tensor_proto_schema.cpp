// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/tensor_proto_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dtype/errors.hpp"

namespace tensorcast::formats::onnx {

std::string_view field_name(Field field) noexcept {
  constexpr std::string_view names[] = {"unknown",     "dims",          "data_type",  "segment",       "float_data",
                                        "int32_data",  "string_data",   "int64_data", "name",          "raw_data",
                                        "double_data", "uint64_data",   "doc_string", "external_data", "data_location",
                                        "unknown",     "metadata_props"};
  const auto number = static_cast<std::size_t>(field);
  return number < std::size(names) ? names[number] : names[0];
}

Result<DType> parse_data_type(std::uint64_t number) {
  if (number == 0) return parse_error("the tensor has no data_type");
  const auto dtype = static_cast<DType>(std::min<std::uint64_t>(number, std::numeric_limits<std::int32_t>::max()));
  if (is_onnx(dtype)) return dtype;
  const std::string_view known = number == 14 ? " (COMPLEX64)" : number == 15 ? " (COMPLEX128)" : "";
  return unsupported(fmt::format("data_type {}{} is not a supported type", number, known));
}

Field typed_field(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return Field::float_data;
    case DType::float64:
      return Field::double_data;
    case DType::int64:
      return Field::int64_data;
    case DType::uint32:
    case DType::uint64:
      return Field::uint64_data;
    case DType::string:
      return Field::string_data;
    default:
      return Field::int32_data;
  }
}

std::uint64_t bytes_per_value(DType dtype) noexcept {
  return static_cast<std::uint64_t>(std::max(bit_width(dtype) / 8, 1));
}

bool has_value_per_code(DType dtype) noexcept { return bit_width(dtype) == 6; }

std::uint64_t value_count(DType dtype, std::uint64_t elements) noexcept {
  return has_value_per_code(dtype) ? elements : storage_bytes(dtype, elements) / bytes_per_value(dtype);
}

}  // namespace tensorcast::formats::onnx
