// SPDX-License-Identifier: Apache-2.0
// Arrays to a file, the file converted by a request with any setters, and the output read again, all by the C
// interface: what is there is what was asked for, and after an error there is nothing.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_folder.hpp"
#include "fuzzing.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_files.h"
#include "tensorcast/dtype.hpp"

namespace {

namespace tc = tensorcast;
using tc::fuzzing::expect_no_defect;
using tc::fuzzing::Held;
using tc::fuzzing::Memory;
using tc::fuzzing::require;
using tc::testing::Choices;

struct Named {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  tc_dtype dtype = TC_UNDEFINED;
  std::span<std::byte> bytes = {};

  [[nodiscard]] tc_array array() const { return {bytes.data(), shape.data(), shape.size(), dtype}; }
  [[nodiscard]] std::size_t count() const {
    std::size_t count = 1;
    for (const std::int64_t length : shape) count *= static_cast<std::size_t>(length);
    return count;
  }
};

using File = Held<tc_file, tc_file_close>;
using Layers = Held<tc_quantized_file, tc_quantized_file_close>;
using Request = Held<tc_convert_request, tc_convert_request_free>;
using Outcome = Held<tc_convert_outcome, tc_convert_outcome_free>;

tc_dtype any_dtype(Choices& choices) {
  return choices.one_in(24) ? choices.one_of({-1, 0, 8, 99, 1001}) : static_cast<tc_dtype>(choices.dtype());
}

// Tensors of a small model: matrices of layers and others.
std::vector<Named> any_arrays(Choices& choices, Memory& memory) {
  constexpr std::array names = {"norm.weight", "a", "model.embed_tokens.weight", "lm_head.weight", "b/c", "d.e.bias"};
  std::vector<Named> arrays(1 + choices.below(4));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Named& made = arrays[i];
    const bool is_layer = choices.one_in(2);
    made.name = is_layer ? "model.layers." + std::to_string(i) + ".mlp.down_proj.weight"
                         : names[choices.below(names.size())] + (choices.one_in(8) ? std::string() : std::to_string(i));
    made.dtype = is_layer ? choices.one_of({TC_FLOAT32, TC_BFLOAT16, TC_FLOAT16}) : any_dtype(choices);
    made.shape = {static_cast<std::int64_t>(1 + choices.below(4)),
                  static_cast<std::int64_t>(1 + choices.below(2)) * 256};
    if (!is_layer) {
      made.shape.resize(choices.below(4));
      for (std::int64_t& length : made.shape)
        length = static_cast<std::int64_t>(choices.one_in(12) ? 0 : 1 + choices.below(9));
    }
    made.bytes = memory.zeros(tc_storage_bytes(made.dtype, made.count()));
    const bool has_any_bits =
        choices.one_in(6) || !tc::fuzzing::fill_with_numbers(choices, made.bytes, made.dtype, made.count());
    if (has_any_bits) choices.fill(made.bytes);
  }
  return arrays;
}

// An array's bits behind the last element are zero, as files have them.
std::vector<std::byte> stored_bytes(const Named& array) {
  std::vector<std::byte> bytes(array.bytes.begin(), array.bytes.end());
  const auto used = array.count() * static_cast<std::size_t>(tc::bit_width(static_cast<tc::DType>(array.dtype))) % 8;
  if (used != 0) bytes.back() &= static_cast<std::byte>((1u << used) - 1);
  return bytes;
}

const Named* find(const std::vector<Named>& arrays, const char* name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const Named& array) { return array.name == name; });
  return found == arrays.end() ? nullptr : &*found;
}

bool has_shape(const Named& array, const std::int64_t* shape, std::size_t rank) {
  return std::equal(array.shape.begin(), array.shape.end(), shape, shape + rank);
}

