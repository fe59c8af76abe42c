// SPDX-License-Identifier: Apache-2.0
// A file or checkpoint that is open, and the quantized layers of all its models.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/plan/conversion_record.hpp"
#include "formats/format.hpp"
#include "io/input_file.hpp"
#include "quantized/layout/spelling.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/quantized_file.hpp"

namespace tensorcast::checkpoint {

struct OpenedLayers {
  std::unique_ptr<io::InputFile> file;  // of a single file; `stored` refers to it
  std::unique_ptr<formats::Reader> stored;
  std::vector<std::string> names;        // full names of the tensors of `stored`
  std::vector<quantized::Layer> layers;  // parts are tensors of `stored`
  std::vector<QuantizedLayer> summaries;
  std::vector<std::vector<QuantizedPart>> parts;
  std::string refusal;                                      // QuantizedFile::refusal()
  std::optional<file_conversion::ConversionRecord> record;  // of the conversion that wrote it
};

// Reads headers and configurations; of a checkpoint without the files that `filter` skips. Errors: as
// QuantizedFile::open().
[[nodiscard]] Result<OpenedLayers> open_layers(const std::string& path, const OutputFilter& filter = {});
// Of a folder, an index, or files of weights behind a URL.
[[nodiscard]] Result<OpenedLayers> open_checkpoint_layers(const std::string& path, const OutputFilter& filter);
// Of a file, or of the bytes that `source` has.
[[nodiscard]] Result<OpenedLayers> open_file_layers(const std::string& path, const OutputFilter& filter = {},
                                                    const std::shared_ptr<ByteSource>& source = nullptr);

}  // namespace tensorcast::checkpoint
