// SPDX-License-Identifier: Apache-2.0
// The options of a conversion that change its bytes, as JSON: of the record in an output, of statements about it.
#pragma once

#include <nlohmann/json.hpp>

#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// Returns the options that are not at their defaults and change bytes, under the names of their rows; choices are
// words. Of all options, or of those of casts and of quantizing alone.
[[nodiscard]] nlohmann::ordered_json conversion_json(const ConvertRequest& request);
[[nodiscard]] nlohmann::ordered_json tensor_options_json(const ConvertRequest& request);

// The same of a plan.json: settings, and options of quantize() that are numbers or choices; those of texts and lists
// are their owners'. `read_settings` and `read_quantize_options` return false if an option has no such value.
[[nodiscard]] nlohmann::ordered_json settings_json(const ConversionSettings& settings);
[[nodiscard]] bool read_settings(const nlohmann::json& json, ConversionSettings& settings);
[[nodiscard]] nlohmann::ordered_json quantize_options_json(const QuantizeOptions& quantizing);
[[nodiscard]] bool read_quantize_options(const nlohmann::json& json, QuantizeOptions& quantizing);

// Sets the options that `json` has; others keep their values. Errors: parse: an unknown option, or one that has no such
// value.
[[nodiscard]] Result<void> read_conversion(const nlohmann::json& json, ConvertRequest& request);

}  // namespace tensorcast::file_conversion
