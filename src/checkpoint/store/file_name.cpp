// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/file_name.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::string_view extension = ".safetensors";
constexpr std::string_view index_middle = ".safetensors.index";
constexpr std::string_view torch_index_middle = ".bin.index";
constexpr std::array<std::string_view, 4> torch_extensions = {".bin", ".pt", ".pth", ".ckpt"};
constexpr std::string_view json_extension = ".json";

// Of bytes, as names need not be UTF-8.
const re2::RE2& shard_pattern() {
  static const re2::RE2 pattern(R"((?s)(.*)-(\d{5,})-of-(\d{5,})\.safetensors)", re2::RE2::Latin1);
  return pattern;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::string stem_around(std::string_view file, std::string_view index_name_part) {
  if (!take_suffix(file, json_extension)) return {};
  const std::size_t middle = file.rfind(index_name_part);
  if (middle == std::string_view::npos || middle == 0) return {};
  const std::string_view variant = file.substr(middle + index_name_part.size());
  if (!variant.empty() && (variant.front() != '.' || variant.find('.', 1) != std::string_view::npos)) return {};
  return std::string(file.substr(0, middle)) + std::string(variant);
}

// "pytorch_model.fp16-00001-of-00002" has the model "pytorch_model".
std::string model_of(std::string_view stem) {
  static const re2::RE2 number(R"(-\d{5,}-of-\d{5,}\z)", re2::RE2::Latin1);
  std::string model(stem);
  re2::RE2::Replace(&model, number, "");
  return model.substr(0, model.find('.'));
}

}  // namespace

bool is_about_others(std::string_view name) noexcept {
  return name == sums_name || name == attestation_name || name == record_name;
}

bool is_utf8(std::string_view text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

std::string first_names(std::span<const std::string> names, std::string_view quote) {
  constexpr std::size_t most = 5;
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), most))) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", quote, name, quote);
  }
  return names.size() > most ? text + ", ..." : text;
}

Result<void> check_file_name(std::string_view name, const std::string& where) {
  constexpr std::size_t longest = 4096;
  constexpr std::size_t longest_component = 255;
  const auto fail = [&](std::string_view why) {
    return in_file(where, parse_error(fmt::format("the file name \"{}\" {}", name.substr(0, longest_component), why)));
  };
  if (name.empty()) return fail("is empty");
  if (name.size() > longest) return fail("is too long");
  if (name.find('\0') != std::string_view::npos) return fail("contains a zero byte");
  if (!is_utf8(name)) return fail("is not UTF-8, so no index or plan can name it; rename it");
  if (name.front() == '/') return fail("leads out of the folder: it is absolute");
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component == "..") return fail("leads out of the folder: it goes up");
    if (component.empty() || component == ".") return fail("has an empty part");
    if (component.size() > longest_component) return fail("is too long");
    begin = end + 1;
  }
  return {};
}

std::string folder_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(name.substr(0, slash + 1));
}

std::string last_component(std::string_view name) { return std::string(name.substr(folder_of(name).size())); }

bool parse_shard_name(std::string_view file, ShardName& shard) {
  return re2::RE2::FullMatch(std::string(file), shard_pattern(), &shard.stem, &shard.number, &shard.count);
}

std::string shard_name(std::string_view stem, std::size_t number, std::size_t count) {
  if (count == 1) return fmt::format("{}{}", stem, extension);
  return fmt::format("{}-{:05}-of-{:05}{}", stem, number, count, extension);
}

std::string index_name(std::string_view stem) {
  // Of shards such as "model.safetensors-00001-of-00002.safetensors", whose loaders look for that of "model".
  static_cast<void>(take_suffix(stem, ".safetensors"));
  const std::size_t dot = stem.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return fmt::format("{}{}{}", stem, index_middle, json_extension);
  return fmt::format("{}{}{}{}", stem.substr(0, dot), index_middle, stem.substr(dot), json_extension);
}

std::string stem_of_index(std::string_view file) { return stem_around(file, index_middle); }

std::string stem_of_torch_index(std::string_view file) { return stem_around(file, torch_index_middle); }

bool is_torch_name(std::string_view file) {
  return std::ranges::any_of(torch_extensions, [&](std::string_view end) { return file.ends_with(end); });
}

bool is_torch_weights_name(std::string_view file) {
  file = file.substr(folder_of(file).size());
  if (!take_suffix(file, torch_extensions[0])) return false;
  const std::string model = model_of(file);
  if (model.starts_with("pytorch_model_")) return true;  // accelerate's second model and on
  return model.ends_with("model");
}

std::string safetensors_name(std::string_view name) {
  const std::string folder = folder_of(name);
  std::string_view file = name.substr(folder.size());
  if (file.ends_with(extension)) return std::string(name);
  if (file == distributed_metadata) return folder + "model" + std::string(extension);
  for (const std::string_view end : torch_extensions) {
    if (take_suffix(file, end)) break;
  }
  constexpr std::string_view pytorch = "pytorch_";
  if (model_of(file) == "pytorch_model") file.remove_prefix(pytorch.size());
  return folder + std::string(file) + std::string(extension);
}

bool is_in_dot_folder(std::string_view name) noexcept {
  const std::size_t last = name.rfind('/');
  if (last == std::string_view::npos) return false;
  const std::string_view folders = name.substr(0, last);
  return folders.starts_with('.') || folders.find("/.") != std::string_view::npos;
}

}  // namespace tensorcast::checkpoint
