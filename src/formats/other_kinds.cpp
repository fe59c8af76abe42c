// SPDX-License-Identifier: Apache-2.0
#include "formats/other_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "dtype/errors.hpp"
#include "dtype/lower_case.hpp"

namespace tensorcast::formats {
namespace {

// Reports whether the file is a pickle that torch.save did not write; its own are a format.
bool is_pickle(std::string_view name, std::string_view head) {
  constexpr std::string_view torch_magic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  const bool pickle = head.size() > 2 && head[0] == '\x80' && head[1] >= '\x02' && head[1] <= '\x05';
  return pickle && (name.ends_with(".bin") || name.ends_with(".pkl")) &&
         head.find(torch_magic) == std::string_view::npos;
}

// Programs that compress files, by the first bytes of what they write.
struct Packed {
  std::string_view begin;
  std::string_view program;
  std::string_view unpack;
};
constexpr auto packed_kinds = std::to_array<Packed>({
    {"\x1f\x8b\x08", "gzip", "gunzip"},
    {"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
    {{"\xfd\x37\x7a\x58\x5a\0", 6}, "xz", "unxz"},
    {"BZh91AY&SY", "bzip2", "bunzip2"},
});

std::optional<Error> packed_kind(std::string_view text) {
  constexpr std::string_view hdf5 = "\x89HDF\r\n\x1a\n";
  if (text.starts_with(hdf5)) {
    return unsupported("this is an HDF5 file, as Keras writes it",
                       "load it in Python, and save its arrays with numpy.savez or safetensors");
  }
  constexpr std::size_t length_bytes = 8;  // of the header of safetensors, which may begin like gzip
  if (text.size() > length_bytes && text[length_bytes] == '{') return std::nullopt;
  const auto* packed =
      std::ranges::find_if(packed_kinds, [&](const Packed& each) { return text.starts_with(each.begin); });
  if (packed == packed_kinds.end()) return std::nullopt;
  return unsupported(fmt::format("{} has compressed this file", packed->program),
                     fmt::format("`{}` unpacks it", packed->unpack));
}

}  // namespace

std::optional<Error> other_kind(std::string_view path, std::span<const std::byte> head) {
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::string small = lower_case(text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size())));
  if (is_pickle(name, text)) {
    return unsupported("this is a Python pickle, which can run code, and torch.save did not write it",
                       "load it in Python, and save its tensors with torch.save or safetensors");
  }
  if (std::optional<Error> packed = packed_kind(text)) return packed;
  if (text.starts_with("version https://git-lfs.github.com/spec/")) {
    return unsupported("this is a Git LFS pointer, not the file itself", "`git lfs pull` fetches the file");
  }
  if (small.starts_with("<!doctype html") || small.starts_with("<html")) {
    return unsupported("this is an HTML page, as a download that failed leaves it", "download the file itself");
  }
  if (name.ends_with(".distcp")) {
    return unsupported("this is a part of a distributed checkpoint of PyTorch", "give its folder, which has .metadata");
  }
  if (name.ends_with(".onnx")) {
    return unsupported("this is an ONNX model, not a file of tensors",
                       "`tcast onnx convert` changes the types of a model, `tcast inspect` lists its initializers");
  }
  if (name.ends_with(".index.json")) {
    return unsupported("this is the index of a checkpoint; its tensors are in the files that it names",
                       "the index of .safetensors files is taken if it is named NAME.safetensors.index.json, and so is "
                       "their folder");
  }
  return std::nullopt;
}

}  // namespace tensorcast::formats
