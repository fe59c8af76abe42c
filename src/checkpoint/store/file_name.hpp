// SPDX-License-Identifier: Apache-2.0
// Names of files that come from an index, a plan or a listing, and may be malicious.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// Files of an output folder beside the checkpoint's own.
inline constexpr const char* sums_name = "SHA256SUMS";
inline constexpr const char* attestation_name = "attestation.intoto.json";
inline constexpr const char* record_name = ".tcast-files.json";
// Reports whether a file is one of these, which say something about the others.
[[nodiscard]] bool is_about_others(std::string_view name) noexcept;

// Checks a name relative to a checkpoint's folder, such as "unet/model.safetensors": not empty, not absolute, no "..",
// ".", empty or overlong component, no zero byte. Errors: parse; `where` is the file that has the name.
[[nodiscard]] Result<void> check_file_name(std::string_view name, const std::string& where);

[[nodiscard]] bool is_utf8(std::string_view text);

// Returns the first five names, and "..." if there are more: "a, b". `quote`: what is around each.
[[nodiscard]] std::string first_names(std::span<const std::string> names, std::string_view quote = "");

// "unet/model.safetensors" is in "unet/"; "model.safetensors" in "".
[[nodiscard]] std::string folder_of(std::string_view name);
[[nodiscard]] std::string last_component(std::string_view name);

// "model-00002-of-00007.safetensors" is shard 2 of 7 of "model".
struct ShardName {
  std::string stem;
  unsigned number = 0;
  unsigned count = 0;
};
// Parses the last component of a name. Returns false if it is not the name of a shard.
[[nodiscard]] bool parse_shard_name(std::string_view file, ShardName& shard);
[[nodiscard]] std::string shard_name(std::string_view stem, std::size_t number, std::size_t count);

// The index of shards whose stem is "model.fp16" is "model.safetensors.index.fp16.json", as transformers writes it.
[[nodiscard]] std::string index_name(std::string_view stem);
// Returns the stem of the shards of an index, "" if `file` is not the name of an index.
[[nodiscard]] std::string stem_of_index(std::string_view file);
// The same of an index of PyTorch's files, such as "pytorch_model.bin.index.json".
[[nodiscard]] std::string stem_of_torch_index(std::string_view file);

// torch.distributed.checkpoint's list of tensors, and its files with their chunks.
inline constexpr std::string_view distributed_metadata = ".metadata";
inline constexpr std::string_view distributed_extension = ".distcp";

// Reports whether a file has an extension of torch.save's files: .bin, .pt, .pth, .ckpt.
[[nodiscard]] bool is_torch_name(std::string_view file);
// Reports whether the name is one that libraries give to a model's weights, such as "pytorch_model-00001-of-00002.bin".
[[nodiscard]] bool is_torch_weights_name(std::string_view file);
// Returns the name of the safetensors file that a file of weights is converted to, as transformers chooses it:
// "model-00001-of-00002.safetensors". Folders stay; so does the name of a safetensors file.
[[nodiscard]] std::string safetensors_name(std::string_view name);

// Reports whether a file is in a folder whose name starts with a dot: such a file is only copied.
[[nodiscard]] bool is_in_dot_folder(std::string_view name) noexcept;

}  // namespace tensorcast::checkpoint
