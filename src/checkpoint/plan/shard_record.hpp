// SPDX-License-Identifier: Apache-2.0
// The record of a converted shard, as text.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/plan/work_folder.hpp"

namespace tensorcast::checkpoint {

[[nodiscard]] std::string shard_record_text(const std::string& name, const DoneShard& done);
// Returns nullopt if `text` is not a record.
[[nodiscard]] std::optional<DoneShard> parse_shard_record(const std::string& text);

}  // namespace tensorcast::checkpoint
