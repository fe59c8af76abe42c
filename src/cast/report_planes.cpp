#include "cast/report_planes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "codec/encoded.hpp"

namespace tensorcast {
namespace {

using kernels::BytePlane;
using kernels::ByteSet;
using kernels::PlaneBytes;
using Part = BytePlanes::Part;
using Parts = BytePlanes::Parts;
using EventPlane = BytePlanes::EventPlane;

__extension__ using int128 = __int128;

using Numbers = std::array<int128, byte_values>;

constexpr ByteSet every_byte = {{~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}}};

// With so many planes of but a part of the bytes, as of numbers with a large exponent, blocks are looked at first: few
// have all magnitudes.
constexpr std::ptrdiff_t min_narrow_planes = 4;

bool is_narrow(const BytePlane& plane) {
  int bytes = 0;
  for (const std::uint64_t bits : plane.nonzero.bits) bytes += std::popcount(bits);
  return bytes < 80;
}

// A plane that counts in units of 2^shift.
struct Digit {
  BytePlane plane;
  int shift = 0;
};

class Planning {
 public:
  Planning(const Fates& fates, BytePlanes& out) : fates_(fates), out_(out) {}

  // False where there are too many.
  bool add_planes(DType from) {
    const std::size_t codes = codes_per_byte(from);
    const auto of_bytes = [&](auto&& of_code) {
      Numbers sums = {};
      for (std::size_t byte = 0; byte < byte_values; ++byte) {
        if (codes == 1) sums[byte] = static_cast<int128>(of_code(byte));
        for (std::size_t i = 0; codes != 1 && i < codes; ++i) {
          sums[byte] += static_cast<int128>(of_code(code_in(from, byte, i)));
        }
      }
      return sums;
    };
    std::uint32_t all_events = 0;
    for (const CodeFate& fate : fates_.of) all_events |= fate.events;
    std::vector<Flags> all_flags;
    for (std::uint32_t event = 1; event < codec::event_refused; event *= 2) {
      if ((all_events & event) == 0) continue;
      const Numbers flags = of_bytes([&](std::size_t code) { return (fates_.of[code].events & event) != 0 ? 1 : 0; });
      const auto same =
          std::find_if(all_flags.begin(), all_flags.end(), [&](const Flags& other) { return other.numbers == flags; });
      if (same != all_flags.end()) {
        same->events |= event;
      } else {
        all_flags.push_back({flags, event});
      }
    }
    add_all_flags(std::move(all_flags));
    for (std::size_t scale = 0; scale < square_scales; ++scale) {
      if (!fates_.signal.has(scale) && !fates_.noise.has(scale)) continue;
      const Numbers signal = of_bytes([&](std::size_t code) { return fates_.signal.in_units(code, scale); });
      const Numbers noise = of_bytes([&](std::size_t code) { return fates_.noise.in_units(code, scale); });
      add(digits_of(signal), out_.signal[scale]);
      add_noise(signal, noise, scale);
    }
    if (!rank(from, 0, [](const CodeFate& fate) { return fate.error; })) return false;
    if (!rank(from, 1, [](const CodeFate& fate) { return fate.relative_error; })) return false;
    if (planes_.size() > kernels::PlaneSet::max_planes) return false;
    const auto narrow_planes = std::count_if(planes_.begin(), planes_.end(), is_narrow);
    out_.has_narrow_planes = narrow_planes >= min_narrow_planes;
    out_.has_magnitudes = codes == 1 && family(from) == Family::floating;
    out_.planes = kernels::PlaneSet(std::move(planes_));
    return true;
  }

 private:
  // Of elements with some events.
  struct Flags {
    Numbers numbers = {};
    std::uint32_t events = 0;
  };

  static PlaneBytes kind_of(const BytePlane& plane) {
    const auto& bits = plane.nonzero.bits;
    if (std::equal(plane.value.begin(), plane.value.begin() + byte_values / 2, plane.value.begin() + byte_values / 2)) {
      return PlaneBytes::same;
    }
    if ((bits[2] | bits[3]) == 0) return PlaneBytes::without_bit_7;
    return (bits[0] | bits[1]) == 0 ? PlaneBytes::with_bit_7 : PlaneBytes::different;
  }

