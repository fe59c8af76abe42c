// SPDX-License-Identifier: Apache-2.0
// The checkpoint that is converted: its models, their shards and its other files, all headers read and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/source/index_file.hpp"
#include "checkpoint/store/folder.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "quantized/layout/config_text.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

using quantized::max_config_bytes;

// A file of weights, as it was when its header was read. Offsets and sizes are those of open_shard_file(): of a file of
// PyTorch, those of the safetensors file that it appears as.
struct SourceFile {
  std::string name;  // relative to the checkpoint's folder
  std::uint64_t bytes = 0;
  std::string version;  // StoredFile::version()
  std::string header_sha256;
  std::uint64_t data_begin = 0;
};

struct SourceShard : SourceFile {
  formats::safetensors::Header header;
};

// Tensors with one namespace: the shards of an index, or a file alone.
struct SourceModel {
  std::string folder;                    // "", "unet/"
  std::string stem;                      // "model", "model.fp16"
  std::string index = {};                // name of its index; "" if it has none
  std::string output_index = {};         // the name of the index of its safetensors files; "" if it has no index
  std::string index_text = {};           //
  std::vector<std::size_t> shards = {};  // in the order of their names
};

struct SourceCheckpoint {
  std::string folder;  // a real path
  std::vector<SourceShard> shards;
  std::vector<SourceModel> models;
  std::vector<ListedFile> others;  // all other files
  std::vector<std::string> empty_folders;
  std::vector<LeftOut> left_out;
  std::vector<std::string> accepted;  // words that the user takes as harmless (OutputFilter::accept)
  std::vector<std::string> warnings;  // what no safetensors file can hold, as sentences
};

// Reads the headers of a checkpoint: `path` is a folder, an index, or a file of weights. Files of PyTorch are read in
// folders that have no safetensors files. What `skip_files` names (OutputFilter) does not belong to the checkpoint. In
// Hugging Face's cache, `path` may be the root of a model. Memory: that of the headers.
// Errors: io, parse, unsupported: shards or tensors that are missing, truncated or there twice, links that lead out.
[[nodiscard]] Result<SourceCheckpoint> read_source(const std::string& path,
                                                   const std::vector<std::string>& skip_files = {});
// Returns the names of all files of a checkpoint, without SHA256SUMS, the statement and our record.
[[nodiscard]] std::vector<std::string> file_names(const SourceCheckpoint& checkpoint);
// Returns the folder that is read: `path` itself, or that of an index or file.
[[nodiscard]] std::string source_folder(const std::string& path);

// Opens a shard again, and checks that it is still the file that was planned. Errors: io, parse.
[[nodiscard]] Result<StoredFile> reopen(const std::string& folder, const SourceFile& file);
// The error of a file that is not the one that was planned.
[[nodiscard]] Error changed_since_planned(const std::string& path, std::string_view noun = "file");

}  // namespace tensorcast::checkpoint
