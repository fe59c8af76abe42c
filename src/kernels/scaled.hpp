// Conversions with a scale other than 1, from a type to itself too: products are exact, and rounded once.
#pragma once

#include <limits>

#include "kernels/kernel.hpp"
#include "kernels/multiply.hpp"

namespace tensorcast::kernels {

// One kind of conversion, for any number of blocks and threads.
class ScaledConversion {
 public:
  struct Pair {
    Target target;
    DType from;
    DType to;
  };
  // Which products do for the target's own conversion.
  struct Method {
    MultiplyFn multiply = nullptr;
    DType products = DType::float32;  // or float64
    Factor factor;
    ProductRounding rounding = ProductRounding::none;
    bool is_short = false;  // its scale is another, which does as well but for large numbers
  };

  // Products and conversion in one pass, as far as it goes.
  struct OnePass {
    MultiplyAndConvertFn run = nullptr;  // null where there is none
    Factor factor;
    ProductRounding rounding = ProductRounding::none;
  };

  // Numeric and bool types. The policy demands no error. `total` elements are to be converted, in all blocks together.
  ScaledConversion(Target target, DType from, DType to, const codec::Policy& policy,
                   std::size_t total = std::numeric_limits<std::size_t>::max()) noexcept;

  // As KernelFn.
  void run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept;

  // Whether it computes hardly more than the pair's kernel without a scale.
  [[nodiscard]] bool is_light() const noexcept;

 private:
  [[nodiscard]] KernelFn encoder(const Method& method) const noexcept;
  // What the ways in one pass leave of a block.
  void run_apart(const std::byte* src, std::byte* dst, std::size_t count) const noexcept;
  // Nothing is written if it fails.
  [[nodiscard]] bool try_block(const Method& method, KernelFn encode, const std::byte* src, std::byte* dst,
                               std::size_t count) const noexcept;
  // What float32 does not do in float64; what that does not do one by one, and only around the numbers concerned.
  void run_otherwise(const std::byte* src, std::byte* dst, std::size_t count) const noexcept;

  Pair pair_;
  codec::Policy policy_;
  codec::Policy unscaled_;
  Method first_;
  // Where the first stops, the second, if any; and where that stops, first_ and so on.
  OnePass at_once_, at_once_otherwise_;
  KernelFn as_unscaled_ = nullptr;
  KernelFn decode_ = nullptr;
  KernelFn encode_ = nullptr;
  bool may_fail_ = false;
  bool by_reference_ = false;
};

}  // namespace tensorcast::kernels
