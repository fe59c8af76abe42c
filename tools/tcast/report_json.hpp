// Results as JSON: the schema of --json and --report.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tensorcast/cast.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Keys stay in the order in which they were added.
using Json = nlohmann::ordered_json;

// Returns counts and errors. JSON has no infinity: `snr_db` is null if there is no noise.
[[nodiscard]] Json to_json(const tensorcast::CastReport& report);

// Returns null for numbers that JSON does not have.
[[nodiscard]] Json finite_or_null(double value);

// Returns indented text with a newline; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(const Json& json);

}  // namespace tcast
