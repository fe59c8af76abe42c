// SPDX-License-Identifier: Apache-2.0
#include "cast/converter.hpp"

#include <cstring>

#include "codec/packing.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// D0 and D7: the same type keeps its bits, and integers of one width share their codes unless they saturate.
bool shares_codes(DType from, DType to, const codec::Policy& policy) {
  if (from == to) return true;
  const bool are_integers = family(from) == Family::integer && family(to) == Family::integer;
  return are_integers && bit_width(from) == bit_width(to) && policy.range == codec::RangeRule::wrap;
}

}  // namespace

Converter::Converter(Target target, const Conversion& whole, const codec::Policy& policy) : policy_(policy) {
  const DType from = whole.from, to = whole.to;
  if (policy.has_word(row(to))) {
    // A table has one result for each code, which random bits forbid.
    if (policy.rounding != Rounding::stochastic && kernels::TableConversion::pays(from, whole.count)) {
      table_.emplace(target, from, to, policy);
    } else if (policy.scale == 1.0) {
      rounded_.emplace(target, from, to, policy);
    } else if (kernels::ScaledConversion::takes(policy, row(to))) {
      scaled_.emplace(target, from, to, policy, whole.count);
    }
  } else if (policy.scale == 1.0) {
    is_copy_ = shares_codes(from, to, policy);
    if (!is_copy_) kernel_ = kernels::find_kernel(target, from, to);
  } else if (kernels::TableConversion::pays(from, whole.count)) {
    table_.emplace(target, from, to, policy);
  } else {
    scaled_.emplace(target, from, to, policy, whole.count);
  }
}

bool Converter::is_memory_bound() const noexcept { return kernel_ != nullptr; }

void Converter::check_sources(const kernels::Interval& accepted, bool refuses_rest) noexcept {
  checks_sources_ = kernel_ != nullptr && kernel_->checked != nullptr;
  accepted_ = accepted;
  // Integers that nobody reads are made faster so than by wrapping.
  if (checks_sources_ && refuses_rest) policy_.range = codec::RangeRule::saturate;
}

bool Converter::run(const Conversion& piece) const noexcept {
  if (checks_sources_) return !kernel_->checked(piece.src, piece.dst, piece.count, policy_, accepted_);
  if (kernel_ != nullptr) {
    kernel_->run(piece.src, piece.dst, piece.count, policy_);
  } else if (is_copy_) {
    std::memmove(piece.dst, piece.src, storage_bytes(piece.to, piece.count));
    codec::clear_tail(piece.to, piece.dst, piece.count);
  } else if (table_) {
    table_->run(piece.src, piece.dst, piece.count);
  } else if (rounded_) {
    rounded_->run(piece.src, piece.dst, piece.count, piece.first);
  } else if (scaled_) {
    scaled_->run(piece.src, piece.dst, piece.count, piece.first);
  } else {
    static_cast<void>(
        codec::reference_cast(piece.src, piece.from, piece.dst, piece.to, piece.count, policy_, piece.first));
  }
  return false;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
