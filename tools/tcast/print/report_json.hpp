// SPDX-License-Identifier: Apache-2.0
// Results as JSON: the schema of --json and --report.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Keys stay in the order in which they were added.
using Json = nlohmann::ordered_json;

// Returns counts and errors. JSON has no infinity: `snr_db` is null if there is no noise.
[[nodiscard]] Json to_json(const tensorcast::CastReport& report);

// Returns the options of a conversion, with their defaults.
[[nodiscard]] Json options_json(const tensorcast::CastOptions& options);

// Returns null for numbers that JSON does not have.
[[nodiscard]] Json finite_or_null(double value);

// Returns indented text with a newline; bytes that are not UTF-8 become U+FFFD, and characters that could deceive a
// reader (see printable()) \uXXXX.
[[nodiscard]] std::string json_text(const Json& json);

// Returns json_text() of the object with one more member, whose value is JSON already.
[[nodiscard]] std::string json_text_with(Json object, const std::string& key, std::string_view value);

// Returns JSON without its line breaks and the spaces after them.
[[nodiscard]] std::string one_line(std::string_view json);

}  // namespace tcast
