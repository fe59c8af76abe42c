// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "options/cast_report.hpp"
#include "tensorcast/cast_report.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

double CastReport::snr_db() const noexcept {
  if (noise_power == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal_power / noise_power);
}

void CastReport::merge(const CastReport& other) noexcept {
  options::for_each(options::cast_report, [&](const auto& number) {
    auto& value = this->*number.member;
    const auto& added = other.*number.member;
    value = number.merged == options::Merged::sum ? value + added : std::max(value, added);
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
