// SPDX-License-Identifier: Apache-2.0
#include "models/openvino_ir/ir_weights.hpp"

#include <fmt/format.h>

#include <limits>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "models/openvino_ir/ir_types.hpp"

namespace tensorcast::models::openvino_ir {
namespace {

// OpenVINO packs u1 with the first element in the highest bit, unlike its other narrow types.
std::vector<std::byte> unpack_bits(std::span<const std::byte> packed) {
  std::vector<std::byte> elements(packed.size() * 8);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = (packed[i / 8] >> (7 - i % 8)) & std::byte{1};
  return elements;
}

}  // namespace

Result<Tensor> Weights::constant(DType dtype, std::vector<std::int64_t> shape, std::uint64_t offset,
                                 std::uint64_t size) {
  const Result<std::size_t> count = element_count(shape);
  if (!count) return parse_error(count.error().message);
  const std::size_t needed =
      dtype == DType::uint1 ? *count / 8 + static_cast<std::size_t>(*count % 8 != 0) : storage_bytes(dtype, *count);
  if (needed != size || needed == std::numeric_limits<std::size_t>::max()) {
    return parse_error(
        fmt::format("{} elements of {} take {} bytes, but size is {}", *count, element_type_name(dtype), needed, size));
  }
  if (!source_) {
    source_ = TRY(open_());
  }
  if (offset > source_->size || size > source_->size - offset) {
    return parse_error(fmt::format("{} bytes from byte {} lie outside of {}, which has {} bytes", size, offset,
                                   source_->path, source_->size));
  }
  return read(dtype, std::move(shape), offset, size);
}

Result<Tensor> Weights::read(DType dtype, std::vector<std::int64_t> shape, std::uint64_t offset, std::uint64_t size) {
  auto& kept = ranges_[{offset, size}];
  if (kept == nullptr) {
    kept_ += size;
    if (kept_ > source_->size) {
      return parse_error(fmt::format("the constants overlap: together they have more than the {} bytes of {}",
                                     source_->size, source_->path));
    }
    auto bytes = std::make_shared<std::vector<std::byte>>(size);
    TRY(source_->read(offset, *bytes));
    kept = std::move(bytes);
  }
  if (dtype == DType::uint1) {
    auto& bits = unpacked_[{offset, size}];
    if (bits == nullptr) bits = std::make_shared<const std::vector<std::byte>>(unpack_bits(*kept));
    return Tensor::share({DType::uint8, shape, std::span(*bits).first(element_count(shape).value())}, bits);
  }
  return Tensor::share({dtype, shape, *kept}, kept);
}

}  // namespace tensorcast::models::openvino_ir
