// SPDX-License-Identifier: Apache-2.0
// Component core. Casts of ranges whose C++ types say the types of their elements: cast<bfloat16>(weights).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorcast/cast.hpp"
#include "tensorcast/element.hpp"
#include "tensorcast/packed.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

namespace detail {

template <class T>
inline constexpr bool is_packed_span = false;
template <class T>
inline constexpr bool is_packed_span<PackedSpan<T>> = true;
template <class T>
inline constexpr bool is_packed_vector = false;
template <class T>
inline constexpr bool is_packed_vector<PackedVector<T>> = true;

// As the concepts of <ranges>, which takes long to compile: a range whose elements are one array.
template <class R>
using pointer_of = decltype(std::ranges::data(std::declval<R&>()));
template <class R>
concept WholeRange = requires(R& range) {
  std::ranges::data(range);
  std::ranges::size(range);
} && WholeElement<std::remove_cv_t<std::remove_pointer_t<pointer_of<R>>>>;
template <class R>
concept PackedRange = is_packed_span<std::remove_cvref_t<R>> || is_packed_vector<std::remove_cvref_t<R>>;

template <class R>
struct element_of {
  using type = std::remove_cv_t<std::remove_pointer_t<pointer_of<R>>>;
};
template <PackedRange R>
struct element_of<R> {
  using type = typename std::remove_cvref_t<R>::value_type;
};

}  // namespace detail

// std::vector, std::array, std::span, C arrays of whole elements; PackedSpan and PackedVector.
template <class R>
concept ElementRange = detail::WholeRange<R> || detail::PackedRange<R>;

namespace detail {

template <class R>
inline constexpr bool is_writable = !std::is_const_v<std::remove_reference_t<R>>;
template <WholeRange R>
inline constexpr bool is_writable<R> = !std::is_const_v<std::remove_pointer_t<pointer_of<R>>>;
template <class R>
  requires is_packed_span<std::remove_cvref_t<R>>
inline constexpr bool is_writable<R> = !std::is_const_v<typename std::remove_cvref_t<R>::byte_type>;

// Reports whether a view of an R, as it is passed, does not outlive the elements.
template <class R>
concept Viewable = std::is_lvalue_reference_v<R> || is_packed_span<std::remove_cvref_t<R>> ||
                   (WholeRange<R> && std::ranges::enable_borrowed_range<std::remove_cvref_t<R>>);

}  // namespace detail

// A writable range that is not a temporary.
template <class R>
concept MutableElementRange = ElementRange<R> && detail::is_writable<R> && detail::Viewable<R>;

template <ElementRange R>
using element_type_of = typename detail::element_of<std::remove_cvref_t<R>>::type;

namespace detail {

template <class R>
std::span<const std::byte> bytes_of(const R& range) {
  if constexpr (is_packed_span<R>) {
    return range.bytes();
  } else if constexpr (is_packed_vector<R>) {
    return range.span().bytes();
  } else {
    return std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
  }
}
template <class R>
std::span<std::byte> writable_bytes_of(R& range) {
  if constexpr (is_packed_span<std::remove_const_t<R>>) {
    return range.bytes();
  } else if constexpr (is_packed_vector<R>) {
    return range.span().bytes();
  } else {
    return std::as_writable_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
  }
}

}  // namespace detail

// A view of a range, in one dimension or in `shape`. Does not compile for a temporary that owns its elements, nor if
// `dtype`, where it is named, is not that of the elements: view<DType::bfloat16>(codes).
template <ElementRange R>
  requires detail::Viewable<R>
[[nodiscard]] TensorView view(R&& range) {
  const auto count = static_cast<std::int64_t>(std::size(range));
  return {dtype_of<element_type_of<R>>, {count}, detail::bytes_of(std::as_const(range))};
}
template <ElementRange R>
  requires detail::Viewable<R>
[[nodiscard]] TensorView view(R&& range, Shape shape) {
  return {dtype_of<element_type_of<R>>, std::move(shape), detail::bytes_of(std::as_const(range))};
}
template <DType dtype, ElementRange R>
  requires(dtype == dtype_of<element_type_of<R>>)
[[nodiscard]] TensorView view(R&& range) {
  return view(std::forward<R>(range));
}
template <DType dtype, ElementRange R>
  requires(dtype == dtype_of<element_type_of<R>>)
[[nodiscard]] TensorView view(R&& range, Shape shape) {
  return view(std::forward<R>(range), std::move(shape));
}

// Converts the elements of a range to those of another that has as many. Contract: as cast() of views.
// Errors: also invalid_argument, if the sizes differ.
template <ElementRange From, MutableElementRange To>
[[nodiscard]] Result<void> cast(const From& src, To&& dst, const CastOptions& options = {},
                                const Execution& execution = {}) {
  const std::int64_t src_count = static_cast<std::int64_t>(std::size(src));
  const std::int64_t dst_count = static_cast<std::int64_t>(std::size(dst));
  return cast(TensorView{dtype_of<element_type_of<From>>, {src_count}, detail::bytes_of(src)},
              MutableTensorView{dtype_of<element_type_of<To>>, {dst_count}, detail::writable_bytes_of(dst)}, options,
              execution);
}
// Adds what happened to the numbers to `report`.
template <ElementRange From, MutableElementRange To>
[[nodiscard]] Result<void> cast(const From& src, To&& dst, const CastOptions& options, CastReport& report,
                                const Execution& execution = {}) {
  const std::int64_t src_count = static_cast<std::int64_t>(std::size(src));
  const std::int64_t dst_count = static_cast<std::int64_t>(std::size(dst));
  return cast(TensorView{dtype_of<element_type_of<From>>, {src_count}, detail::bytes_of(src)},
              MutableTensorView{dtype_of<element_type_of<To>>, {dst_count}, detail::writable_bytes_of(dst)}, options,
              report, execution);
}

// Converts the elements of a range to elements of type To. Errors: as cast() of views; std::bad_alloc passes.
// std::vector<bool> is no array of bool: cast to std::uint8_t, or into a range of bool.
template <WholeElement To, ElementRange From>
  requires(!std::is_same_v<To, bool>)
[[nodiscard]] Result<std::vector<To>> cast(const From& src, const CastOptions& options = {},
                                           const Execution& execution = {}) {
  std::vector<To> dst(std::size(src));
  if (Result<void> done = cast(src, dst, options, execution); !done) return std::move(done).error();
  return dst;
}
template <PackedElement To, ElementRange From>
[[nodiscard]] Result<PackedVector<To>> cast(const From& src, const CastOptions& options = {},
                                            const Execution& execution = {}) {
  PackedVector<To> dst(std::size(src));
  if (Result<void> done = cast(src, dst, options, execution); !done) return std::move(done).error();
  return dst;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
