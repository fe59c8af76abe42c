// SPDX-License-Identifier: Apache-2.0
// Folders of quantized weights whose names, keys, words, types and shapes are changed: all that is read of them is read
// in the same way by each function, what is written is whole and has the same numbers, or there is an error.
//
// The input is JSON: "files" has the texts beside the weights, "tensors" a type, a shape and, where they mean
// something, the bytes of each tensor, in hexadecimal digits; other bytes are made from its length.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fuzz_folder.hpp"
#include "fuzzing.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/quantized_file.hpp"
#include "tensorcast/spelling.hpp"
#include "tensorcast/tensor_file.hpp"

namespace {

namespace tc = tensorcast;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using tc::fuzzing::require;
using tc::fuzzing::succeeded;
using tc::testing::Choices;

constexpr std::uint64_t most_elements = std::uint64_t{1} << 18;

// Bits of an element of a type of safetensors; 0: there is no such type.
std::uint64_t bits_of(const std::string& dtype) {
  static const std::map<std::string, std::uint64_t, std::less<>> bits = {
      {"F64", 64},    {"I64", 64},    {"U64", 64},    {"F32", 32},    {"I32", 32},        {"U32", 32},
      {"F16", 16},    {"BF16", 16},   {"I16", 16},    {"U16", 16},    {"I8", 8},          {"U8", 8},
      {"BOOL", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
  const auto found = bits.find(dtype);
  return found == bits.end() ? 0 : found->second;
}

// Numbers of similar size in floating-point types, as scales have them; other types have any bits.
std::string made_bytes(const std::string& dtype, std::uint64_t bytes) {
  std::string made(bytes, '\0');
  const std::array<std::uint8_t, 2> seed = {static_cast<std::uint8_t>(bytes), static_cast<std::uint8_t>(bytes >> 8)};
  Choices choices(seed);
  choices.fill(std::as_writable_bytes(std::span(made)));
  const std::size_t item = bits_of(dtype) / 8;
  const bool is_wide = dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F64";
  for (std::size_t i = item; is_wide && i <= made.size(); i += item)
    made[i - 1] = static_cast<char>((made[i - 1] & 0x80) | 0x3C);
  return made;
}

std::optional<std::string> from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto digit = [&](char c) {
      return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

// The file of the tensors; nothing if they are none.
std::optional<std::string> safetensors(const Json& document) {
  Json header = Json::object();
  std::string data;
  if (document.contains("metadata") && document["metadata"].is_object()) header["__metadata__"] = document["metadata"];
  for (const auto& [name, tensor] : document["tensors"].items()) {
    if (!tensor.is_array() || tensor.size() < 2 || !tensor[0].is_string() || !tensor[1].is_array()) return std::nullopt;
    const std::string dtype = tensor[0];
    std::uint64_t bits = bits_of(dtype);
    for (const Json& length : tensor[1]) {
      if (!length.is_number_unsigned() || __builtin_mul_overflow(bits, length.get<std::uint64_t>(), &bits))
        bits = ~std::uint64_t{0};
    }
    if (bits > most_elements * 8) return std::nullopt;
    const bool has_bytes = tensor.size() > 2 && tensor[2].is_string();
    std::optional<std::string> bytes = has_bytes ? from_hex(tensor[2]) : made_bytes(dtype, (bits + 7) / 8);
    if (!bytes) return std::nullopt;
    if (has_bytes) bytes->resize((bits + 7) / 8, '\0');
    header[name] = {
        {"dtype", dtype}, {"shape", tensor[1]}, {"data_offsets", {data.size(), data.size() + bytes->size()}}};
    data += *bytes;
  }
  const std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::uint64_t length = text.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + text + data;
}

bool is_file_name(const std::string& name) {
  return name.ends_with(".json") && name.size() < 60 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string::npos;
}

bool write(const Json& document, const fs::path& folder, const tc::fuzzing::Folder& parent) {
  if (!document.is_object() || !document.contains("files") || !document.contains("tensors")) return false;
  if (!document["files"].is_object() || !document["tensors"].is_object()) return false;
  const std::optional<std::string> weights = safetensors(document);
  if (!weights) return false;
  const std::string name = folder.filename().string() + "/";
  parent.put(name + "model.safetensors", weights->data(), weights->size());
  for (const auto& [file, content] : document["files"].items()) {
    const std::string text = content.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (is_file_name(file)) parent.put(name + file, text.data(), text.size());
  }
  return true;
}

using Numbers = std::vector<float>;

bool are_same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool are_same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) { return are_same(x, y); });
}

// A scale whose reciprocal comes back is another product, which may differ in its last two bits.
bool are_close(float a, float b) { return are_same(a, b) || std::abs(a - b) <= std::abs(b) * 0x1p-21F; }

std::uint64_t count_of(const std::vector<std::int64_t>& shape) {
  const tc::Result<std::size_t> count = tc::element_count(shape);
  return count ? *count : most_elements;
}

Numbers numbers_of(const tc::Tensor& tensor) {
  Numbers numbers(tensor.count());
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor.bytes().data(), numbers.size() * sizeof(float));
  return numbers;
}

