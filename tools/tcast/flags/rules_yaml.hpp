// SPDX-License-Identifier: Apache-2.0
// Rules of a conversion in YAML.
#pragma once

#include <string>

#include "tensorcast/file.hpp"

namespace tcast {

// Adds rules such as
//
//   rules:                                   # the first match wins
//     - {match: lm_head, to: float16}
//     - {match: 'norm|bias', keep: true}
//     - {rank: [0, 1], keep: true}
//     - '\.gate\.=float32'                   # as --rule
//   to: float8_e4m3fn                        # all other words are those of the options
//   exclude: [vision]
//   rounding: toward_zero                    # the options of conversions, too
//
// to a request; a list alone is one of rules. What the command line says has precedence. Errors: parse, naming the file
// and the line.
[[nodiscard]] tensorcast::Result<void> add_yaml_rules(const std::string& text, const std::string& path,
                                                      tensorcast::ConvertRequest& request);

}  // namespace tcast
