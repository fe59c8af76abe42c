// SPDX-License-Identifier: Apache-2.0
// The first stage of a conversion: the kernel, table or scaled conversion that a request needs, chosen once.
#pragma once

#include <optional>

#include "cast/conversion.hpp"
#include "kernels/byte_table/table_conversion.hpp"
#include "kernels/kernel.hpp"
#include "kernels/rounded.hpp"
#include "kernels/scaled.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Converts pieces of one request, from any thread.
class Converter {
 public:
  // Precondition: check() accepted `whole`, and the policy demands no errors.
  Converter(Target target, const Conversion& whole, const codec::Policy& policy);

  // Makes run() compare sources with `accepted`, if it has a kernel that does. `refuses_rest`: the request fails if it
  // is to an integer, and a source is out of its range.
  void check_sources(const kernels::Interval& accepted, bool refuses_rest) noexcept;
  [[nodiscard]] bool checks_sources() const noexcept { return checks_sources_; }

  // Returns true if it has compared all sources, and they are accepted.
  bool run(const Conversion& piece) const noexcept;

  // Reports whether codes stay as they are.
  [[nodiscard]] bool is_copy() const noexcept { return is_copy_; }
  // Reports whether run() does hardly more than load and store.
  [[nodiscard]] bool is_memory_bound() const noexcept;

 private:
  codec::Policy policy_;
  bool is_copy_ = false;
  bool checks_sources_ = false;
  kernels::Interval accepted_;
  const kernels::Kernel* kernel_ = nullptr;
  std::optional<kernels::ScaledConversion> scaled_;
  std::optional<kernels::TableConversion> table_;
  std::optional<kernels::RoundedConversion> rounded_;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
