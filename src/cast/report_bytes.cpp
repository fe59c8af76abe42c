#include "cast/report_bytes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cast/report_codes.hpp"
#include "codec/reference_cast.hpp"
#include "kernels/tally/byte_planes.hpp"
#include "kernels/tally/tally.hpp"

namespace tensorcast {
namespace {

using codec::uint128;
using kernels::BytePlane;
using kernels::ByteSet;
using kernels::ByteWindow;
using kernels::PlaneBytes;

__extension__ using int128 = __int128;

constexpr std::size_t byte_values = 256;

// Tables take some 20 us to make.
constexpr std::size_t planes_min_bytes = std::size_t{1} << 17;
// A window of kinds is found by looking at so many bytes.
constexpr std::size_t window_min_bytes = 512;

// After so many blocks with new kinds of bytes, they are not counted by kind any more.
constexpr int max_surprises = 8;

// --- Squares as integers

// significand * 2^exponent
struct Square {
  std::uint64_t significand = 0;
  int exponent = 0;
  std::uint64_t root = 0;  // of the significand
};

// None where it has too many bits.
std::optional<Square> square_of(long double x) {
  const auto number = static_cast<double>(x);
  if (number == 0.0 && x == 0.0L) return Square{};
  constexpr int mantissa_bits = 52, bias = 1075;
  const auto bits = std::bit_cast<std::uint64_t>(number);
  const int exponent = static_cast<int>(bits >> mantissa_bits & 0x7ff);
  if (static_cast<long double>(number) != x || exponent == 0) return std::nullopt;
  std::uint64_t significand = (bits & ((std::uint64_t{1} << mantissa_bits) - 1)) | std::uint64_t{1} << mantissa_bits;
  const int zeros = std::countr_zero(significand);
  significand >>= zeros;
  if (significand >> 32 != 0) return std::nullopt;
  return Square{significand * significand, 2 * (exponent - bias + zeros), significand};
}

// Squares as integers of few enough bits that any number of them adds up in 128. Tiny ones, as of the error of zeros
// that become 2^-127, are counted apart from the others, in units of their own.
struct SquareSums {
  std::array<uint128, 2> units = {};
};
class Squares {
 public:
  // Of no use after false.
  [[nodiscard]] bool set(std::size_t code, long double x) {
    const std::optional<Square> square = square_of(x);
    if (!square) return false;
    squares_[code] = *square;
    if (square->significand == 0) return true;
    Scale& scale = scales_[scale_of(*square)];
    scale.unit = std::min(scale.unit, square->exponent);
    scale.end = std::max(scale.end, square->exponent + static_cast<int>(std::bit_width(square->significand)));
    return scale.end - scale.unit <= max_bits;
  }
  void add(std::size_t code, std::uint64_t times, SquareSums& sums) const {
    for (std::size_t scale = 0; scale < scales_.size(); ++scale) sums.units[scale] += in_units(code, scale) * times;
  }
  // Zero for those of the other scale.
  [[nodiscard]] uint128 in_units(std::size_t code, std::size_t scale) const {
    const Square& square = squares_[code];
    if (square.significand == 0 || scale_of(square) != scale) return 0;
    return uint128{square.significand} << (square.exponent - scales_[scale].unit);
  }
  // Of what in_units() gives.
  [[nodiscard]] uint128 root_in_units(std::size_t code, std::size_t scale) const {
    const Square& square = squares_[code];
    if (square.significand == 0 || scale_of(square) != scale) return 0;
    return uint128{square.root} << ((square.exponent - scales_[scale].unit) / 2);
  }
  // By how many bits the unit is finer than that of the others; none where either has none.
  [[nodiscard]] std::optional<int> bits_below(const Squares& other, std::size_t scale) const {
    const Scale &mine = scales_[scale], &others = other.scales_[scale];
    if (mine.unit > mine.end || others.unit > others.end) return std::nullopt;
    return others.unit - mine.unit;
  }
  [[nodiscard]] double value(const SquareSums& sums) const {
    double value = 0.0;
    for (std::size_t scale = 0; scale < scales_.size(); ++scale) {
      if (sums.units[scale] != 0) value += std::ldexp(static_cast<double>(sums.units[scale]), scales_[scale].unit);
    }
    return value;
  }

