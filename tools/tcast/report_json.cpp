#include "report_json.hpp"

#include <cmath>

namespace tcast {

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const tensorcast::CastReport& report) {
  return {{"count", report.count},
          {"overflowed", report.overflowed},
          {"saturated", report.saturated},
          {"underflowed_to_zero", report.underflowed_to_zero},
          {"inexact", report.inexact},
          {"nan_made", report.nan_made},
          {"nan_lost", report.nan_lost},
          {"wrapped", report.wrapped},
          {"max_abs_error", finite_or_null(report.max_abs_error)},
          {"max_rel_error", finite_or_null(report.max_rel_error)},
          {"signal_power", finite_or_null(report.signal_power)},
          {"noise_power", finite_or_null(report.noise_power)},
          {"snr_db", finite_or_null(report.snr_db())}};
}

std::string json_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace tcast
