// SPDX-License-Identifier: Apache-2.0
// The specification of every conversion: exact, total over all pairs of types, slow. Kernels equal it byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/encoded.hpp"
#include "codec/philox.hpp"
#include "codec/policy.hpp"
#include "codec/real.hpp"

namespace tensorcast::codec {

// Numeric and bool types. `bits` is the right-aligned code of one element.
[[nodiscard]] Real decode(DType from, std::uint64_t bits) noexcept;
// `random`: the element's word, of stochastic rounding. Refuses what is not exact only if the policy says so.
[[nodiscard]] Encoded encode(const Real& value, DType to, const Policy& policy, std::uint32_t random = 0) noexcept;

// One element, every rule applied: bit copy of equal types (D0), integer to integer (D7), scale.
[[nodiscard]] Encoded cast_code(DType from, std::uint64_t bits, DType to, const Policy& policy,
                                std::uint32_t random = 0) noexcept;

// How an error says that a type lacks a value.
[[nodiscard]] inline const char* refusal(const Policy& policy) noexcept {
  return policy.inexact_is_error ? "would change in" : "does not fit";
}

// The error that names element `index`, whose code is `bits`, as one that `to` cannot hold.
[[nodiscard]] Error does_not_fit(DType from, std::uint64_t bits, DType to, const Policy& policy, std::size_t index);

// Code of element `index` in packed storage, and back. store_code() leaves the byte's other elements as they are.
[[nodiscard]] std::uint64_t load_code(DType dtype, const std::byte* data, std::size_t index) noexcept;
void store_code(DType dtype, std::byte* data, std::size_t index, std::uint64_t bits) noexcept;

// Buffers of numeric and bool types. src == dst is allowed when `to` is not wider. Tail bits become zero.
// `first`: the element's place in its tensor, on which stochastic rounding depends.
// Errors: out_of_range with the first element that fails.
[[nodiscard]] Result<void> reference_cast(const std::byte* src, DType from, std::byte* dst, DType to, std::size_t count,
                                          const Policy& policy, std::uint64_t first = 0);

// D8. Errors: parse. `scale` multiplies the exact decimal before the one rounding (done by encode()).
[[nodiscard]] Result<Real> decode_text(std::string_view text, double scale = 1.0);
// D8 to `to`: adds the words true and false for bool. Errors: parse, out_of_range.
[[nodiscard]] Result<std::uint64_t> cast_text(std::string_view text, DType to, const Policy& policy,
                                              std::uint32_t random = 0);

// The random word of an element: of stochastic rounding, else 0.
[[nodiscard]] inline std::uint32_t random_of(const Policy& policy, std::uint64_t index) noexcept {
  return policy.rounding == Rounding::stochastic ? random_word(policy.seed, index) : 0;
}
// D9: appends the text of one element.
void append_text(DType from, std::uint64_t bits, const Policy& policy, std::string& out);

}  // namespace tensorcast::codec