  // In pairs where flags are of one element a byte, but for those of few bytes, like NaN, which most blocks do not
  // have.
  void add_all_flags(std::vector<Flags> all) {
    constexpr std::ptrdiff_t few = 4;
    const auto pairs_up = [](const Flags& flags) {
      const auto ones = std::count(flags.numbers.begin(), flags.numbers.end(), 1);
      const auto zeros = std::count(flags.numbers.begin(), flags.numbers.end(), 0);
      return ones > few && ones + zeros == std::ssize(flags.numbers);
    };
    const auto alone = std::partition(all.begin(), all.end(), pairs_up);
    for (auto flags = all.begin(); flags != all.end();) {
      const bool has_second = std::distance(flags, alone) >= 2;
      add_flags(*flags, has_second ? *std::next(flags) : Flags{});
      flags += has_second ? 2 : 1;
    }
  }

  void add_flags(const Flags& one, const Flags& other) {
    BytePlane plane;
    plane.is_pair = other.events != 0;
    for (std::size_t byte = 0; byte < byte_values; ++byte) {
      plane.value[byte] = static_cast<std::int8_t>(one.numbers[byte] - 128 * other.numbers[byte]);
    }
    plane.set_nonzero();
    if (plane.is_zero()) return;
    plane.bytes = kind_of(plane);
    out_.events.push_back({planes_.size(), one.events, other.events});
    planes_.push_back(plane);
  }

  // Where the result y is small, x^2 - (x - y)^2 = y (2x - y) has fewer bits than the noise (x - y)^2 has.
  void add_noise(const Numbers& signal, const Numbers& noise, std::size_t scale) {
    Parts& parts = out_.noise[scale];
    const std::vector<Digit> digits = digits_of(noise);
    const std::optional<int> finer = fates_.signal.bits_below(fates_.noise, scale);
    if (finer && std::abs(*finer) <= max_finer_bits) {
      const int signal_shift = std::max(-*finer, 0), noise_shift = std::max(*finer, 0);
      Numbers excess;
      for (std::size_t byte = 0; byte < byte_values; ++byte) {
        excess[byte] = signal[byte] * (int128{1} << signal_shift) - noise[byte] * (int128{1} << noise_shift);
      }
      const std::vector<Digit> excess_digits = digits_of(excess);
      if (cost_of(excess_digits) < cost_of(digits)) {
        parts.is_rest_of_signal = true;
        parts.signal_shift = signal_shift;
        parts.further_bits = noise_shift;
        return add(excess_digits, parts);
      }
    }
    add(digits, parts);
  }

  // Numbers as sums of planes, of which few are new. Bytes with and without bit 7 may have some in common.
  [[nodiscard]] std::vector<Digit> digits_of(const Numbers& numbers) const {
    Numbers without = {}, with = {}, less = {}, more = {};
    for (std::size_t byte = 0; byte < byte_values; ++byte) {
      const std::size_t low = byte % (byte_values / 2), high = low + byte_values / 2;
      without[byte] = numbers[low];
      with[byte] = numbers[high];
      (byte == low ? less : more)[byte] = byte == low ? numbers[low] - numbers[high] : numbers[high] - numbers[low];
    }
    std::vector<Digit> best, second, third;
    append_digits(numbers, best);
    if (without == with) return cheaper(std::move(best), squares_of(numbers));
    append_digits(without, second);
    append_digits(more, second);
    append_digits(with, third);
    append_digits(less, third);
    if (cost_of(second) < cost_of(best)) best = std::move(second);
    if (cost_of(third) < cost_of(best)) best = std::move(third);
    return cheaper(std::move(best), squares_of(numbers));
  }

  [[nodiscard]] std::vector<Digit> cheaper(std::vector<Digit> digits, std::optional<std::vector<Digit>> squares) const {
    return squares && cost_of(*squares) < cost_of(digits) ? *std::move(squares) : std::move(digits);
  }

  // Nothing where the numbers are not all squares.
  [[nodiscard]] std::optional<std::vector<Digit>> squares_of(const Numbers& numbers) const {
    std::vector<Digit> together, apart;
    if (!append_squares(numbers, together)) return std::nullopt;
    constexpr std::ptrdiff_t half = byte_values / 2;
    Numbers without = numbers, with = numbers;
    std::fill(without.begin() + half, without.end(), int128{0});
    std::fill_n(with.begin(), half, int128{0});
    if (!append_squares(without, apart) || !append_squares(with, apart)) return together;
    return cheaper(std::move(together), std::move(apart));
  }