 private:
  struct Scale {
    int unit = std::numeric_limits<int>::max() / 2;
    int end = std::numeric_limits<int>::min() / 2;
  };
  static constexpr int max_bits = 80;
  static constexpr int tiny_exponent = -200;

  static std::size_t scale_of(const Square& square) { return square.exponent < tiny_exponent ? 1 : 0; }

  std::array<Square, byte_values> squares_ = {};
  std::array<Scale, 2> scales_;
};

// --- What becomes of codes

struct Fates {
  std::array<CodeFate, byte_values> of = {};
  Squares signal, noise;
  bool are_squares_exact = true;

  void set(std::size_t code, const CodeFate& fate) {
    of[code] = fate;
    are_squares_exact = are_squares_exact && signal.set(code, fate.source) && noise.set(code, fate.error);
  }
};

std::size_t codes_per_byte(DType dtype) { return 8 / static_cast<std::size_t>(bit_width(dtype)); }

std::size_t code_in(DType dtype, std::size_t byte, std::size_t index) {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  return byte >> (index * bits) & ((std::size_t{1} << bits) - 1);
}

using CodeCounts = std::array<std::uint64_t, byte_values>;

CodeCounts count_codes(DType dtype, const ByteReporter::Count& count) {
  CodeCounts codes = {};
  for (std::size_t byte = 0; byte < byte_values; ++byte) {
    std::uint64_t times = 0;
    for (const auto& table : count.bytes) times += table[byte];
    for (std::size_t i = 0; i < codes_per_byte(dtype); ++i) codes[code_in(dtype, byte, i)] += times;
  }
  for (std::size_t code = 0; code < count.last_codes.size(); ++code) codes[code] += count.last_codes[code];
  return codes;
}

std::uint8_t most_frequent(const std::array<std::uint16_t, byte_values>& counts) {
  return static_cast<std::uint8_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

// The window that most of some of the bytes are in. One kind, as of zeros, may be far from the others.
ByteWindow window_of(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kinds = 16;
  std::array<std::uint16_t, byte_values> sample = {};
  for (std::size_t i = 0; i < window_min_bytes; ++i) {
    ++sample[static_cast<std::uint8_t>(data[i * (bytes / window_min_bytes)])];
  }
  const std::uint8_t frequent = most_frequent(sample);
  const std::uint16_t times = std::exchange(sample[frequent], std::uint16_t{0});
  ByteWindow window;
  int inside = 0, most = -1;
  for (std::size_t end = 0; end < byte_values; ++end) {
    inside += sample[end];
    if (end >= kinds) inside -= sample[end - kinds];
    if (inside <= most || end < kinds - 1) continue;
    most = inside;
    window.first = static_cast<std::uint8_t>(end - (kinds - 1));
  }
  sample[frequent] = times;
  std::fill_n(sample.begin() + window.first, kinds, std::uint16_t{0});
  window.further = most_frequent(sample);
  if (sample[window.further] == 0) window.further = static_cast<std::uint8_t>(window.first + kinds);
  return window;
}

}  // namespace

// --- Planes

class BytePlanes {
 public:
  // None where there would be too many.
  static std::unique_ptr<const BytePlanes> make(DType from, DType to, const codec::Policy& policy) {
    auto planes = std::make_unique<BytePlanes>();
    for (std::size_t code = 0; code < std::size_t{1} << bit_width(from); ++code) {
      planes->fates_.set(code, fate_of(from, code, to, policy));
      if (!planes->fates_.are_squares_exact) return nullptr;
    }
    if (!planes->add_planes(from)) return nullptr;
    return planes;
  }

