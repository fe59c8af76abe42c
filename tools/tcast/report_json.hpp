// Results as JSON: the schema that --json prints and --report writes.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tensorcast/cast.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Keys stay in the order in which they were added.
using Json = nlohmann::ordered_json;

// Counts and errors. JSON has no infinity: `snr_db` is null when there is no noise.
[[nodiscard]] Json to_json(const tensorcast::CastReport& report);

// Null for numbers that JSON does not have.
[[nodiscard]] Json finite_or_null(double value);

// Indented text with a newline; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(const Json& json);

}  // namespace tcast