  // Each number is the square of seven bits in one plane, or of fewer with zeros below: a plane has the finest of the
  // numbers left, and those that fit it.
  static bool append_squares(const Numbers& numbers, std::vector<Digit>& digits) {
    constexpr std::uint64_t most = 127;
    struct Root {
      std::uint64_t odd = 0;
      int zeros = 0;
    };
    std::array<Root, byte_values> roots;
    std::size_t left = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 0) continue;
      if (numbers[i] < 0) return false;
      const int zeros = trailing_zeros(static_cast<uint128>(numbers[i]));
      const int128 odd_square = numbers[i] >> zeros;
      if (zeros % 2 != 0 || odd_square > int128{most} * int128{most}) return false;
      roots[i] = {static_cast<std::uint64_t>(std::lround(std::sqrt(static_cast<double>(odd_square)))), zeros / 2};
      if (int128{roots[i].odd} * int128{roots[i].odd} != odd_square) return false;
      ++left;
    }
    while (left != 0) {
      int finest = std::numeric_limits<int>::max();
      for (const Root& root : roots) {
        if (root.odd != 0) finest = std::min(finest, root.zeros);
      }
      Digit digit;
      digit.shift = 2 * finest;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const int zeros = roots[i].zeros - finest;
        if (roots[i].odd == 0 || zeros > 7 || roots[i].odd << zeros > most) continue;
        digit.plane.value[i] = static_cast<std::int8_t>(roots[i].odd << zeros);
        roots[i].odd = 0;
        --left;
      }
      digit.plane.set_nonzero();
      digit.plane.bytes = kind_of(digit.plane);
      digit.plane.is_squared = true;
      digits.push_back(digit);
    }
    return true;
  }

  // Digits of eight bits, from -128 to 127.
  static void append_digits(Numbers numbers, std::vector<Digit>& digits) {
    uint128 bits = 0;
    for (const int128 number : numbers) bits |= static_cast<uint128>(number);
    if (bits == 0) return;
    const int zeros = trailing_zeros(bits);
    for (int128& number : numbers) number >>= zeros;
    for (int shift = zeros; bits != 0; shift += 8) {
      Digit digit;
      digit.shift = shift;
      bits = 0;
      for (std::size_t byte = 0; byte < numbers.size(); ++byte) {
        const auto value = static_cast<std::int8_t>(static_cast<std::uint8_t>(numbers[byte] & 0xff));
        digit.plane.value[byte] = value;
        numbers[byte] = (numbers[byte] - value) >> 8;
        bits |= static_cast<uint128>(numbers[byte]);
      }
      digit.plane.set_nonzero();
      digit.plane.bytes = kind_of(digit.plane);
      if (!digit.plane.is_zero()) digits.push_back(digit);
    }
  }

  static int trailing_zeros(uint128 x) {
    const auto low = static_cast<std::uint64_t>(x);
    return low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<std::uint64_t>(x >> 64));
  }

  [[nodiscard]] std::size_t place_of(const BytePlane& plane) const {
    const auto same = std::find_if(planes_.begin(), planes_.end(), [&](const BytePlane& other) {
      return other.value == plane.value && !other.is_pair && other.is_squared == plane.is_squared;
    });
    return static_cast<std::size_t>(same - planes_.begin());
  }

  // Of what is new, as measured: two lookups, or one; and passes over the bytes, of one kind of planes each.
  [[nodiscard]] int cost_of(const std::vector<Digit>& digits) const {
    std::array<std::size_t, kernels::plane_kinds> counts = {};
    for (const BytePlane& plane : planes_) ++counts[static_cast<std::size_t>(plane.bytes)];
    int cost = 0;
    for (const Digit& digit : digits) {
      if (place_of(digit.plane) != planes_.size()) continue;
      const bool begins_pass = counts[static_cast<std::size_t>(digit.plane.bytes)]++ % kernels::planes_per_pass == 0;
      cost += (digit.plane.bytes == PlaneBytes::different ? 8 : 5) + (begins_pass ? 6 : 0);
    }
    return cost;
  }

  // Planes that are there already serve again.
  void add(const std::vector<Digit>& digits, Parts& parts) {
    for (const Digit& digit : digits) {
      const std::size_t place = place_of(digit.plane);
      if (place == planes_.size()) planes_.push_back(digit.plane);
      parts.parts.push_back({place, digit.shift});
    }
  }

  // The greatest number of a byte's codes, as its place among those of all codes. False if there are too many.
  template <class Number>
  bool rank(DType from, std::size_t which, Number number) {
    std::vector<double>& all = out_.ranked[which];
    all.push_back(0.0);
    for (const CodeFate& fate : fates_.of) all.push_back(number(fate));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.size() > byte_values) return false;
    for (std::size_t byte = 0; byte < byte_values; ++byte) {
      double most = 0.0;
      for (std::size_t i = 0; i < codes_per_byte(from); ++i) {
        most = std::max(most, number(fates_.of[code_in(from, byte, i)]));
      }
      out_.ranks[which].value[byte] =
          static_cast<std::uint8_t>(std::lower_bound(all.begin(), all.end(), most) - all.begin());
    }
    out_.ranks[which].greatest = *std::max_element(out_.ranks[which].value.begin(), out_.ranks[which].value.end());
    return true;
  }

  // Between the units of signal and noise: with so many more, sums of squares still fit.
  static constexpr int max_finer_bits = 8;

  const Fates& fates_;
  BytePlanes& out_;
  std::vector<BytePlane> planes_;
};

