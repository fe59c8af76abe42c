#include "kernels/code_cells.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "dtype/dtype_table.hpp"

namespace tensorcast::kernels {
namespace {

constexpr int cell_count = 32;
constexpr int most_steps = 24;  // more than any table has where cells do

// Formats with zero and subnormal numbers; of a larger code than the largest, what would follow.
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }
double value_of(int code, int mantissa_bits, int bias) {
  if (code >> mantissa_bits == 0) return code * power_of_two(1 - bias - mantissa_bits);
  const int in_float64 = code + ((1023 - bias) << mantissa_bits);
  return std::bit_cast<double>(static_cast<std::uint64_t>(in_float64) << (52 - mantissa_bits));
}
// The last code that is not greater, or one next to it.
int code_before(double value, int mantissa_bits, int bias) {
  if (value < power_of_two(1 - bias)) return static_cast<int>(value * power_of_two(bias - 1 + mantissa_bits));
  const std::uint64_t leading = std::bit_cast<std::uint64_t>(value) >> (52 - mantissa_bits);
  return static_cast<int>(leading) - ((1023 - bias) << mantissa_bits);
}

class LeastMagnitudes {
 public:
  LeastMagnitudes(const FloatFormat& source, const FloatFormat& target, double size)
      : source_(source), target_(target), size_(size) {}

  // Whose products round to a code or a greater one: those beyond the midpoint before it, which itself belongs to the
  // even code.
  [[nodiscard]] int of(int code) const {
    const double midpoint = value_of(2 * code - 1, target_.mantissa_bits + 1, target_.bias);
    const auto is_before = [&](int x) {
      const double beyond = std::fma(value_of(x, source_.mantissa_bits, source_.bias), size_, -midpoint);
      return code % 2 == 0 ? beyond < 0.0 : beyond <= 0.0;  // the sign is exact
    };
    int x = code_before(midpoint / size_, source_.mantissa_bits, source_.bias);
    while (x > 0 && !is_before(x - 1)) --x;
    while (is_before(x)) ++x;
    return x;
  }

 private:
  const FloatFormat& source_;
  const FloatFormat& target_;
  double size_;
};

// Where each of some codes begins, in order; what is before the first of them has the code before it.
struct Steps {
  int first_code;
  int count;
  int begin[most_steps];
};

// Cells of 2^width from `origin` on, of which the table has the lowest bits of their numbers for index. Magnitudes are
// shifted up by `shift_up` before a cell's constant is added. False where two steps are in one cell.
bool fill(std::uint16_t (&table)[cell_count], const Steps& steps, int origin, int width, int shift_up) {
  int next = 0;
  for (int cell = 0; cell < cell_count; ++cell) {
    const int number = (origin >> width) + cell;
    const bool has_step = next < steps.count && steps.begin[next] >> width == number;
    const int reference = has_step ? steps.begin[next++] : number << width;
    const int code = steps.first_code + next - 1;
    table[number % cell_count] = static_cast<std::uint16_t>((code << 8) - (reference << shift_up));
  }
  return next == steps.count;
}

}  // namespace

CodeCells make_code_cells(DType from, DType to, double scale, bool saturate) noexcept {
  const FloatFormat& source = row(from).format;
  const FloatFormat& target = row(to).format;
  const bool four_bits = row(to).bits == 4;
  const bool in_one_table = four_bits || target.mantissa_bits == 2;
  const int infinity = static_cast<int>(source.largest_code()) + 1;
  const auto largest = static_cast<int>(target.largest_code());
  const int shift_up = 8 - source.mantissa_bits + target.mantissa_bits;
  const LeastMagnitudes least(source, target, std::fabs(scale));

  CodeCells cells;
  const int end = least.of(saturate || four_bits ? largest : largest + 1);
  cells.reaches_infinity = end <= infinity;
  const int greatest = cells.reaches_infinity ? end : infinity - 1;
  const int low = least.of(1) - 1;
  if (low >= greatest) return cells;

  // The first code from which on products and magnitudes are normal, or the last, is the last of these steps.
  Steps small = {.first_code = 1, .count = 0, .begin = {}};
  int first = 0;
  for (bool is_last = false; !is_last; ++small.count) {
    if (small.count == most_steps) return cells;
    const int code = small.count + 1;
    first = least.of(code);
    small.begin[small.count] = first - low;
    is_last = four_bits ? code == largest : code >> target.mantissa_bits != 0 && first >> source.mantissa_bits != 0;
  }

  int last = first - low;
  int shift = source.mantissa_bits - 3;
  if (in_one_table && !four_bits) {
    if (last >= 24 << shift) return cells;
    for (int begin = 0; begin >> shift < cell_count; begin = least.of(small.count + 1) - low) {
      if (begin != 0) small.begin[small.count++] = begin;
      if (small.count == most_steps) return cells;
    }
    last = greatest - low;
  } else {
    if (first > greatest) return cells;
    shift = std::max(static_cast<int>(std::bit_width(static_cast<unsigned>(last))) - 5, 0);
  }
  if (shift > 8 || !fill(cells.small, small, 0, shift, in_one_table && !four_bits ? shift_up : 0)) return cells;

  if (!in_one_table) {
    for (std::uint16_t& constant : cells.small) constant = static_cast<std::uint16_t>(constant - (small.count << 8));
    // Before the least normal number is a midpoint of subnormal ones, and not as before other powers of two. The codes
    // up to the midpoint that were in its place are as good as that.
    if (small.count == 1 << target.mantissa_bits) first = least.of(2 * small.count) - (1 << source.mantissa_bits);
    Steps normal = {.first_code = small.count, .count = 1 << target.mantissa_bits, .begin = {first}};
    for (int i = 1; i < normal.count; ++i) normal.begin[i] = least.of(normal.first_code + i);
    if (!fill(cells.normal, normal, first, source.mantissa_bits - 5, shift_up)) return cells;
  }
  cells.first = static_cast<std::uint16_t>(first);
  cells.greatest = static_cast<std::uint16_t>(greatest);
  cells.low = static_cast<std::uint16_t>(low);
  cells.last = static_cast<std::uint16_t>(last);
  cells.shift = static_cast<std::uint16_t>(shift);
  cells.are_made = true;
  return cells;
}

}  // namespace tensorcast::kernels