  void add(const std::byte* data, std::size_t bytes, ByteReporter::Count& into) const {
    const ByteSet possible = kernels::possible_bytes(data, bytes);
    kernels::sum_planes(planes_, possible, data, bytes, into.sums.data());
    for (std::size_t set = 0; set < square_sets_.size(); ++set) {
      kernels::sum_squares(square_sets_[set], possible, data, bytes, into.squares[set].data());
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (into.ranks[i] != ranks_[i].greatest) kernels::raise_rank(ranks_[i], possible, data, bytes, into.ranks[i]);
    }
  }

  [[nodiscard]] const Fates& fates() const { return fates_; }

  // Adds the counts and maxima, and returns the sums of squares.
  std::pair<SquareSums, SquareSums> read(const ByteReporter::Count& count, CastReport& report) const {
    for (const EventPlane& events : events_) {
      const kernels::PlaneSum& sum = count.sums[events.plane];
      add_events(events.first, sum.first, report);
      add_events(events.second, sum.second, report);
    }
    report.max_abs_error = std::max(report.max_abs_error, ranked_[0][count.ranks[0]]);
    report.max_rel_error = std::max(report.max_rel_error, ranked_[1][count.ranks[1]]);
    std::pair<SquareSums, SquareSums> squares;
    for (std::size_t scale = 0; scale < 2; ++scale) {
      squares.first.units[scale] = sum_of(signal_[scale], count, 0);
      squares.second.units[scale] = sum_of(noise_[scale], count, squares.first.units[scale]);
    }
    return squares;
  }

 private:
  using Numbers = std::array<int128, byte_values>;
  using HalfNumbers = std::array<int128, byte_values / 2>;

  static constexpr int digit_bits = 7;  // of numbers that are squared
  static constexpr std::ptrdiff_t plane_cost = 2;

  // A plane that counts in units of 2^shift.
  struct Digit {
    BytePlane plane;
    int shift = 0;
  };
  struct Part {
    std::size_t plane = 0;
    int shift = 0;
  };
  struct Parts {
    std::vector<Part> parts;
    std::vector<std::size_t> square_sets;
    bool is_rest_of_signal = false;  // what the parts leave of it, whose unit is `signal_shift` bits coarser
    int signal_shift = 0;
    int further_bits = 0;  // that the sum has below the unit: zeros
  };

  struct EventPlane {
    std::size_t plane = 0;
    std::uint32_t first = 0, second = 0;  // events; the second ones of a pair
  };

  static void add_events(std::uint32_t events, std::int64_t times, CastReport& report) {
    CodeFate fate;
    fate.events = events;
    add_counts(fate, static_cast<std::uint64_t>(times), report);
  }

  // Modulo 2^128 on the way.
  static uint128 sum_of(const Parts& parts, const ByteReporter::Count& count, uint128 signal) {
    uint128 sum = parts.is_rest_of_signal ? signal << parts.signal_shift : 0;
    for (const Part& part : parts.parts) {
      const uint128 share = static_cast<uint128>(int128{count.sums[part.plane].first}) << part.shift;
      sum += parts.is_rest_of_signal ? -share : share;
    }
    for (const std::size_t set : parts.square_sets) {
      for (int i = 0; i < static_cast<int>(2 * kernels::max_square_digits); ++i) {
        const bool is_product = i % 2 == 1;  // of two digits, twice in the square
        const auto products = static_cast<std::uint64_t>(count.squares[set][static_cast<std::size_t>(i)]);
        sum += uint128{products} << (digit_bits * i + (is_product ? 1 : 0));
      }
    }
    return sum >> parts.further_bits;
  }

