// SPDX-License-Identifier: Apache-2.0
// Component core. Tensor, which owns its elements or shares them. Dense, in C order; types under 8 bits are packed,
// low bits first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/element.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/packed.hpp"
#include "tensorcast/string_buffer.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// An immutable tensor of any castable type. Copies share the elements, which live until the last copy is gone. A tensor
// that was moved from is undefined, as one that is made by Tensor().
class Tensor {
 public:
  Tensor() = default;  // no tensor: dtype undefined, no elements
  Tensor(const Tensor&) = default;
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(const Tensor&) = default;
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Tensor() = default;

  // Takes over `bytes`. Errors: invalid_argument if they are not storage_bytes(dtype, count) long or dtype is string.
  [[nodiscard]] TENSORCAST_API static Result<Tensor> own(DType dtype, Shape shape, std::vector<std::byte> bytes);
  // Takes over elements of a C++ type, in `shape` or in one dimension. Errors: as above.
  template <WholeElement T>
  [[nodiscard]] static Result<Tensor> own(std::vector<T> values, Shape shape) {
    const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    return share({dtype_of<T>, std::move(shape), std::as_bytes(std::span(*kept))}, kept);
  }
  template <WholeElement T>
  [[nodiscard]] static Result<Tensor> own(std::vector<T> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return own(std::move(values), {count});
  }
  // Shares the elements of `view`, which live as long as `owner`. The last copy releases `owner`. Errors: as own().
  [[nodiscard]] TENSORCAST_API static Result<Tensor> share(const TensorView& view, std::shared_ptr<const void> owner);
  // Takes over strings. Errors: invalid_argument if the shape has another number of elements.
  [[nodiscard]] TENSORCAST_API static Result<Tensor> own(Shape shape, StringBuffer strings);

  [[nodiscard]] bool defined() const noexcept { return dtype_ != DType::undefined; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] const Shape& shape() const& noexcept TENSORCAST_LIFETIMEBOUND { return shape_; }
  [[nodiscard]] Shape shape() && noexcept { return std::move(shape_); }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  // Empty for strings.
  [[nodiscard]] std::span<const std::byte> bytes() const& noexcept TENSORCAST_LIFETIMEBOUND { return bytes_; }
  [[nodiscard]] TensorView view() const& TENSORCAST_LIFETIMEBOUND { return {dtype_, shape_, bytes_}; }
  // Empty unless dtype is string.
  [[nodiscard]] StringView strings() const& noexcept TENSORCAST_LIFETIMEBOUND { return strings_; }
  // The elements as a C++ type: as<float>() of a float32 tensor, as<int4>() of an int4 one.
  // Errors: invalid_argument if the tensor has another type, or if its memory is not aligned for T.
  template <WholeElement T>
  [[nodiscard]] Result<std::span<const T>> as() const& TENSORCAST_LIFETIMEBOUND {
    if (Result<void> fits = check_elements(dtype_of<T>, alignof(T)); !fits) return std::move(fits).error();
    return std::span<const T>(static_cast<const T*>(static_cast<const void*>(bytes_.data())), count_);
  }
  template <PackedElement T>
  [[nodiscard]] Result<PackedSpan<const T>> as() const& TENSORCAST_LIFETIMEBOUND {
    if (Result<void> fits = check_elements(dtype_of<T>, 1); !fits) return std::move(fits).error();
    return PackedSpan<const T>(bytes_.data(), count_);
  }
  // A temporary has no views: they would outlive it.
  std::span<const std::byte> bytes() const&& = delete;
  TensorView view() const&& = delete;
  StringView strings() const&& = delete;
  template <Element T>
  void as() const&& = delete;
  // Number of copies that share the elements: 1 if no other does, 0 for an undefined tensor.
  [[nodiscard]] long use_count() const noexcept { return owner_.use_count(); }

  // Shares the elements under another shape. Errors: invalid_argument if it has another number of elements.
  [[nodiscard]] TENSORCAST_API Result<Tensor> reshaped(Shape shape) const;

 private:
  [[nodiscard]] TENSORCAST_API Result<void> check_elements(DType dtype, std::size_t alignment) const;
  void swap(Tensor& other) noexcept {
    std::swap(dtype_, other.dtype_);
    std::swap(shape_, other.shape_);
    std::swap(count_, other.count_);
    std::swap(bytes_, other.bytes_);
    std::swap(strings_, other.strings_);
    std::swap(owner_, other.owner_);
  }

  DType dtype_ = DType::undefined;
  Shape shape_;
  std::size_t count_ = 0;
  std::span<const std::byte> bytes_;
  StringView strings_;
  std::shared_ptr<const void> owner_;
};

// Converts a tensor, from and to strings too. Shares the elements if nothing changes. Errors: as cast() of views, and
// invalid_argument for an undefined tensor; internal without memory.
[[nodiscard]] TENSORCAST_API Result<Tensor> cast(const Tensor& src, DType to, const CastOptions& options = {},
                                                 const Execution& execution = {});
// Adds what happened to the numbers to `report`; nothing from or to strings.
[[nodiscard]] TENSORCAST_API Result<Tensor> cast(const Tensor& src, DType to, const CastOptions& options,
                                                 CastReport& report, const Execution& execution = {});

struct NamedTensor {
  std::string name = {};
  Tensor tensor = {};
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
