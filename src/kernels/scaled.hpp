// SPDX-License-Identifier: Apache-2.0
// Conversions with a scale other than 1, from a type to itself too: products are exact, and rounded once.
#pragma once

#include <array>
#include <limits>
#include <optional>

#include "kernels/kernel.hpp"
#include "kernels/multiply.hpp"
#include "kernels/rounded.hpp"

namespace tensorcast::kernels {

// The float64 products, rounded to odd and with scales between 2^-500 and 2^500, that any word of rounding takes for
// the exact ones. Products for float64 are to nearest. Nothing if there are none. The policy demands no error for
// float64.
[[nodiscard]] std::optional<Multiplication> products_for_words(const DTypeRow& from, const DTypeRow& to,
                                                               const codec::Policy& policy);

// The float32 products, of float32_odd and with float32 scales between 2^-60 and 2^60, that are right for the nearest
// code of `to`. Nothing if there are none, and for policies that demand errors.
[[nodiscard]] std::optional<Multiplication> products_in_float32(const DTypeRow& from, const DTypeRow& to,
                                                                const codec::Policy& policy);

// One kind of conversion, for any number of blocks and threads. Each piece takes the first way that is right for all of
// its products: float32, float64, or else the reference. Example: float32 times 0.1 to float16 multiplies in float32; a
// piece with a product too close to a rounding boundary multiplies in float64, rounded to odd.
class ScaledConversion {
 public:
  // Reports whether the word is one that products are rounded by.
  [[nodiscard]] static bool takes(const codec::Policy& policy, const DTypeRow& to) noexcept {
    return !policy.has_word(to) || policy.rounding != Rounding::nearest_even;
  }

  // Numeric and bool types. The policy demands no error. `total`: the elements of all blocks together, which decide
  // whether a search for a better scale pays.
  ScaledConversion(Target target, DType from, DType to, const codec::Policy& policy,
                   std::size_t total = std::numeric_limits<std::size_t>::max()) noexcept;

  // As KernelFn. `first`: the place of the first element in its tensor.
  void run(const std::byte* src, std::byte* dst, std::size_t count, std::uint64_t first = 0) const noexcept;

 private:
  struct Way {
    KernelFn decode = nullptr;  // null: `multiply` reads the source type
    MultiplyFn multiply = nullptr;
    Multiplication by;
    KernelFn encode = nullptr;  // rounds the products; null: they are the result
  };

  void add_way(DType read_as, Products products, DType product_type, const Multiplication& by) noexcept;
  // Returns false if the way is not right for all products; the target is not written then. At most piece_count
  // elements.
  [[nodiscard]] bool try_way(const Way& way, const std::byte* src, std::byte* dst, std::size_t count,
                             std::uint64_t first) const noexcept;
  void run_in_pieces(std::size_t piece, const std::byte* src, std::byte* dst, std::size_t count,
                     std::uint64_t first) const noexcept;

  Target target_;
  DType from_, to_;
  codec::Policy policy_;
  codec::Policy unscaled_;
  KernelFn as_unscaled_ = nullptr;
  std::array<Way, 3> ways_;
  std::size_t way_count_ = 0;
  std::optional<RoundedConversion> rounded_;  // of products by a word, instead of `encode`
};

}  // namespace tensorcast::kernels