  // False where there are too many.
  bool add_planes(DType from) {
    const auto of_bytes = [&](auto&& of_code) {
      Numbers sums = {};
      for (std::size_t byte = 0; byte < byte_values; ++byte) {
        for (std::size_t i = 0; i < codes_per_byte(from); ++i) {
          sums[byte] += static_cast<int128>(of_code(code_in(from, byte, i)));
        }
      }
      return sums;
    };
    std::vector<Flags> all_flags;
    for (std::uint32_t event = 1; event < codec::event_refused; event *= 2) {
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
    for (const std::size_t scale : {std::size_t{0}, std::size_t{1}}) {
      const Numbers signal = of_bytes([&](std::size_t code) { return fates_.signal.in_units(code, scale); });
      const Numbers noise = of_bytes([&](std::size_t code) { return fates_.noise.in_units(code, scale); });
      const bool may_be_squares = codes_per_byte(from) == 1;
      add_squares(fates_.signal, digits_of(signal), may_be_squares, scale, signal_[scale]);
      add_noise(signal, noise, may_be_squares, scale);
    }
    if (!rank(from, 0, [](const CodeFate& fate) { return fate.error; })) return false;
    if (!rank(from, 1, [](const CodeFate& fate) { return fate.relative_error; })) return false;
    return planes_.size() <= ByteReporter::Count().sums.size();
  }

  // Of elements with some events.
  struct Flags {
    Numbers numbers = {};
    std::uint32_t events = 0;
  };

  static bool is_symmetric(const Numbers& numbers) {
    return std::equal(numbers.begin(), numbers.begin() + byte_values / 2, numbers.begin() + byte_values / 2);
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
    using enum PlaneBytes;
    const bool symmetric = is_symmetric(one.numbers) && is_symmetric(other.numbers);
    for (const PlaneBytes bytes : symmetric ? std::vector{all} : std::vector{without_bit_7, with_bit_7}) {
      BytePlane plane;
      plane.bytes = bytes;
      plane.is_pair = other.events != 0;
      const std::size_t first = bytes == with_bit_7 ? byte_values / 2 : 0;
      for (std::size_t low = 0; low < plane.value.size(); ++low) {
        plane.value[low] = static_cast<std::int8_t>(one.numbers[first + low] - 128 * other.numbers[first + low]);
      }
      plane.set_nonzero();
      if (plane.is_zero()) continue;
      events_.push_back({planes_.size(), one.events, other.events});
      planes_.push_back(plane);
    }
  }

  // Where the result y is small, x^2 - (x - y)^2 = y (2x - y) has fewer bits than the noise (x - y)^2 has.
  void add_noise(const Numbers& signal, const Numbers& noise, bool may_be_squares, std::size_t scale) {
    Parts& parts = noise_[scale];
    const std::vector<Digit> digits = digits_of(noise);
    const std::optional<int> finer = fates_.signal.bits_below(fates_.noise, scale);
    if (finer && std::abs(*finer) <= max_finer_bits) {
      const int signal_shift = std::max(-*finer, 0), noise_shift = std::max(*finer, 0);
      Numbers excess;
      for (std::size_t byte = 0; byte < byte_values; ++byte) {
        excess[byte] = signal[byte] * (int128{1} << signal_shift) - noise[byte] * (int128{1} << noise_shift);
      }
      const std::vector<Digit> excess_digits = digits_of(excess);
      if (new_planes(excess_digits) < new_planes(digits)) {
        parts.is_rest_of_signal = true;
        parts.signal_shift = signal_shift;
        parts.further_bits = noise_shift;
        return add(excess_digits, parts);
      }
    }
    add_squares(fates_.noise, digits, may_be_squares, scale, parts);
  }

  // As sums of the squares' digits, or of the digits' squares.
  void add_squares(const Squares& squares, const std::vector<Digit>& digits, bool may_be_squares, std::size_t scale,
                   Parts& parts) {
    if (may_be_squares) {
      auto sets = square_sets_of(squares, scale);
      const bool fit = sets && square_sets_.size() + sets->size() <= ByteReporter::Count().squares.size();
      if (fit && cost_of(*sets) < plane_cost * new_planes(digits)) {
        for (std::vector<BytePlane>& set : *sets) {
          parts.square_sets.push_back(square_sets_.size());
          square_sets_.push_back(std::move(set));
        }
        return;
      }
    }
    add(digits, parts);
  }

  // Instructions: a lookup of each digit, but of those that hardly occur, its products, and what each set needs.
  static std::ptrdiff_t cost_of(const std::vector<std::vector<BytePlane>>& sets) {
    std::ptrdiff_t cost = 0;
    for (const std::vector<BytePlane>& set : sets) {
      const auto digits = std::count_if(set.begin(), set.end(), [](const BytePlane& digit) {
        return std::count(digit.value.begin(), digit.value.end(), 0) < std::ssize(digit.value) - 2;
      });
      const bool is_masked = set[0].bytes != PlaneBytes::all;
      cost += digits == 0 ? 0 : 3 * digits + (is_masked ? 2 : 0);
    }
    return cost;
  }

  // None where that is no way to sum them up.
  static std::optional<std::vector<std::vector<BytePlane>>> square_sets_of(const Squares& squares, std::size_t scale) {
    using enum PlaneBytes;
    std::array<uint128, byte_values> roots;
    for (std::size_t byte = 0; byte < byte_values; ++byte) roots[byte] = squares.root_in_units(byte, scale);
    const bool symmetric = std::equal(roots.begin(), roots.begin() + byte_values / 2, roots.begin() + byte_values / 2);
    std::vector<std::vector<BytePlane>> sets;
    for (const PlaneBytes bytes : symmetric ? std::vector{all} : std::vector{without_bit_7, with_bit_7}) {
      std::vector<BytePlane> digits;
      const std::size_t first = bytes == with_bit_7 ? byte_values / 2 : 0;
      for (int place = 0; place * digit_bits < 128; ++place) {
        BytePlane digit;
        digit.bytes = bytes;
        for (std::size_t low = 0; low < digit.value.size(); ++low) {
          const uint128 root = roots[first + low];
          digit.value[low] = static_cast<std::int8_t>(root >> (place * digit_bits) & ((1 << digit_bits) - 1));
          const bool has_distant =
              place >= 2 && digit.value[low] != 0 && (root & ((uint128{1} << ((place - 1) * digit_bits)) - 1)) != 0;
          if (has_distant) return std::nullopt;
        }
        digit.set_nonzero();
        digits.push_back(digit);
      }
      while (!digits.empty() && digits.back().is_zero()) digits.pop_back();
      if (digits.size() > kernels::max_square_digits) return std::nullopt;
      if (!digits.empty()) sets.push_back(std::move(digits));
    }
    return sets;
  }

  // Numbers as sums of planes, of which few are new. Bytes with and without bit 7 may have some in common.
  [[nodiscard]] std::vector<Digit> digits_of(const Numbers& numbers) const {
    HalfNumbers without, with, less, more;
    for (std::size_t low = 0; low < without.size(); ++low) {
      without[low] = numbers[low];
      with[low] = numbers[low + without.size()];
      more[low] = with[low] - without[low];
      less[low] = without[low] - with[low];
    }
    using enum PlaneBytes;
    std::vector<Digit> best;
    append_digits(without, all, best);
    if (without == with) return best;
    append_digits(more, with_bit_7, best);
    std::vector<Digit> second, third;
    append_digits(with, all, second);
    append_digits(less, without_bit_7, second);
    append_digits(without, without_bit_7, third);
    append_digits(with, with_bit_7, third);
    if (new_planes(second) < new_planes(best)) best = std::move(second);
    if (new_planes(third) < new_planes(best)) best = std::move(third);
    return best;
  }

  // Digits of eight bits, from -128 to 127.
  static void append_digits(HalfNumbers numbers, PlaneBytes bytes, std::vector<Digit>& digits) {
    uint128 bits = 0;
    for (const int128 number : numbers) bits |= static_cast<uint128>(number);
    if (bits == 0) return;
    const int zeros = trailing_zeros(bits);
    for (int128& number : numbers) number >>= zeros;
    for (int shift = zeros; bits != 0; shift += 8) {
      Digit digit;
      digit.shift = shift;
      digit.plane.bytes = bytes;
      bits = 0;
      for (std::size_t low = 0; low < numbers.size(); ++low) {
        const auto value = static_cast<std::int8_t>(static_cast<std::uint8_t>(numbers[low] & 0xff));
        digit.plane.value[low] = value;
        numbers[low] = (numbers[low] - value) >> 8;
        bits |= static_cast<uint128>(numbers[low]);
      }
      digit.plane.set_nonzero();
      if (!digit.plane.is_zero()) digits.push_back(digit);
    }
  }

  static int trailing_zeros(uint128 x) {
    const auto low = static_cast<std::uint64_t>(x);
    return low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<std::uint64_t>(x >> 64));
  }

