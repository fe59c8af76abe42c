// SPDX-License-Identifier: Apache-2.0
// Layers that stay quantized, under new names.
#pragma once
#include <span>

#include "convert/plan/file_plan.hpp"
#include "convert/select/renamed_modules.hpp"
#include "formats/format.hpp"

namespace tensorcast::checkpoint {

// Finds what the configurations must say after a renaming, and checks that the layers which stay are then read as
// before. `planned`: the tensors of the output. Reads small tensors of the model. Errors: unsupported: a layer would be
// read otherwise, or is torn apart; those of new_entries().
[[nodiscard]] Result<file_conversion::NewEntries> rename_layers(
    const file_conversion::ModelToPlan& model, std::span<const file_conversion::PlannedTensor> planned);

// Renames in the metadata of a file what describes its quantization. Errors: parse.
[[nodiscard]] Result<void> rename_in_metadata(const file_conversion::NewEntries& entries, formats::Metadata& metadata);

}  // namespace tensorcast::checkpoint