void add_events(std::uint32_t events, std::int64_t times, CastReport& report) {
  CodeFate fate;
  fate.events = events;
  add_counts(fate, static_cast<std::uint64_t>(times), report);
}

// Modulo 2^128 on the way.
uint128 sum_of(const Parts& parts, const ByteReporter::Count& count, uint128 signal) {
  uint128 sum = parts.is_rest_of_signal ? signal << parts.signal_shift : 0;
  for (const Part& part : parts.parts) {
    const uint128 share = static_cast<uint128>(int128{kernels::PlaneSum::total(count.sums[part.plane].first)})
                          << part.shift;
    sum += parts.is_rest_of_signal ? -share : share;
  }
  return sum >> parts.further_bits;
}

}  // namespace

std::unique_ptr<const BytePlanes> BytePlanes::make(DType from, const Fates& fates) {
  if (!fates.are_squares_exact) return nullptr;
  auto planes = std::make_unique<BytePlanes>();
  if (!Planning(fates, *planes).add_planes(from)) return nullptr;
  return planes;
}

void BytePlanes::add(const std::byte* data, std::size_t bytes, ByteReporter::Count& into) const {
  const bool are_ranks_settled = into.ranks[0] == ranks[0].greatest && into.ranks[1] == ranks[1].greatest;
  const bool looks = has_narrow_planes || !are_ranks_settled;
  const ByteSet possible = !looks           ? every_byte
                           : has_magnitudes ? kernels::possible_magnitudes(data, bytes)
                                            : kernels::possible_bytes(data, bytes);
  kernels::sum_planes(planes, possible, data, bytes, into.sums.data());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (into.ranks[i] != ranks[i].greatest) kernels::raise_rank(ranks[i], possible, data, bytes, into.ranks[i]);
  }
}

std::pair<SquareSums, SquareSums> BytePlanes::read(const ByteReporter::Count& count, CastReport& report) const {
  for (const EventPlane& plane : events) {
    const kernels::PlaneSum& sum = count.sums[plane.plane];
    add_events(plane.first, kernels::PlaneSum::total(sum.first), report);
    add_events(plane.second, kernels::PlaneSum::total(sum.second), report);
  }
  report.max_abs_error = std::max(report.max_abs_error, ranked[0][count.ranks[0]]);
  report.max_rel_error = std::max(report.max_rel_error, ranked[1][count.ranks[1]]);
  std::pair<SquareSums, SquareSums> squares;
  for (std::size_t scale = 0; scale < square_scales; ++scale) {
    squares.first.units[scale] = sum_of(signal[scale], count, 0);
    squares.second.units[scale] = sum_of(noise[scale], count, squares.first.units[scale]);
  }
  return squares;
}

}  // namespace tensorcast
