// SPDX-License-Identifier: Apache-2.0
// The numbers of a CastReport, each described once.
#pragma once

#include <tuple>

#include "options/option.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast_report.hpp"

namespace tensorcast::options {

// What becomes of the numbers of two reports that are merged.
enum class Merged { sum, largest };

template <class Value>
struct ReportNumber {
  const char* name;
  Value CastReport::*member;
  Value tc_cast_report::*c_member;
  Merged merged;
  const char* help;
};
template <class Value>
ReportNumber(const char*, Value CastReport::*, Value tc_cast_report::*, Merged, const char*) -> ReportNumber<Value>;

// In the order in which interfaces and files list them. A file of an interrupted conversion has them by position.
inline constexpr std::tuple cast_report{
    ReportNumber{"count", &CastReport::count, &tc_cast_report::count, Merged::sum, "Elements converted."},
    ReportNumber{"overflowed", &CastReport::overflowed, &tc_cast_report::overflowed, Merged::sum,
                 "Finite, out of the target's range, became infinite or NaN."},
    ReportNumber{"saturated", &CastReport::saturated, &tc_cast_report::saturated, Merged::sum,
                 "Out of the target's range, became the target's extreme."},
    ReportNumber{"underflowed_to_zero", &CastReport::underflowed_to_zero, &tc_cast_report::underflowed_to_zero,
                 Merged::sum, "Nonzero, became zero."},
    ReportNumber{"inexact", &CastReport::inexact, &tc_cast_report::inexact, Merged::sum,
                 "Finite in and out, value changed."},
    ReportNumber{"nan_made", &CastReport::nan_made, &tc_cast_report::nan_made, Merged::sum, "Was not NaN, became NaN."},
    ReportNumber{"nan_lost", &CastReport::nan_lost, &tc_cast_report::nan_lost, Merged::sum,
                 "Was NaN, became a number."},
    ReportNumber{"wrapped", &CastReport::wrapped, &tc_cast_report::wrapped, Merged::sum,
                 "Out of the target integer's range, kept the low bits."},
    ReportNumber{"sign_lost", &CastReport::sign_lost, &tc_cast_report::sign_lost, Merged::sum,
                 "Below zero, became its magnitude in a type without sign."},
    ReportNumber{"max_abs_error", &CastReport::max_abs_error, &tc_cast_report::max_abs_error, Merged::largest,
                 "Over elements finite in and out."},
    ReportNumber{"max_rel_error", &CastReport::max_rel_error, &tc_cast_report::max_rel_error, Merged::largest,
                 "The same, over nonzero sources."},
    ReportNumber{"signal_power", &CastReport::signal_power, &tc_cast_report::signal_power, Merged::sum,
                 "Sum of squares of the sources finite in and out."},
    ReportNumber{"noise_power", &CastReport::noise_power, &tc_cast_report::noise_power, Merged::sum,
                 "Sum of squares of the errors of the same elements."},
};

}  // namespace tensorcast::options
