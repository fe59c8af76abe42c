// Reports on sources of 8 bits or fewer: each byte's share of a report is known beforehand, so bytes are counted, not
// numbers.
//
// 1. A histogram of the bytes says all. It takes about a cycle a byte; less where there are but few kinds of bytes, as
//    often among scales: then each kind is counted for itself. Codes of float8_e8m0fnu are exponents, of which most are
//    in a window of sixteen, which is counted by vectors; and so are codes of four and two bits, in halves of bytes
//    (kernels/tally/count_bytes.hpp).
// 2. All counts, sums and maxima of a report are sums and maxima of functions of the byte. The sums of squares are sums
//    of integers, in units of a common power of two; where they are not of too many bytes, large conversions look up
//    byte by byte of them, or roots of seven bits, of which the squares are summed (kernels/tally/byte_planes.hpp).
//    Each lookup costs the same, so they are chosen to be few. Maxima are looked up as ranks.
// 3. Both ways add integers only, and so give the same report: sums are exact, and rounded once. Where squares have too
//    many bits for that (float8_e8m0fnu, scales), there is only the histogram, and the sums are of rounded numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "codec/policy.hpp"
#include "kernels/tally/byte_planes.hpp"
#include "kernels/tally/tally.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {

class ByteTables;

class ByteReporter {
 public:
  // Everything that is counted adds up in any order.
  struct Count {
    std::array<kernels::PlaneSum, kernels::PlaneSet::max_planes> sums = {};  // of planes
    std::array<std::uint64_t, 256> bytes = {};
    // Of the histogram, besides: eight, so that equal bytes in a row need not wait; of at most 2^32 - 1 bytes.
    std::array<std::array<std::uint32_t, 256>, 8> tables = {};
    std::uint32_t in_tables = 0;
    std::array<std::uint64_t, 64> codes = {};  // elements of half bytes, and of an incomplete last byte
    std::array<std::uint8_t, 2> ranks = {};
    // Hints, for speed only: the bytes seen so far, if they are few, and how often others came.
    static constexpr std::size_t max_kinds = 24;
    std::array<std::byte, max_kinds> kinds = {};
    std::size_t kind_count = 0;
    int surprises = 0;
    std::optional<kernels::ByteWindow> window;  // that most bytes are in

    Count() noexcept;  // not in the class, as value-initialization would write zeros twice then
    void merge(const Count& other) noexcept;
    void empty_tables() noexcept;  // into the bytes
  };

  // Precondition: `from` has at most 8 bits.
  ByteReporter(DType from, DType to, const codec::Policy& policy, Target target);
  ~ByteReporter();
  ByteReporter(const ByteReporter&) = delete;
  ByteReporter& operator=(const ByteReporter&) = delete;

  void add(const std::byte* src, std::size_t count, Count& into) const;
  [[nodiscard]] CastReport report(const Count& count) const;

 private:
  [[nodiscard]] bool add_few_kinds(const std::byte* data, std::size_t bytes, Count& into) const;
  [[nodiscard]] bool add_window(const std::byte* data, std::size_t bytes, Count& into) const;
  void add_half_bytes(const std::byte* data, std::size_t bytes, Count& into) const;
  static void add_histogram(const std::byte* data, std::size_t bytes, Count& into);
  static void find_kinds(Count& into);

  DType from_;
  Target target_;
  std::shared_ptr<const ByteTables> tables_;
};

}  // namespace tensorcast
