// SPDX-License-Identifier: Apache-2.0
// What a model's config.json and the like say of its type and quantization. A change of it is one of a tree of JSON:
// all else stays byte for byte, and the result is parsed and compared with what was meant; errors: internal, if it
// differs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "convert/select/renamed_modules.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// Reports whether frameworks load models in this type, so that a config can name it.
[[nodiscard]] bool is_loadable(DType dtype) noexcept;

// Returns `text` with the values of `torch_dtype` and `dtype` replaced that name a floating-point type, at the top and
// in configs inside (text_config, vision_config, encoder, ...), but not in quantization_config. Everything else stays
// byte for byte. Precondition: is_loadable(dtype). Errors: parse.
[[nodiscard]] Result<std::string> with_dtype(std::string_view text, DType dtype);

// Returns `text` without quantization_config and the like, at the top and in configs inside. Errors: parse.
[[nodiscard]] Result<std::string> without_quantization(std::string_view text);

// Returns `text`, which must be an object, with another quantization_config at the top in the place of all that it has.
// Precondition: `section` is JSON. Errors: parse.
[[nodiscard]] Result<std::string> with_section(std::string_view text, std::string_view section);

// Reports whether the configuration of a method has a list of the modules that are not quantized.
[[nodiscard]] bool names_modules(std::string_view method);

// Adds modules to the lists of each description in `text`: to those that are there, also in the place of null, or to a
// new one. `file_name` tells whether all of `text` is a description. Errors: parse, also if a list is of another type.
[[nodiscard]] Result<std::string> with_unquantized(std::string_view text, std::span<const std::string> modules,
                                                   std::string_view file_name = "config.json");

// Renames the modules that descriptions in `text` name. `file_name`: as above, or the key of an entry of metadata.
// Errors: parse.
[[nodiscard]] Result<std::string> with_new_entries(std::string_view text, const file_conversion::NewEntries& renamed,
                                                   std::string_view file_name);

// Carries out what is planned for a configuration. Errors: parse.
[[nodiscard]] Result<std::string> rewritten_config(std::string_view text, const PlannedConfig& config);

}  // namespace tensorcast::checkpoint
