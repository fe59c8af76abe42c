// SPDX-License-Identifier: Apache-2.0
// Component core. Views of dense tensors in C order, which borrow their elements. Types under 8 bits are packed, low
// bits first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The dimensions of a tensor, as a value: up to 8 in the object, more in memory of its own.
class Shape {
 public:
  Shape() noexcept {}  // of a scalar
  Shape(std::initializer_list<std::int64_t> dimensions) : Shape(dimensions.begin(), dimensions.size()) {}
  // Copies `rank` dimensions. The literal 0 is a number here, not a pointer: Shape(0, 2) does not compile.
  template <class Pointer>
    requires(std::is_same_v<Pointer, const std::int64_t*> || std::is_same_v<Pointer, std::int64_t*>)
  Shape(Pointer dimensions, std::size_t rank) : rank_(rank) {
    std::int64_t* to = inline_;
    if (rank > inline_rank) to = heap_ = new std::int64_t[rank];
    copy(dimensions, rank, to);
  }
  // Copies a std::vector, std::array, std::span or C array of std::int64_t.
  template <class Range>
    requires(!std::is_same_v<std::remove_cvref_t<Range>, Shape> &&
             std::is_convertible_v<const Range&, std::span<const std::int64_t>>)
  Shape(const Range& dimensions) : Shape(std::span<const std::int64_t>(dimensions).data(), std::size(dimensions)) {}

  Shape(const Shape& other) : Shape(other.data(), other.rank_) {}
  Shape(Shape&& other) noexcept { take(other); }
  Shape& operator=(const Shape& other) { return *this = Shape(other); }
  Shape& operator=(Shape&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~Shape() { release(); }

  [[nodiscard]] std::size_t size() const noexcept { return rank_; }
  [[nodiscard]] bool empty() const noexcept { return rank_ == 0; }
  [[nodiscard]] const std::int64_t* data() const noexcept TENSORCAST_LIFETIMEBOUND {
    return rank_ > inline_rank ? heap_ : inline_;
  }
  [[nodiscard]] const std::int64_t* begin() const noexcept TENSORCAST_LIFETIMEBOUND { return data(); }
  [[nodiscard]] const std::int64_t* end() const noexcept TENSORCAST_LIFETIMEBOUND { return data() + rank_; }
  [[nodiscard]] std::int64_t operator[](std::size_t axis) const noexcept { return data()[axis]; }
  // Precondition of both: it is not empty.
  [[nodiscard]] std::int64_t front() const noexcept { return data()[0]; }
  [[nodiscard]] std::int64_t back() const noexcept { return data()[rank_ - 1]; }

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t i = 0; i < a.rank_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t inline_rank = 8;

  // As std::copy_n, whose header takes long to compile.
  static void copy(const std::int64_t* from, std::size_t rank, std::int64_t* to) noexcept {
    for (std::size_t i = 0; i < rank; ++i) to[i] = from[i];
  }
  void release() noexcept {
    if (rank_ > inline_rank) delete[] heap_;
  }
  void take(Shape& other) noexcept {
    rank_ = other.rank_;
    if (rank_ > inline_rank) {
      heap_ = other.heap_;
      other.rank_ = 0;
    } else {
      copy(other.inline_, rank_, inline_);
    }
  }

  std::size_t rank_ = 0;
  union {
    std::int64_t inline_[inline_rank];
    std::int64_t* heap_ = nullptr;  // set, as GCC 12 warns of moves and swaps of small shapes in users' code
  };
};

struct TensorView {
  DType dtype = DType::undefined;
  Shape shape = {};                       // empty: a scalar of one element
  std::span<const std::byte> bytes = {};  // storage_bytes(dtype, element count)
};

struct MutableTensorView {
  DType dtype = DType::undefined;
  Shape shape = {};
  std::span<std::byte> bytes = {};

  operator TensorView() const { return {dtype, shape, bytes}; }
};

// Strings as one UTF-8 buffer with count + 1 ascending offsets (Arrow's large_utf8 layout).
struct StringView {
  std::span<const char> data = {};
  std::span<const std::int64_t> offsets = {};  // count + 1 entries; empty means no strings
};

// The product of the dimensions; 1 for the empty shape of a scalar.
// Errors: invalid_argument on a negative dimension, and when the product overflows size_t.
[[nodiscard]] TENSORCAST_API Result<std::size_t> element_count(std::span<const std::int64_t> shape);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