// A format of one array has one, of any name.
bool write(Choices& choices, const std::string& path, std::vector<Named>& arrays) {
  const bool is_of_one = !path.ends_with("npz") && !path.ends_with("safetensors");
  if (is_of_one) arrays.resize(1);
  std::vector<const char*> names;
  std::vector<tc_array> given;
  for (const Named& array : arrays) {
    names.push_back(array.name.c_str());
    given.push_back(array.array());
  }
  const char* const metadata_names[] = {"format", "note"};
  const char* const metadata_texts[] = {"pt", "\xC3\xA9"};
  tc_write_options options = TC_WRITE_OPTIONS_INIT;
  options.metadata_names = metadata_names;
  options.metadata_texts = metadata_texts;
  options.metadata_count = choices.below(3);
  options.parents = choices.one_in(2);
  if (choices.one_in(12)) options.format = choices.one_of({"", "npy", "npz", "safetensors", "tensor_proto", "zip"});
  const tc_status status = tc_write_file(path.c_str(), names.data(), given.data(), given.size(), &options);
  expect_no_defect(status);
  require((status == TC_OK) == std::filesystem::exists(path), "a file beside an error, or none without");
  if (status == TC_OK && options.overwrite == 0) {
    require(tc_write_file(path.c_str(), names.data(), given.data(), given.size(), &options) != TC_OK,
            "a file is overwritten");
  }
  return status == TC_OK && options.format == nullptr;
}

// NumPy's own types; a header names others by their size alone.
bool is_of_numpy(tc_dtype dtype) {
  constexpr std::array types = {TC_FLOAT32, TC_UINT8, TC_INT8,    TC_UINT16,  TC_INT16,  TC_INT32,
                                TC_INT64,   TC_BOOL,  TC_FLOAT16, TC_FLOAT64, TC_UINT32, TC_UINT64};
  return std::find(types.begin(), types.end(), dtype) != types.end();
}

// A file of one array whose header does not name its type is told it.
void open(const std::string& path, tc_dtype dtype, File& file) {
  tc_open_options options = TC_OPEN_OPTIONS_INIT;
  if (path.ends_with("npy") && !is_of_numpy(dtype)) options.from = dtype;
  require(tc_file_open_with(path.c_str(), &options, &file.it) == TC_OK, tc_last_error());
  File by_path;
  const tc_status opened = tc_file_open(path.c_str(), &by_path.it);
  require((opened == TC_OK) == (options.from == TC_UNDEFINED), "a type that nothing names");
}

void check_written(const std::string& path, const std::vector<Named>& arrays) {
  File file;
  open(path, arrays.front().dtype, file);
  require(tc_file_count(file.it) == arrays.size() && tc_file_format(file.it)[0] != '\0', "another number of tensors");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    tc_tensor_info info = TC_TENSOR_INFO_INIT;
    require(tc_file_tensor(file.it, i, &info) == TC_OK, tc_last_error());
    const Named* const array = arrays.size() == 1 ? arrays.data() : find(arrays, info.name);
    require(array != nullptr, "a tensor of another name");
    if (info.problem[0] != '\0' && path.ends_with("npz") && !is_of_numpy(array->dtype)) continue;
    require(info.dtype == array->dtype, "a tensor of another type");
    require(has_shape(*array, info.shape, info.rank), "a tensor of another shape");
    const std::vector<std::byte> expected = stored_bytes(*array);
    std::vector<std::byte> read(expected.size());
    require(tc_file_read(file.it, i, 0, array->count(), read.data(), read.size(), TC_UNDEFINED, nullptr) == TC_OK &&
                read == expected,
            "a tensor of other bytes");
  }
}

struct Asked {
  tc_dtype to = TC_FLOAT16;
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  std::string scheme = {}, recipe = {};
  bool has_rules = false, selects = false, has_budget = false, has_search = false, is_dry = false, reads_raw = false,
       names_format = false;
};

void choose_weights(Choices& choices, tc_convert_request* request, Asked& asked) {
  const auto recipes = tc::quantize_recipes();
  const tc::QuantizeRecipe& recipe = recipes[choices.below(recipes.size())];
  asked.scheme = recipe.scheme;
  if (choices.one_in(2)) asked.recipe = recipe.recipe;
  const auto formats = tc::block_formats();
  const char* const spelling = choices.one_in(4) ? formats[choices.below(formats.size())].spelling.data() : nullptr;
  if (choices.one_in(8)) {
    asked.has_budget = true;
    const double bits = choices.one_of({4.5, 6.0, 0.0, -1.0, 16.0, std::numeric_limits<double>::quiet_NaN()});
    const bool is_set =
        tc_convert_request_set_budget(request, bits, choices.one_of({"", "nvfp4,mxfp4:even", "nvfp4", ",", "float8"}),
                                      spelling) == TC_OK;
    require(!is_set || bits == 0.0 || bits >= 4.5, "a budget that no weight has");
    if (!is_set) asked.scheme.clear();
    return;
  }
  const bool is_odd = choices.one_in(16);
  const bool is_set = tc_convert_request_set_scheme(request, is_odd ? "odd" : asked.scheme.c_str(),
                                                    asked.recipe.c_str(), spelling) == TC_OK;
  require(!is_set || !is_odd, "a scheme that does not exist");
  if (!is_set) asked.scheme.clear();
  if (choices.one_in(8)) {
    asked.has_search = true;
    (void)tc_convert_request_set_search(request, choices.one_of({0, 1, 2}),
                                        choices.one_in(3) ? "missing.gguf" : nullptr);
  }
}

