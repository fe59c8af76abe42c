// SPDX-License-Identifier: Apache-2.0
// Prints the conversion of a checkpoint, as text and as JSON.
#pragma once

#include <string>

#include "print/report_json.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Returns the result of a conversion, its plan (`plan_only`), or that of a dry run with what it needs.
[[nodiscard]] std::string checkpoint_text(const tensorcast::ConvertRequest& request,
                                          const tensorcast::ConvertOutcome& outcome, double seconds, bool plan_only);

// "3 of 8 shards were done before"; "" if none was.
[[nodiscard]] std::string resumed_text(const tensorcast::ConvertOutcome& outcome);

// Adds shards, files and needs to the JSON of an outcome; nothing if it is not of a checkpoint.
void add_checkpoint_json(Json& json, const tensorcast::ConvertOutcome& outcome);

}  // namespace tcast