struct Layer {
  std::vector<std::int64_t> shape = {};
  std::string spelling = {};
  Numbers numbers = {};
};
using Layers = std::map<std::string, Layer>;  // by the names of weights

// The layers that are decoded; a part of each has the numbers of the whole.
Layers read_layers(const std::string& folder) {
  Layers read;
  tc::Result<tc::QuantizedFile> file = tc::QuantizedFile::open(folder);
  if (!succeeded(file)) return read;
  (void)tc::known_loaders(file->layers());
  for (std::size_t i = 0; i < file->layers().size(); ++i) {
    const tc::QuantizedLayer& layer = file->layers()[i];
    for (std::size_t part = 0; part < file->parts(i).size(); ++part) (void)succeeded(file->read_part(i, part));
    if (count_of(layer.shape) >= most_elements) continue;
    const tc::Result<tc::Tensor> whole = file->dequantize(i, tc::DType::float32);
    if (!succeeded(whole)) continue;
    require(layer.problem.empty(), "a layer that has a problem is decoded");
    Numbers numbers = numbers_of(*whole);
    require(numbers.size() == count_of(layer.shape), "a layer of another shape is decoded");
    const std::size_t first = numbers.size() / 3;
    Numbers some(numbers.size() - first);
    const tc::Result<void> done = file->dequantize(
        i, first,
        {tc::DType::float32, {static_cast<std::int64_t>(some.size())}, std::as_writable_bytes(std::span(some))});
    require(done.ok() && are_same(some, Numbers(numbers.begin() + static_cast<std::ptrdiff_t>(first), numbers.end())),
            "a part of a layer has other numbers");
    read.emplace(layer.name, Layer{layer.shape, std::string(layer.spelling), std::move(numbers)});
  }
  return read;
}

// After an error there is no output, or one that says that it is not complete.
bool is_converted(const tc::ConvertRequest& request) {
  const bool is_done = succeeded(tc::convert_folder(request));
  const bool is_begun = fs::exists(request.output + "/.tcast");
  require(fs::exists(request.output) == (is_done || is_begun) && !(is_done && is_begun), "an output beside an error");
  return is_done;
}

void check_decoded(const std::string& folder, const std::string& output, const Layers& layers) {
  tc::ConvertRequest request(folder, output, tc::DType::float32);
  request.execution.threads = 1;
  if (!is_converted(request)) return;
  require(tc::verify_checkpoint({.checkpoint = output}).ok(), "an output that is not whole");
  tc::Result<tc::TensorFile> file = tc::TensorFile::open(output + "/model.safetensors");
  require(file.ok(), "an output that is not read");
  for (std::size_t i = 0; i < file->summary().tensors.size(); ++i) {
    const tc::TensorSummary& tensor = file->summary().tensors[i];
    const auto layer = layers.find(tensor.name);
    if (layer == layers.end() || tensor.dtype != tc::DType::float32) continue;
    const tc::Result<tc::Tensor> read = file->read(i);
    require(read.ok() && are_same(numbers_of(*read), layer->second.numbers),
            "a conversion decodes other numbers than QuantizedFile");
  }
  const tc::Result<tc::DiffOutcome> difference = tc::diff_checkpoints({.a = folder, .b = output});
  (void)succeeded(difference);
}