void choose_options(Choices& choices, tc_convert_request* request, Asked& asked) {
  tc_cast_options& options = asked.options;
  options.threads = static_cast<std::int32_t>(choices.below(3));
  if (choices.one_in(3)) options.out_of_range = static_cast<std::int32_t>(choices.below(5));
  if (choices.one_in(3)) options.rounding = static_cast<std::int32_t>(choices.below(9));
  if (options.rounding == TC_ROUNDING_STOCHASTIC) options.seed = choices.below(100);
  if (choices.one_in(6)) options.scale = choices.one_of({0.5, 3.0, -1.0, 1e-40});
  if (choices.one_in(6)) options.invalid = TC_INVALID_ERROR;
  if (choices.one_in(6)) options.inexact = TC_INEXACT_ERROR;
  if (choices.one_in(6)) options.saturate = 0;
  const bool exist = options.out_of_range <= TC_RANGE_ERROR && options.rounding <= TC_ROUNDING_STOCHASTIC;
  const bool is_set = tc_convert_request_set_options(request, &options) == TC_OK;
  require(is_set == exist, "options that do not exist are set, or others are not");
  if (!is_set) options = TC_CAST_OPTIONS_INIT;
}

Asked ask(Choices& choices, tc_convert_request* request) {
  Asked asked;
  if (choices.one_in(3)) {
    choose_weights(choices, request, asked);
  } else {
    asked.to = any_dtype(choices);
    if (tc_convert_request_set_to(request, asked.to) != TC_OK)
      asked.to = TC_FLOAT16, (void)tc_convert_request_set_to(request, asked.to);
  }
  if (!choices.one_in(3)) choose_options(choices, request, asked);
  asked.has_rules = choices.one_in(4);
  const char* const pattern = choices.one_of({"", "layers", "weight$", "(", "^a", "\xFF"});
  if (asked.has_rules && choices.one_in(2)) (void)tc_convert_request_add_rule(request, pattern, any_dtype(choices));
  if (asked.has_rules)
    (void)tc_convert_request_add_scaled_rule(request, pattern, any_dtype(choices), choices.one_of({2.0, 0.0, -0.5}));
  asked.selects = choices.one_in(4);
  if (asked.selects && choices.one_in(2)) (void)tc_convert_request_add_include(request, pattern);
  if (asked.selects) (void)tc_convert_request_add_exclude(request, pattern);
  for (std::int32_t flag = 0; flag < 12; ++flag) {
    if (!choices.one_in(flag == TC_CONVERT_DRY_RUN ? 12 : 4)) continue;
    const bool is_set = tc_convert_request_set_flag(request, flag, 1) == TC_OK;
    require(is_set == (flag >= TC_CONVERT_OVERWRITE && flag <= TC_CONVERT_FAIL_LOSS), "flags of other numbers");
    asked.is_dry = asked.is_dry || flag == TC_CONVERT_DRY_RUN;
  }
  asked.names_format = choices.one_in(12);
  if (asked.names_format) {
    (void)tc_convert_request_set_output_format(request, choices.one_of({"raw", "", "npy", "gguf", "zip"}));
  }
  if (choices.one_in(12)) (void)tc_convert_request_set_zero_limit(request, choices.one_of({0.0, 1.0, 2.0, -1.0}));
  asked.reads_raw = choices.one_in(12);
  if (asked.reads_raw) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(choices.below(9)), -1};
    (void)tc_convert_request_set_raw(request, any_dtype(choices), shape, choices.below(3));
    (void)tc_convert_request_set_from(request, choices.one_in(2) ? nullptr : "a", any_dtype(choices));
    (void)tc_convert_request_set_input_format(request, choices.one_of({"raw", "", "npy", "gguf", "zip"}));
  }
  return asked;
}

