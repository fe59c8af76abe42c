// SPDX-License-Identifier: Apache-2.0
// Records in the model which files of external data its conversion wrote: a later conversion may remove only these. The
// record is an entry of metadata_props, so the rename that replaces the model replaces it, too.
#pragma once

#include <string>
#include <vector>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "io/written_files.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {

// Returns a field of ModelProto. Names are relative to the folder of the model.
[[nodiscard]] std::string encode_data_record(const std::vector<io::WrittenFile>& files);

// Reports whether `field`, an entry of metadata_props of `file`, is such a record. Errors: parse, io.
[[nodiscard]] Result<bool> is_data_record(const io::InputFile& file, const WireField& field);

// Returns the files that the model at `path` says were written with it; none if it is no model, or says nothing.
[[nodiscard]] std::vector<io::WrittenFile> read_data_record(const std::string& path);

}  // namespace tensorcast::models::onnx
