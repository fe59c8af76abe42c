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
using kernels::ByteWindow;

constexpr std::size_t byte_values = 256;

// Tables take some 20 us to make.
constexpr std::size_t planes_min_bytes = std::size_t{1} << 17;
// Cycles that 64 bytes take, as measured: a plane, a plane that needs a lookup in 256 instead of 128 values, and the
// histogram.
constexpr int symmetric_plane_cost = 2, plane_cost = 4, histogram_cost = 64;

// With so many planes of but a part of the magnitudes, as of numbers with a large exponent, blocks are looked at first:
// few have all magnitudes.
constexpr std::ptrdiff_t min_narrow_planes = 4;

// A window of kinds is found by looking at so many bytes.
constexpr std::size_t window_min_bytes = 512;

// After so many blocks with new kinds of bytes, they are not counted by kind any more.
constexpr int max_surprises = 8;

// --- Squares as integers

// significand * 2^exponent
struct Square {
  std::uint64_t significand = 0;
  int exponent = 0;
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
  return Square{significand * significand, 2 * (exponent - bias + zeros)};
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
  // None where they do not pay.
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
    const kernels::ByteRange range = has_narrow_planes_ ? kernels::range_of(data, bytes) : kernels::ByteRange{};
    for (std::size_t i = 0; i < planes_.size(); ++i) {
      if (range.meets(planes_[i])) into.sums[i] += kernels::sum_plane(planes_[i], data, bytes);
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (into.ranks[i] == ranks_[i].greatest) continue;  // it does not get greater
      into.ranks[i] = std::max(into.ranks[i], kernels::greatest_in_plane(ranks_[i], data, bytes));
    }
  }

  [[nodiscard]] const Fates& fates() const { return fates_; }

  // Adds the counts and maxima, and returns the sums of squares.
  std::pair<SquareSums, SquareSums> read(const ByteReporter::Count& count, CastReport& report) const {
    for (const auto& [plane, event] : events_) {
      CodeFate fate;
      fate.events = event;
      add_counts(fate, count.sums[plane], report);
    }
    report.max_abs_error = std::max(report.max_abs_error, ranked_[0][count.ranks[0]]);
    report.max_rel_error = std::max(report.max_rel_error, ranked_[1][count.ranks[1]]);
    return {squares(signal_, count), squares(noise_, count)};
  }

 private:
  struct Part {
    std::size_t plane = 0, scale = 0;
    int shift = 0;
  };

  static SquareSums squares(const std::vector<Part>& parts, const ByteReporter::Count& count) {
    SquareSums sums;
    for (const Part& part : parts) sums.units[part.scale] += uint128{count.sums[part.plane]} << part.shift;
    return sums;
  }

  // False where the histogram is faster, or where there are too many.
  bool add_planes(DType from) {
    const auto of_bytes = [&](auto&& of_code) {
      std::array<uint128, byte_values> sums = {};
      for (std::size_t byte = 0; byte < byte_values; ++byte) {
        for (std::size_t i = 0; i < codes_per_byte(from); ++i) sums[byte] += of_code(code_in(from, byte, i));
      }
      return sums;
    };
    for (std::uint32_t event = 1; event < codec::event_refused; event *= 2) {
      const auto plane =
          add_plane(of_bytes([&](std::size_t code) { return (fates_.of[code].events & event) != 0; }), 0);
      if (plane) events_.emplace_back(*plane, event);
    }
    const auto add_squares = [&](const Squares& squares, std::vector<Part>& parts) {
      for (const std::size_t scale : {std::size_t{0}, std::size_t{1}}) {
        const auto sums = of_bytes([&](std::size_t code) { return squares.in_units(code, scale); });
        for (int shift = 0; shift < 128; shift += 8) {
          if (const auto plane = add_plane(sums, shift)) parts.push_back({*plane, scale, shift});
        }
      }
    };
    add_squares(fates_.signal, signal_);
    add_squares(fates_.noise, noise_);
    if (!rank(from, 0, [](const CodeFate& fate) { return fate.error; })) return false;
    if (!rank(from, 1, [](const CodeFate& fate) { return fate.relative_error; })) return false;
    const auto narrow = [](const BytePlane& plane) { return plane.last - plane.first < 40; };
    has_narrow_planes_ = std::count_if(planes_.begin(), planes_.end(), narrow) >= min_narrow_planes;
    int cost = 0;
    for (const BytePlane& plane : planes_) cost += plane.is_symmetric ? symmetric_plane_cost : plane_cost;
    return planes_.size() <= ByteReporter::Count().sums.size() && cost < histogram_cost;
  }

  // A plane of 8 bits of the numbers from bit `shift` on; one that is there already serves again. None if all zero.
  std::optional<std::size_t> add_plane(const std::array<uint128, byte_values>& numbers, int shift) {
    BytePlane plane;
    for (std::size_t byte = 0; byte < byte_values; ++byte) {
      plane.value[byte] = static_cast<std::uint8_t>(numbers[byte] >> shift);
    }
    plane.set_facts();
    if (plane.greatest == 0) return std::nullopt;
    const auto same = std::find_if(planes_.begin(), planes_.end(),
                                   [&](const BytePlane& other) { return other.value == plane.value; });
    if (same != planes_.end()) return static_cast<std::size_t>(same - planes_.begin());
    planes_.push_back(plane);
    return planes_.size() - 1;
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
    ranks_[which].set_facts();
    return true;
  }

  Fates fates_;
  std::vector<BytePlane> planes_;
  bool has_narrow_planes_ = false;
  std::vector<std::pair<std::size_t, std::uint32_t>> events_;  // a plane and the event that it counts
  std::vector<Part> signal_, noise_;
  std::array<BytePlane, 2> ranks_;  // of absolute and relative errors
  std::array<std::vector<double>, 2> ranked_;
};

// --- The reporter

void ByteReporter::Count::merge(const Count& other) noexcept {
  for (std::size_t table = 0; table < bytes.size(); ++table) {
    for (std::size_t byte = 0; byte < byte_values; ++byte) bytes[table][byte] += other.bytes[table][byte];
  }
  for (std::size_t i = 0; i < last_codes.size(); ++i) last_codes[i] += other.last_codes[i];
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums[i];
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
