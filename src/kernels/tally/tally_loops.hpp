// The loops of a tally, as each target compiles them, and the definition that they share.
#pragma once

#include "kernels/tally/fractions.hpp"
#include "kernels/tally/integers.hpp"
#include "kernels/tally/powers.hpp"
#include "kernels/tally/tally.hpp"
#include "kernels/tally/words.hpp"

namespace tensorcast::kernels {

// One element, by the definitions in cast.hpp. Everything else here is a faster way to the same. Without a chain it is
// only counted.
inline constexpr std::size_t no_chain = tally_chains;
void tally_element(double x, double x_low, double y, double y_low, std::size_t chain, const TallyRules& rules,
                   Tally& tally) noexcept;

using IntegerLoop = void (*)(const std::byte* source, const std::byte* result, std::size_t count,
                             const IntegerRules& rules, IntegerTally& tally);

struct TallyLoops {
  void (*float32)(const float* source, const float* result, std::size_t count, const TallyRules& rules, Tally& tally);
  // The same without sums, and without a loop for usual elements.
  void (*float32_counts)(const float* source, const float* result, std::size_t count, const TallyRules& rules,
                         Tally& tally);
  void (*float64)(RealSums source, RealSums result, std::size_t count, const TallyRules& rules, Tally& tally);
  void (*products)(const float* source, double scale, const float* result, std::size_t count, const TallyRules& rules,
                   Tally& tally);
  bool (*are_small)(const std::byte* integers, int bits, bool is_signed, int digits, std::size_t count);
  std::size_t (*count_byte)(const std::byte* data, std::size_t bytes, std::byte value);
  std::size_t (*count_bytes)(const std::byte* data, std::size_t bytes, ByteWindow window, std::uint64_t* counts);
  void (*count_half_bytes)(const std::byte* data, std::size_t bytes, std::uint64_t* counts);
  void (*split_integers)(const std::byte* integers, bool is_signed, double* high, double* low, std::size_t count);
  bool (*split_products)(const double* x, double scale, double* high, double* low, std::size_t count);
  IntegerLoop (*integer_loop)(const IntegerRules& rules);
  void (*long_integers)(const std::byte* source, const std::byte* result, bool is_result_double, std::size_t count,
                        const IntegerRules& rules, LongTally& tally);
  WordLoops words;
  FractionLoops fractions;
  PowerLoops powers;
};

[[nodiscard]] const TallyLoops& tally_loops_of(Target target) noexcept;

namespace portable {
extern const TallyLoops tally_loops;
}
#if defined(__x86_64__)
namespace avx2 {
extern const TallyLoops tally_loops;
}
namespace avx512 {
extern const TallyLoops tally_loops;
}
#endif

}  // namespace tensorcast::kernels
