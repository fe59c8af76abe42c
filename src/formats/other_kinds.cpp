#include "formats/other_kinds.hpp"

#include <algorithm>
#include <string>

namespace tensorcast::formats {
namespace {

constexpr const char* pytorch_hint =
    "load it with torch.load(path, weights_only=True) and write it with safetensors.torch.save_file()";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool has_pytorch_extension(std::string_view name) {
  return name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ckpt") || name.ends_with(".bin");
}

// Reports whether the file is a zip archive whose first entry is FOLDER/data.pkl (or .format_version, .data, byteorder
// beside it), or a bare pickle.
bool is_pytorch(std::string_view name, std::string_view head) {
  constexpr std::size_t zip_name_offset = 30;
  if (head.starts_with("PK\x03\x04")) {
    const std::string_view first_entry = head.substr(std::min(head.size(), zip_name_offset));
    return has_pytorch_extension(name) || first_entry.find("/data.pkl") != std::string_view::npos;
  }
  const bool pickle = head.size() > 2 && head[0] == '\x80' && head[1] >= '\x02' && head[1] <= '\x05';
  return pickle && (has_pytorch_extension(name) || name.ends_with(".pkl"));
}

Error unsupported(std::string message, std::string hint) {
  return Error{.code = ErrorCode::unsupported, .message = std::move(message), .hint = std::move(hint)};
}

}  // namespace

std::optional<Error> other_kind(std::string_view path, std::span<const std::byte> head) {
  const std::string name = lower(path.substr(path.rfind('/') + 1));
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::string small = lower(text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size())));
  if (is_pytorch(name, text)) {
    return unsupported("this is a PyTorch checkpoint, a pickle that can run code", pytorch_hint);
  }
  if (text.starts_with("version https://git-lfs.github.com/spec/")) {
    return unsupported("this is a Git LFS pointer, not the file itself", "`git lfs pull` fetches the file");
  }
  if (small.starts_with("<!doctype html") || small.starts_with("<html")) {
    return unsupported("this is an HTML page, as a download that failed leaves it", "download the file itself");
  }
  if (name.ends_with(".onnx")) {
    return unsupported("this is an ONNX model, not a file of tensors",
                       "`tcast run` runs a model of conversions, `tcast graph add-cast` puts a Cast into any model");
  }
  if (name.ends_with(".index.json")) {
    return unsupported("this is the index of a checkpoint; its tensors are in the files that it names",
                       "convert each of the .safetensors files beside it");
  }
  return std::nullopt;
}

}  // namespace tensorcast::formats
