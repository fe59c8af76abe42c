// SPDX-License-Identifier: Apache-2.0
#include "print/report_json.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "options/cast_options.hpp"
#include "options/cast_report.hpp"
#include "process/printable.hpp"

namespace tcast {

Json options_json(const tensorcast::CastOptions& options) {
  Json json;
  tensorcast::options::for_each(tensorcast::options::cast_options, [&](const auto& option) {
    const auto value = options.*option.member;
    if constexpr (std::is_enum_v<decltype(value)>) {
      json[option.name] = option.word(value);
    } else {
      json[option.name] = option.actual(value);
    }
  });
  return json;
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const tensorcast::CastReport& report) {
  Json json;
  tensorcast::options::for_each(tensorcast::options::cast_report, [&](const auto& number) {
    const auto value = report.*number.member;
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      json[number.name] = finite_or_null(value);
    } else {
      json[number.name] = value;
    }
  });
  json["snr_db"] = finite_or_null(report.snr_db());
  return json;
}

std::string json_text(const Json& json) {
  return json_printable(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string json_text_with(Json object, const std::string& key, std::string_view value) {
  object.erase(key);
  object[key] = nullptr;  // the last member
  std::string text = json_text(object);
  constexpr std::string_view placeholder = "null";
  return text.replace(text.rfind(placeholder), placeholder.size(), json_printable(value));
}

std::string one_line(std::string_view json) {
  std::string line;
  for (std::size_t begin = 0; begin < json.size();) {
    const std::size_t end = std::min(json.find('\n', begin), json.size());
    line += json.substr(begin, end - begin);
    begin = std::min(json.find_first_not_of("\n ", end), json.size());
  }
  return line;
}

}  // namespace tcast