  [[nodiscard]] std::size_t place_of(const BytePlane& plane) const {
    const auto same = std::find_if(planes_.begin(), planes_.end(), [&](const BytePlane& other) {
      return other.bytes == plane.bytes && other.value == plane.value && !other.is_pair;
    });
    return static_cast<std::size_t>(same - planes_.begin());
  }

  [[nodiscard]] std::ptrdiff_t new_planes(const std::vector<Digit>& digits) const {
    return std::count_if(digits.begin(), digits.end(),
                         [&](const Digit& digit) { return place_of(digit.plane) == planes_.size(); });
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
    std::vector<double>& all = ranked_[which];
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
      ranks_[which].value[byte] =
          static_cast<std::uint8_t>(std::lower_bound(all.begin(), all.end(), most) - all.begin());
    }
    ranks_[which].greatest = *std::max_element(ranks_[which].value.begin(), ranks_[which].value.end());
    return true;
  }

  // Between the units of signal and noise: with so many more, sums of squares still fit.
  static constexpr int max_finer_bits = 8;

  Fates fates_;
  std::vector<BytePlane> planes_;
  std::vector<std::vector<BytePlane>> square_sets_;  // digits of numbers that are squared
  std::vector<EventPlane> events_;
  std::array<Parts, 2> signal_, noise_;      // by scale
  std::array<kernels::ByteRanks, 2> ranks_;  // of absolute and relative errors
  std::array<std::vector<double>, 2> ranked_;
};

// --- The reporter

void ByteReporter::Count::merge(const Count& other) noexcept {
  for (std::size_t table = 0; table < bytes.size(); ++table) {
    for (std::size_t byte = 0; byte < byte_values; ++byte) bytes[table][byte] += other.bytes[table][byte];
  }
  for (std::size_t i = 0; i < last_codes.size(); ++i) last_codes[i] += other.last_codes[i];
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].first += other.sums[i].first;
    sums[i].second += other.sums[i].second;
  }
  for (std::size_t set = 0; set < squares.size(); ++set) {
    for (std::size_t i = 0; i < squares[set].size(); ++i) squares[set][i] += other.squares[set][i];
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = std::max(ranks[i], other.ranks[i]);
}

