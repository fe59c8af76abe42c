// Conversions with a scale other than 1, from a type to itself too: products are exact, and rounded once.
#pragma once

#include <array>
#include <limits>

#include "kernels/kernel.hpp"
#include "kernels/multiply.hpp"

namespace tensorcast::kernels {

// One kind of conversion, for any number of blocks and threads. It tries up to three ways, each right for all numbers
// but those that it finds unwanted, and leaves what remains to the reference.
class ScaledConversion {
 public:
  // Numeric and bool types. The policy demands no error. `total` elements are to be converted, in all blocks together:
  // with many, a search for a short scale pays.
  ScaledConversion(Target target, DType from, DType to, const codec::Policy& policy,
                   std::size_t total = std::numeric_limits<std::size_t>::max()) noexcept;

  // As KernelFn.
  void run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept;

 private:
  // Products, then the kernel that rounds them. Null functions: nothing to do.
  struct Way {
    KernelFn decode = nullptr;
    MultiplyFn multiply = nullptr;
    Multiplication by;
    KernelFn encode = nullptr;
  };

  void add_way(DType read_as, Products products, DType product_type, const Multiplication& by) noexcept;
  // False if a product is unwanted. The source is still whole then.
  [[nodiscard]] bool try_way(const Way& way, const std::byte* src, std::byte* dst, std::size_t count) const noexcept;
  void run_in_pieces(std::size_t piece, const std::byte* src, std::byte* dst, std::size_t count) const noexcept;

  Target target_;
  DType from_, to_;
  codec::Policy policy_;
  codec::Policy unscaled_;
  KernelFn as_unscaled_ = nullptr;
  std::array<Way, 3> ways_;
  std::size_t way_count_ = 0;
};

}  // namespace tensorcast::kernels