// The same weights as other tools store them.
void check_respelled(const std::string& folder, const std::string& output, std::string_view spelling,
                     const Layers& layers) {
  tc::ConvertRequest request(folder, output);
  request.respell = spelling;
  request.exact = true;
  request.execution.threads = 1;
  if (!is_converted(request)) return;
  const Layers again = read_layers(output);
  for (const auto& [name, layer] : layers) {
    const auto found = again.find(name);
    if (found == again.end()) continue;  // it may have another name
    const Numbers& other = found->second.numbers;
    require(std::equal(layer.numbers.begin(), layer.numbers.end(), other.begin(), other.end(), are_close),
            "a layer has other numbers in another spelling");
  }
}

// A weight that is decoded and quantized anew is what quantize() makes of its numbers.
void check_quantized(const std::string& folder, const std::string& output, const tc::QuantizeRecipe& recipe,
                     const Layers& layers) {
  tc::ConvertRequest request(folder, output);
  request.scheme = recipe.scheme;
  request.recipe = recipe.recipe;
  request.fuse = tc::Fuse::never;
  request.execution.threads = 1;
  if (!is_converted(request)) return;
  const Layers again = read_layers(output);
  for (const auto& [name, layer] : layers) {
    const auto found = again.find(name);
    if (found == again.end() || found->second.spelling != recipe.spelling) continue;
    const tc::TensorView weight{tc::DType::float32, layer.shape, std::as_bytes(std::span(layer.numbers))};
    const tc::Result<tc::QuantizedTensor> made = tc::quantize(
        weight, recipe.scheme, {.recipe = std::string(recipe.recipe), .compute_dtype = tc::DType::bfloat16});
    if (!made) continue;  // such as of NaN, which it was left for
    if (recipe.scheme == "int4-group" && layer.shape.back() % 128 != 0) continue;  // a file gets smaller groups
    Numbers expected(layer.numbers.size());
    const std::int64_t columns = layer.shape.empty() ? 1 : layer.shape.back();
    const std::int64_t rows = columns == 0 ? 0 : static_cast<std::int64_t>(expected.size()) / columns;
    require(tc::dequantize(made->tensor(), 0,
                           {tc::DType::float32, {rows, columns}, std::as_writable_bytes(std::span(expected))})
                .ok(),
            "what is quantized is not decoded");
    require(are_same(found->second.numbers, expected), "a folder is quantized to other numbers than a tensor");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tc::fuzzing::Folder parent;
  const Json document = Json::parse(data, data + size, nullptr, false);
  if (document.is_discarded()) return 0;
  const std::string folder = parent.file("model"), decoded = parent.file("decoded"),
                    respelled = parent.file("respelled"), quantized = parent.file("quantized");
  for (const std::string& path : {folder, decoded, respelled, quantized}) fs::remove_all(path);
  fs::create_directory(folder);
  if (!write(document, folder, parent)) return 0;
  (void)succeeded(tc::inspect_checkpoint(folder));
  const Layers layers = read_layers(folder);
  check_decoded(folder, decoded, layers);
  const auto spellings = tc::written_spellings();
  if (layers.empty()) return 0;
  check_respelled(folder, respelled, spellings[size % spellings.size()], layers);
  const auto recipes = tc::quantize_recipes();
  check_quantized(folder, quantized, recipes[size % recipes.size()], layers);
  return 0;
}

namespace {

// All values of a document, and the containers that have them.
void collect(Json& value, std::vector<Json*>& found) {
  found.push_back(&value);
  if (value.is_structured()) {
    for (Json& part : value) collect(part, found);
  }
}

Json any_word(Choices& choices) {
  switch (choices.below(4)) {
    case 0:
      return choices.one_of({-1, 0, 1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256, 1 << 30});
    case 1:
      return choices.one_of({"",        "fp8",    "int",       "float", "tensor", "channel", "group",
                             "block",   "static", "symmetric", "F32",   "U8",     "I32",     "F8_E4M3",
                             "F8_E8M0", "F4",     "gptq_v2",   "e5m2",  "all",    "none"});
    case 2:
      return choices.one_in(2);
    default:
      return choices.one_in(2) ? Json() : Json(choices.one_of({0.5, 1e300, -0.0}));
  }
}

void change_name(Choices& choices, std::string& name) {
  constexpr std::array parts = {"weight", "weight_scale", "qweight", "scales",    "_packed", ".absmax",
                                "model.", "experts.0.",   "_inv",    "self_attn", "s",       "."};
  const std::string part = parts[choices.below(parts.size())];
  switch (choices.below(3)) {
    case 0:
      name += part;
      return;
    case 1:
      name.insert(choices.below(name.size() + 1), part);
      return;
    default:
      if (!name.empty()) name.erase(choices.below(name.size()), 1 + choices.below(4));
  }
}

void change_members(Choices& choices, Json& object, const Json& other) {
  auto member = object.begin();
  std::advance(member, static_cast<std::ptrdiff_t>(choices.below(object.size())));
  std::string name = member.key();
  Json value = member.value();
  if (choices.one_in(2)) object.erase(name);
  if (choices.one_in(2)) return;
  change_name(choices, name);
  object[name] = choices.one_in(3) ? other : value;
}

void change(Choices& choices, Json& document, const std::vector<Json*>& others) {
  std::vector<Json*> values;
  collect(document, values);
  Json& value = *values[choices.below(values.size())];
  const Json other = *others[choices.below(others.size())];
  switch (choices.below(5)) {
    case 0:
      value = any_word(choices);
      return;
    case 1:
      value = other;
      return;
    case 2:
      if (value.is_object() && !value.empty()) return change_members(choices, value, other);
      [[fallthrough]];
    case 3:
      if (value.is_number_integer()) {
        value =
            value.get<std::int64_t>() / (choices.one_in(2) ? 1 : 2) + static_cast<std::int64_t>(choices.below(5)) - 2;
      } else if (value.is_string()) {
        std::string text = value;
        change_name(choices, text);
        value = text;
      } else if (value.is_array() && !value.empty()) {
        value.erase(choices.below(value.size()));
      }
      return;
    default:
      if (value.is_array()) value.insert(value.begin(), other);
      if (value.is_object() && other.is_object()) value.update(other);
  }
}

std::size_t written(const Json& document, std::uint8_t* data, std::size_t size, std::size_t most) {
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > most) return size;
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Bytes alone would mostly be no JSON.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  Choices choices({reinterpret_cast<const std::uint8_t*>(&seed), sizeof seed});
  Json document = Json::parse(data, data + size, nullptr, false);
  if (document.is_discarded() || choices.one_in(50)) return LLVMFuzzerMutate(data, size, most);
  Json before = document;
  std::vector<Json*> others;
  collect(before, others);
  for (std::uint64_t changes = 1 + choices.below(3); changes > 0; --changes) change(choices, document, others);
  return written(document, data, size, most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                                 std::size_t b_size, std::uint8_t* out, std::size_t most,
                                                 unsigned seed) {
  Choices choices({reinterpret_cast<const std::uint8_t*>(&seed), sizeof seed});
  Json document = Json::parse(a, a + a_size, nullptr, false), other = Json::parse(b, b + b_size, nullptr, false);
  if (document.is_discarded() || other.is_discarded()) return 0;
  std::vector<Json*> others;
  collect(other, others);
  change(choices, document, others);
  return written(document, out, 0, most);
}