ByteReporter::ByteReporter(DType from, DType to, const codec::Policy& policy, Target target)
    : from_(from), to_(to), policy_(policy), target_(target) {}

ByteReporter::~ByteReporter() = default;

const BytePlanes* ByteReporter::planes_for(std::size_t more_bytes) const {
  if (!kernels::has_byte_planes(target_)) return nullptr;
  if (bytes_seen_.load(std::memory_order_relaxed) < planes_min_bytes) {
    bytes_seen_.fetch_add(more_bytes, std::memory_order_relaxed);
    return nullptr;
  }
  std::call_once(planes_once_, [&] { planes_ = BytePlanes::make(from_, to_, policy_); });
  return planes_.get();
}

void ByteReporter::add(const std::byte* src, std::size_t count, Count& into) const {
  const std::size_t bytes = count / codes_per_byte(from_);
  for (std::size_t i = bytes * codes_per_byte(from_); i < count; ++i) {
    ++into.last_codes[codec::load_code(from_, src, i)];
  }
  if (const BytePlanes* planes = planes_for(bytes)) return planes->add(src, bytes, into);
  if (from_ == DType::float8_e8m0fnu && add_window(src, bytes, into)) return;
  if (!add_few_kinds(src, bytes, into)) add_histogram(src, bytes, into);
}