// The numbers of the output are those of a cast, where nothing but types and options was asked for.
void check_numbers(const Asked& asked, const std::vector<Named>& arrays, const tc_tensor_outcome& done, tc_file* file) {
  const Named* const array = arrays.size() == 1 ? arrays.data() : find(arrays, done.name);
  require(array != nullptr, "an outcome of no tensor");
  const bool is_plain =
      asked.scheme.empty() && !asked.has_rules && !asked.reads_raw && asked.options.rounding != TC_ROUNDING_STOCHASTIC;
  if (!is_plain || done.from != array->dtype || done.to == TC_STRING) return;
  std::vector<std::byte> expected = stored_bytes(*array);
  const bool as_asked = std::strcmp(done.reason, "`to`") == 0;
  require(!as_asked || done.to == asked.to, "another type than was asked for");
  const bool as_demanded = std::string_view(done.reason).ends_with(" in gguf");  // float32, which it may have been
  if (as_asked || as_demanded || done.to != done.from) {
    expected.resize(tc_storage_bytes(done.to, array->count()));
    require(
        tc_cast(array->bytes.data(), array->dtype, expected.data(), done.to, array->count(), &asked.options) == TC_OK,
        "a file is converted and its array is not");
  }
  for (std::size_t i = 0; i < tc_file_count(file); ++i) {
    tc_tensor_info info = TC_TENSOR_INFO_INIT;
    require(tc_file_tensor(file, i, &info) == TC_OK, tc_last_error());
    if (tc_file_count(file) != 1 && std::strcmp(info.name, done.name) != 0) continue;
    if (info.dtype == TC_UNDEFINED && !is_of_numpy(done.to)) return;
    require(info.dtype == done.to, "a tensor of another type than its outcome");
    require(has_shape(*array, info.shape, info.rank), "a shape has changed");
    std::vector<std::byte> read(expected.size());
    require(tc_file_read(file, i, 0, array->count(), read.data(), read.size(), TC_UNDEFINED, nullptr) == TC_OK &&
                read == expected,
            "a file has other numbers than a cast gives");
    return;
  }
  require(false, "a tensor of the outcome is not in the file");
}

// What a weight decodes to is what tc_quantize() of it does.
void check_layers(const Asked& asked, const std::vector<Named>& arrays, const std::string& path) {
  Layers layers;
  const tc_status opened = tc_quantized_file_open(path.c_str(), &layers.it);
  expect_no_defect(opened);
  if (opened != TC_OK) return;
  for (std::size_t i = 0; i < tc_quantized_file_layer_count(layers.it); ++i) {
    tc_quantized_layer layer = TC_QUANTIZED_LAYER_INIT;
    require(tc_quantized_file_layer(layers.it, i, &layer) == TC_OK, tc_last_error());
    const Named* const array = find(arrays, layer.name);
    if (array == nullptr || tc::bit_width(static_cast<tc::DType>(array->dtype)) <= 8) continue;  // codes of its own
    require(layer.problem[0] == '\0', layer.problem);
    require(has_shape(*array, layer.shape, layer.rank), "a weight of another shape");
    std::vector<float> read(array->count()), expected(array->count());
    require(tc_quantized_file_dequantize(layers.it, i, 0, read.size(), read.data(), TC_FLOAT32, nullptr) == TC_OK,
            tc_last_error());
    if (asked.has_budget || asked.has_search || asked.selects || asked.has_rules || asked.reads_raw ||
        array->shape.size() != 2)
      continue;
    tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
    options.recipe = asked.recipe.empty() ? nullptr : asked.recipe.c_str();
    options.to_gguf = std::strcmp(layer.spelling, "gguf") == 0;
    const tc_array weight = array->array();
    tc_quantized* made = nullptr;
    if (tc_quantize(&weight, asked.scheme.c_str(), &options, &made) != TC_OK) continue;
    tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
    require(tc_quantized_block_tensor(made, &tensor) == TC_OK &&
                tc_dequantize(&tensor, 0, array->shape[0], expected.data(), TC_FLOAT32, nullptr) == TC_OK,
            tc_last_error());
    // Other layouts have other products, and their zeros other signs.
    const bool is_comparable = std::strcmp(tensor.spelling, layer.spelling) == 0;
    tc_quantized_free(made);
    require(!is_comparable || std::memcmp(read.data(), expected.data(), read.size() * sizeof(float)) == 0,
            "a file has other numbers than tc_quantize() gives");
  }
}

