// What a conversion did to its numbers: counted block by block, added up in a CastReport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "cast/conversion.hpp"
#include "cast/report_bytes.hpp"
#include "cast/report_integers.hpp"
#include "kernels/tally/fractions.hpp"
#include "kernels/tally/powers.hpp"
#include "kernels/tally/tally.hpp"
#include "kernels/tally/words.hpp"

namespace tensorcast {

// One kind of conversion. Several threads may count with it, each into a count of its own.
class Reporter {
 public:
  // What is known about some of the elements.
  struct Count {
    std::uint64_t elements = 0;
    kernels::Tally tally;
    CastReport by_reference;                     // elements that only the reference can judge
    std::unique_ptr<ByteReporter::Count> bytes;  // elements of 8 bits or fewer; large, so only for those
    IntegerReporter::Count integers;

    void merge(const Count& other) noexcept;  // precondition: is_order_free()
  };

  Reporter(DType from, DType to, const codec::Policy& policy, Target target = active_target());

  // Adds a converted block. The source must still be there: conversions in place keep a copy. All blocks of a count but
  // the last have a multiple of block_multiple() elements. Sums are exact, or run in element order in a fixed number of
  // chains and parts: equal inputs give equal reports on every target.
  void add(const Conversion& done, Count& count) const;
  [[nodiscard]] CastReport report(const Count& count) const;

  [[nodiscard]] std::size_t block_multiple() const noexcept {
    if (method_ == Method::words) return words_part;
    return method_ == Method::by_source || method_ == Method::kept ? by_source_part() : kernels::tally_chains;
  }

  // Whether add() looks at the results, not at the source alone.
  [[nodiscard]] bool needs_results() const noexcept { return !bytes_ && method_ != Method::kept; }

  // Whether counts are integers only, which add up in any order: then one count serves all threads.
  [[nodiscard]] bool is_order_free() const noexcept { return bytes_ || (integers_ && integers_->is_order_free()); }

 private:
  static constexpr std::size_t words_part = 4096;
  enum class Method : std::uint8_t { bytes, integers, kept, words, by_source, float32_if_they_fit, products, float64 };

  // A streaming buffer has no more 64-bit integers.
  [[nodiscard]] std::size_t by_source_part() const noexcept { return bit_width(to_) == 64 ? 1024 : 2048; }

  void emplace_distant_words();
  void add_float32_if_they_fit(const Conversion& done, Count& count) const;
  void add_float32(const Conversion& part, Count& count) const;
  void add_kept(const Conversion& done, Count& count) const;
  void add_words(const Conversion& done, Count& count) const;
  void add_rounded_words(const Conversion& part, Count& count) const;
  void add_distant_words(const Conversion& part, Count& count) const;
  void add_by_source(const Conversion& done, Count& count) const;
  void add_float64(const Conversion& done, Count& count) const;
  void add_by_reference(const Conversion& done, Count& count) const;

  DType from_;
  DType to_;
  codec::Policy policy_;
  kernels::TallyRules rules_;
  Target target_;
  Method method_;
  std::optional<ByteReporter> bytes_;
  std::optional<IntegerReporter> integers_;
  std::optional<kernels::WordTally> words_;  // one of these, with Method::words; the first with Method::kept
  std::optional<kernels::DistantWordTally> distant_words_;
  std::optional<kernels::FractionTally> fractions_;  // one of these, with Method::by_source
  std::optional<kernels::PowerTally> powers_;
};

}  // namespace tensorcast
