// Dense tensors in C order: views that borrow, and Tensor, which owns or shares. Types under 8 bits are packed, low
// bits first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {

struct TensorView {
  DType dtype = DType::undefined;
  std::span<const std::int64_t> shape = {};  // empty: a scalar of one element
  std::span<const std::byte> bytes = {};     // storage_bytes(dtype, element count)
};

struct MutableTensorView {
  DType dtype = DType::undefined;
  std::span<const std::int64_t> shape = {};
  std::span<std::byte> bytes = {};
};

// Strings as one UTF-8 buffer with count + 1 ascending offsets (Arrow's large_utf8 layout).
struct StringView {
  std::span<const char> data = {};
  std::span<const std::int64_t> offsets = {};  // count + 1 entries; empty means no strings
};

// Strings in the same layout, owned.
struct StringBuffer {
  std::vector<char> data;
  std::vector<std::int64_t> offsets;  // count + 1

  [[nodiscard]] StringView view() const noexcept { return {data, offsets}; }
};

// The product of the dimensions; 1 for the empty shape of a scalar.
// Errors: invalid_argument on a negative dimension; out_of_range when the product overflows size_t.
[[nodiscard]] TENSORCAST_API Result<std::size_t> element_count(std::span<const std::int64_t> shape);

// An immutable tensor of any castable type. Copies share the elements, which live until the last copy is gone.
class Tensor {
 public:
  Tensor() = default;  // no tensor: dtype undefined, no elements

  // Takes over `bytes`. Errors: invalid_argument if they are not storage_bytes(dtype, count) long or dtype is string.
  [[nodiscard]] TENSORCAST_API static Result<Tensor> own(DType dtype, std::vector<std::int64_t> shape,
                                                         std::vector<std::byte> bytes);
  // Shares the elements of `view`, which live as long as `owner`. The last copy releases `owner`. Errors: as own().
  [[nodiscard]] TENSORCAST_API static Result<Tensor> share(const TensorView& view, std::shared_ptr<const void> owner);
  // Takes over strings. Errors: invalid_argument if the shape has another number of elements.
  [[nodiscard]] TENSORCAST_API static Result<Tensor> own(std::vector<std::int64_t> shape, StringBuffer strings);

  [[nodiscard]] bool defined() const noexcept { return dtype_ != DType::undefined; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  // Empty for strings.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] TensorView view() const noexcept { return {dtype_, shape_, bytes_}; }
  // Empty unless dtype is string.
  [[nodiscard]] StringView strings() const noexcept { return strings_; }
  // Number of copies that share the elements: 1 if no other does, 0 for an undefined tensor.
  [[nodiscard]] long use_count() const noexcept { return owner_.use_count(); }

  // Shares the elements under another shape. Errors: invalid_argument if it has another number of elements.
  [[nodiscard]] TENSORCAST_API Result<Tensor> reshaped(std::vector<std::int64_t> shape) const;

 private:
  DType dtype_ = DType::undefined;
  std::vector<std::int64_t> shape_;
  std::size_t count_ = 0;
  std::span<const std::byte> bytes_;
  StringView strings_;
  std::shared_ptr<const void> owner_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace tensorcast
