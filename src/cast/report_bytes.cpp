#include "cast/report_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "cast/byte_fates.hpp"
#include "cast/byte_tables.hpp"
#include "cast/report_codes.hpp"
#include "cast/report_planes.hpp"
#include "codec/reference_cast.hpp"
#include "kernels/tally/byte_planes.hpp"
#include "kernels/tally/tally.hpp"

namespace tensorcast {
namespace {

using kernels::ByteWindow;

// Blocks of fewer bytes say nothing about the kinds of bytes in the next ones.
constexpr std::size_t kinds_min_bytes = 256;

// A window of kinds is found by looking at so many bytes.
constexpr std::size_t window_min_bytes = 512;

// After so many blocks with new kinds of bytes, they are not counted by kind any more.
constexpr int max_surprises = 8;

using CodeCounts = std::array<std::uint64_t, byte_values>;

using Tables = decltype(ByteReporter::Count::tables);

void add_tables(const Tables& tables, CodeCounts& bytes) {
  for (const auto& table : tables) {
    for (std::size_t byte = 0; byte < byte_values; ++byte) bytes[byte] += table[byte];
  }
}

CodeCounts count_codes(DType dtype, const ByteReporter::Count& count) {
  CodeCounts bytes = count.bytes, codes = {};
  if (count.in_tables != 0) add_tables(count.tables, bytes);
  const std::size_t per_byte = codes_per_byte(dtype);
  for (std::size_t byte = 0; byte < byte_values; ++byte) {
    for (std::size_t i = 0; bytes[byte] != 0 && i < per_byte; ++i) codes[code_in(dtype, byte, i)] += bytes[byte];
  }
  for (std::size_t code = 0; code < count.codes.size(); ++code) codes[code] += count.codes[code];
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

// --- The reporter

ByteReporter::Count::Count() noexcept = default;

void ByteReporter::Count::empty_tables() noexcept {
  if (in_tables != 0) add_tables(tables, bytes);
  tables = {};
  in_tables = 0;
}

void ByteReporter::Count::merge(const Count& other) noexcept {
  for (std::size_t byte = 0; byte < byte_values; ++byte) bytes[byte] += other.bytes[byte];
  if (other.in_tables != 0) add_tables(other.tables, bytes);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] += other.codes[i];
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(other.sums[i]);
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = std::max(ranks[i], other.ranks[i]);
}

ByteReporter::ByteReporter(DType from, DType to, const codec::Policy& policy, Target target)
    : from_(from), target_(target), tables_(ByteTables::of(from, to, policy)) {}

ByteReporter::~ByteReporter() = default;

void ByteReporter::add(const std::byte* src, std::size_t count, Count& into) const {
  const std::size_t bytes = bit_width(from_) == 6 ? 0 : count / codes_per_byte(from_);
  for (std::size_t i = bytes * codes_per_byte(from_); i < count; ++i) {
    ++into.codes[codec::load_code(from_, src, i)];
  }
  if (bytes == 0) return;
  const BytePlanes* const planes = kernels::has_byte_planes(target_) ? tables_->planes_for(bytes) : nullptr;
  if (planes != nullptr) return planes->add(src, bytes, into);
  if (bit_width(from_) < 8 && kernels::has_count_bytes(target_)) return add_half_bytes(src, bytes, into);
  if (from_ == DType::float8_e8m0fnu && add_window(src, bytes, into)) return;
  if (!add_few_kinds(src, bytes, into)) add_histogram(src, bytes, into);
}

// False, and nothing is added, where windows do not pay.
bool ByteReporter::add_window(const std::byte* data, std::size_t bytes, Count& into) const {
  if (bytes < window_min_bytes || into.surprises == max_surprises || !kernels::has_count_bytes(target_)) return false;
  if (!into.window) into.window = window_of(data, bytes);
  const std::size_t others = kernels::count_bytes(target_, data, bytes, *into.window, into.bytes.data());
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
    into.bytes[static_cast<std::uint8_t>(into.kinds[kind])] += counts[kind];
  }
  return true;
}

void ByteReporter::add_half_bytes(const std::byte* data, std::size_t bytes, Count& into) const {
  if (bit_width(from_) == 4) return kernels::count_half_bytes(target_, data, bytes, into.codes.data());
  std::array<std::uint64_t, 16> counts = {};
  kernels::count_half_bytes(target_, data, bytes, counts.data());
  for (std::size_t half = 0; half < counts.size(); ++half) {
    into.codes[half & 3] += counts[half];
    into.codes[half >> 2] += counts[half];
  }
}

void ByteReporter::add_histogram(const std::byte* data, std::size_t bytes, Count& into) {
  constexpr std::size_t per_part = std::size_t{1} << 30;
  for (std::size_t first = 0; first < bytes; first += per_part) {
    const std::size_t part = std::min(per_part, bytes - first);
    if (into.in_tables + part > std::numeric_limits<std::uint32_t>::max()) into.empty_tables();
    into.in_tables += static_cast<std::uint32_t>(part);
    const std::size_t end = first + part;
    std::size_t i = first;
    for (; i + 8 <= end; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, data + i, sizeof word);
      for (std::size_t k = 0; k < 8; ++k) ++into.tables[k][word >> (8 * k) & 0xff];
    }
    for (; i < end; ++i) ++into.tables[0][static_cast<std::uint8_t>(data[i])];
  }
  if (into.surprises < max_surprises && bytes >= kinds_min_bytes) find_kinds(into);
}

void ByteReporter::find_kinds(Count& into) {
  ++into.surprises;
  into.kind_count = 0;
  into.empty_tables();
  std::array<std::pair<std::uint64_t, std::byte>, byte_values> kinds;
  std::size_t found = 0;
  for (std::size_t byte = 0; byte < byte_values; ++byte) {
    if (into.bytes[byte] != 0) kinds[found++] = {into.bytes[byte], static_cast<std::byte>(byte)};
  }
  if (found > Count::max_kinds) into.surprises = max_surprises;
  if (into.surprises == max_surprises) return;
  std::sort(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(found), std::greater<>());  // the rare seldom
  for (std::size_t kind = 0; kind < found; ++kind) into.kinds[kind] = kinds[kind].second;
  into.kind_count = found;
}

// The histogram and the planes, each of which has counted some blocks.
CastReport ByteReporter::report(const Count& count) const {
  CastReport report;
  SquareSums signal, noise;
  const Fates& fates = tables_->fates();
  if (const BytePlanes* planes = tables_->made_planes()) std::tie(signal, noise) = planes->read(count, report);
  const CodeCounts counts = count_codes(from_, count);
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