void check_outcome(const Asked& asked, const std::vector<Named>& arrays, const tc_convert_outcome* outcome,
                   const std::string& path) {
  File file;
  tc_tensor_outcome first = TC_TENSOR_OUTCOME_INIT;
  if (tc_convert_outcome_tensor_count(outcome) != 0) {
    require(tc_convert_outcome_tensor(outcome, 0, &first) == TC_OK, tc_last_error());
  }
  if (!asked.is_dry && !asked.names_format && !path.ends_with("bin") && first.to != TC_STRING)
    open(path, first.to, file);
  const bool is_dry = tc_convert_outcome_bytes_written(outcome) == 0 && tc_convert_outcome_is_verified(outcome) == 0;
  require((is_dry || !asked.is_dry) && tc_convert_outcome_input_format(outcome)[0] != '\0' &&
              tc_convert_outcome_output_format(outcome)[0] != '\0' &&
              tc_convert_outcome_bytes_read(outcome) <= (std::uint64_t{1} << 24),
          "an outcome of another conversion");
  for (std::size_t i = 0; i < tc_convert_outcome_tensor_count(outcome); ++i) {
    tc_tensor_outcome done = TC_TENSOR_OUTCOME_INIT;
    require(tc_convert_outcome_tensor(outcome, i, &done) == TC_OK, tc_last_error());
    tc_cast_report report = TC_CAST_REPORT_INIT;
    const tc_status reported = tc_convert_outcome_report(outcome, i, &report);
    require((reported == TC_OK) == (done.has_report != 0), "a report that is not there");
    if (file.it != nullptr) check_numbers(asked, arrays, done, file.it);
  }
  tc_tensor_outcome none = TC_TENSOR_OUTCOME_INIT;
  require(tc_convert_outcome_tensor(outcome, tc_convert_outcome_tensor_count(outcome), &none) != TC_OK,
          "a tensor too many");
  if (!asked.scheme.empty() && !asked.is_dry) check_layers(asked, arrays, path);
}

int count_progress(void* cancels_at, std::uint64_t done, std::uint64_t total, const char* tensor) {
  require(done <= total && tensor != nullptr, "progress beyond the end");
  auto& left = *static_cast<std::uint64_t*>(cancels_at);
  return left == 0 || --left != 0;
}

tc_status read_file(void* bytes, std::uint64_t offset, void* dst, std::size_t size) {
  const auto& file = *static_cast<const std::vector<char>*>(bytes);
  require(offset <= file.size() && size <= file.size() - offset, "a read behind the end");
  if (size != 0) std::memcpy(dst, file.data() + offset, size);
  return TC_OK;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const tc::fuzzing::Folder folder;
  Choices choices({bytes, size});
  Memory memory;
  const std::string work = folder.file("work");
  std::filesystem::remove_all(work);
  std::filesystem::create_directory(work);
  const char* const extensions[] = {"npy", "npz", "safetensors", "pb", "gguf", "bin"};
  std::vector<Named> arrays = any_arrays(choices, memory);
  const std::string input = work + "/in." + extensions[choices.below(8) % 4];
  if (!write(choices, input, arrays)) return 0;
  check_written(input, arrays);

  Request request;
  request.it = tc_convert_request_new();
  const Asked asked = ask(choices, request.it);
  const std::string output = work + (choices.one_in(8) ? "/new/out." : "/out.") +
                             extensions[choices.one_in(2) ? 2 : choices.below(std::size(extensions))];
  (void)tc_convert_request_set_input(request.it, input.c_str());
  (void)tc_convert_request_set_output(request.it, output.c_str());
  std::vector<char> held;
  if (choices.one_in(4)) {
    std::ifstream in(input, std::ios::binary);
    held.assign(std::istreambuf_iterator<char>(in), {});
    tc_source source = TC_SOURCE_INIT;
    source.context = &held;
    source.size = held.size();
    source.read = read_file;
    (void)tc_convert_request_set_source(request.it, &source);
  }
  std::uint64_t cancels_at = choices.one_in(6) ? 1 + choices.below(4) : 0;
  if (choices.one_in(2)) (void)tc_convert_request_set_progress(request.it, count_progress, &cancels_at);
  Outcome outcome;
  const tc_status status = tc_convert(request.it, &outcome.it);
  expect_no_defect(status);
  require((status == TC_OK) == (outcome.it != nullptr), "an outcome beside an error, or none without");
  require(std::filesystem::exists(output) == (status == TC_OK && !asked.is_dry),
          "an output beside an error, or none without");
  if (status == TC_OK) check_outcome(asked, arrays, outcome.it, output);
  return 0;
}
