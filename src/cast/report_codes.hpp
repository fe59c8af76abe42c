// What a conversion does to one code, by the reference, for reports.
#pragma once

#include <cstdint>

#include "codec/policy.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {

struct CodeFate {
  std::uint32_t events = 0;  // of codec::Event
  bool is_finite = false;    // in and out; else there are no errors
  long double source = 0.0L;
  double error = 0.0;
  double relative_error = 0.0;  // 0 where the source is
};

[[nodiscard]] CodeFate fate_of(DType from, std::uint64_t code, DType to, const codec::Policy& policy);

// Adds the counts and the maxima, `times` over.
void add_counts(const CodeFate& fate, std::uint64_t times, CastReport& report);
// Adds to the sums too.
void add_code(const CodeFate& fate, std::uint64_t times, CastReport& report);

}  // namespace tensorcast