// False, and nothing is added, where windows do not pay.
bool ByteReporter::add_window(const std::byte* data, std::size_t bytes, Count& into) const {
  if (bytes < window_min_bytes || into.surprises == max_surprises || !kernels::has_count_bytes(target_)) return false;
  if (!into.window) into.window = window_of(data, bytes);
  const std::size_t others = kernels::count_bytes(target_, data, bytes, *into.window, into.bytes[0].data());
  if (others > bytes / 16) {
    into.window.reset();
    ++into.surprises;
  }
  return true;
}

// False, and nothing is added, where there are others than the kinds known.
bool ByteReporter::add_few_kinds(const std::byte* data, std::size_t bytes, Count& into) const {
  if (into.kind_count == 0) return false;
  std::array<std::size_t, Count::max_kinds> counts = {};
  std::size_t found = 0;
  for (std::size_t kind = 0; kind < into.kind_count && found < bytes; ++kind) {
    counts[kind] = kernels::count_byte(target_, data, bytes, into.kinds[kind]);
    found += counts[kind];
  }
  if (found < bytes) return false;
  for (std::size_t kind = 0; kind < into.kind_count; ++kind) {
    into.bytes[0][static_cast<std::uint8_t>(into.kinds[kind])] += counts[kind];
  }
  return true;
}

void ByteReporter::add_histogram(const std::byte* data, std::size_t bytes, Count& into) const {
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, data + i, sizeof word);
    for (std::size_t k = 0; k < 8; ++k) ++into.bytes[k % 4][word >> (8 * k) & 0xff];
  }
  for (; i < bytes; ++i) ++into.bytes[0][static_cast<std::uint8_t>(data[i])];

  if (into.surprises == max_surprises) return;
  ++into.surprises;
  into.kind_count = 0;
  std::array<std::pair<std::uint64_t, std::byte>, byte_values> kinds;
  std::size_t found = 0;
  for (std::size_t byte = 0; byte < byte_values; ++byte) {
    std::uint64_t times = 0;
    for (const auto& table : into.bytes) times += table[byte];
    if (times != 0) kinds[found++] = {times, static_cast<std::byte>(byte)};
  }
  if (found > Count::max_kinds) into.surprises = max_surprises;
  if (into.surprises == max_surprises) return;
  std::sort(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(found), std::greater<>());  // the rare seldom
  for (std::size_t kind = 0; kind < found; ++kind) into.kinds[kind] = kinds[kind].second;
  into.kind_count = found;
}

CastReport ByteReporter::report(const Count& count) const {
  CastReport report;
  SquareSums signal, noise;
  const CodeCounts counts = count_codes(from_, count);
  Fates present;
  if (planes_) {
    std::tie(signal, noise) = planes_->read(count, report);
  } else {
    for (std::size_t code = 0; code < byte_values; ++code) {
      if (counts[code] != 0) present.set(code, fate_of(from_, code, to_, policy_));
    }
  }
  const Fates& fates = planes_ ? planes_->fates() : present;
  for (std::size_t code = 0; code < byte_values; ++code) {
    if (counts[code] == 0) continue;
    if (!fates.are_squares_exact) {
      add_code(fates.of[code], counts[code], report);
      continue;
    }
    add_counts(fates.of[code], counts[code], report);
    fates.signal.add(code, counts[code], signal);
    fates.noise.add(code, counts[code], noise);
  }
  if (fates.are_squares_exact) {
    report.signal_power = fates.signal.value(signal);
    report.noise_power = fates.noise.value(noise);
  }
  return report;
}

}  // namespace tensorcast
