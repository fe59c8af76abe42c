// Checkpoints of PyTorch, read without running anything: torch.save's zip archives and its older files of pickles.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format pytorch_format;

// Reports whether the head of a zip archive names an entry that torch.save writes.
[[nodiscard]] bool begins_with_torch_entry(std::string_view head) noexcept;

}  // namespace tensorcast::formats
