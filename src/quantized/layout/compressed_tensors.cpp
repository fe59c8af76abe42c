// SPDX-License-Identifier: Apache-2.0
// compressed-tensors, as llm-compressor writes it. Its config_groups name modules, types and sizes of groups.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "quantized/layout/compressed_tensors_schemes.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/names/pattern_set.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::int64_t packed_word_bits = 32;

constexpr auto weights_keys =
    joined(keys_of<"num_bits group_size">(KeyType::integer),
           keys_of<"type strategy scale_dtype zp_dtype observer">(KeyType::text), keys_of<"symmetric">(KeyType::flag),
           keys_of<"block_structure">(KeyType::list), keys_of<"actorder dynamic">(KeyType::any),
           keys_of<"observer_kwargs">(KeyType::object));
// Of weights that are decoded: others may be quantized while the model runs.
constexpr auto decoded_weights_keys = joined(keys_with_only<"dynamic">(KeyType::any, "false"), all_other_keys);
constexpr auto group_keys =
    joined(keys_of<"targets">(KeyType::list), keys_of<"input_activations output_activations">(KeyType::object),
           keys_of<"format">(KeyType::text),
           std::to_array<KnownKey>({{.name = "weights", .type = KeyType::object, .members = weights_keys}}));
constexpr auto keys_of_compressed_tensors =
    joined(deciding_keys<"format">(KeyType::text),
           deciding_keys<"sparsity_config transform_config moe_sparsity_config">(KeyType::object),
           keys_of<"version">(KeyType::text), keys_of<"global_compression_ratio use_optimized_inference">(KeyType::any),
           std::to_array<KnownKey>(
               {{.name = "config_groups", .type = KeyType::groups, .decides = true, .members = group_keys}}));

// One of config_groups.
struct Group {
  std::string format;
  Json weights;
};

// Chooses the group of a module as the tool does: by its name, else by the first regular expression that matches in the
// order of their texts, else by its class.
class Groups {
 public:
  explicit Groups(const Json& section) {
    const Json* list = object_in(section, "config_groups");
    std::map<std::string, Place> patterns;
    if (list != nullptr) {
      for (const auto& [key, value] : list->items()) add(section, value, patterns);
    }
    std::vector<std::string> texts;
    for (const auto& [text, group] : patterns) {
      texts.push_back(text);
      of_patterns_.push_back(group);
    }
    patterns_ = PatternSet(std::move(texts));
  }

  // `rank`: of the codes. Errors: unsupported, with what is wrong.
  [[nodiscard]] Result<const Group*> of(const std::string& module, std::size_t rank) const {
    if (const auto name = names_.find(module); name != names_.end()) return chosen(name->second, module);
    const std::vector<std::size_t> matching = patterns_.find_all(module);
    const std::optional<std::size_t> unknown = patterns_.first_unknown();
    if (unknown && (matching.empty() || *unknown < matching.front())) {
      return unsupported(fmt::format("config_groups have the target \"re:{}\", which RE2 cannot match (no lookaround)",
                                     patterns_[*unknown]));
    }
    if (!matching.empty()) return chosen(of_patterns_[matching.front()], patterns_[matching.front()]);
    for (const std::string_view name : classes_of(module, rank)) {
      if (const auto found = names_.find(std::string(name)); found != names_.end()) return chosen(found->second, name);
    }
    return unsupported("no group of config_groups is for it");
  }

 private:
  using Place = std::optional<std::size_t>;  // in groups_; none: of several that differ

  void add(const Json& section, const Json& value, std::map<std::string, Place>& patterns) {
    const Json* weights = object_in(value, "weights");
    Group group{.format = text_in(value, "format"), .weights = weights == nullptr ? Json() : *weights};
    if (group.format.empty()) group.format = text_in(section, "format");
    for (const std::string& target : texts_in(value, "targets")) {
      const bool is_pattern = target.starts_with("re:");
      Place& place = is_pattern ? patterns.try_emplace(target.substr(3), groups_.size()).first->second
                                : names_.try_emplace(target, groups_.size()).first->second;
      const bool differs = place && *place < groups_.size() &&
                           (groups_[*place].weights != group.weights || groups_[*place].format != group.format);
      if (differs) place.reset();
    }
    groups_.push_back(std::move(group));
  }

  [[nodiscard]] Result<const Group*> chosen(Place group, std::string_view target) const {
    if (!group) {
      return unsupported(fmt::format("two groups of config_groups have the target \"{}\", and differ", target));
    }
    if (groups_[*group].weights.is_null()) {
      return unsupported(fmt::format("its group, that of \"{}\", quantizes no weights, and these are codes", target));
    }
    return &groups_[*group];
  }

  // Classes of PyTorch that a module with such a name has, and what vLLM calls them.
  static std::vector<std::string_view> classes_of(const std::string& module, std::size_t rank) {
    if (rank == 4) return {"Conv2d"};
    if (rank == 5) return {"Conv3d"};
    std::vector<std::string_view> names = {"Linear", "LinearBase", "Conv1d"};
    const bool embeds = tensor_kind(module + ".weight", 2) == TensorKind::embedding;
    if (embeds) names.insert(names.begin(), {"Embedding", "VocabParallelEmbedding"});
    return names;
  }

  std::vector<Group> groups_;
  std::unordered_map<std::string, Place> names_;  // of modules and of classes
  std::vector<Place> of_patterns_;
  PatternSet patterns_;
};

// Sets the blocks of a layer from the strategy of its group.
void set_blocks(const Group& group, const Description& description, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  std::string strategy = text_in(group.weights, "strategy");
  const std::optional<std::int64_t> size = size_in(group.weights, "group_size", -1);
  if (strategy.empty()) strategy = size && *size > 0 ? "group" : size == -1 ? "channel" : "tensor";
  if (strategy == "tensor") return;
  const std::int64_t columns = whole_row(layer.shape);
  if (strategy == "channel") {
    layer.block_rows = 1;
    layer.block_columns = columns;
  } else if (strategy == "group" || strategy == "tensor_group") {
    layer.block_rows = 1;
    layer.block_columns = size == -1 ? columns : size.value_or(not_a_size);
  } else if (strategy == "block") {
    builder.set_blocks(sizes_in(group.weights, "block_structure"), not_a_size);
  } else {
    builder.fail(fmt::format("{} names the strategy \"{}\", which is not known", description.source, strategy));
  }
}

// How many words of 32 bits codes take: dense, and as compressed-tensors up to 0.17.1 had them, 32 / bits whole codes a
// word.
std::int64_t dense_words(std::int64_t codes, std::int64_t bits) { return blocks_of(codes * bits, packed_word_bits); }
std::int64_t sparse_words(std::int64_t codes, std::int64_t bits) { return blocks_of(codes, packed_word_bits / bits); }

// Whether the tool that wrote `section` had whole codes in each word; nullopt: it does not say its version.
std::optional<bool> is_sparse_version(const Json& section) {
  const std::string version = text_in(section, "version");
  int major = 0, minor = 0;
  const char* const end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return std::nullopt;
  constexpr int last_sparse = 17;
  return major == 0 && minor <= last_sparse;
}

// Sets where the codes of rows of `columns` lie, from the number of their words; false: nowhere that is known.
bool set_packing(std::int64_t columns, std::int64_t words, const Description& description, LayerBuilder& builder) {
  const std::int64_t bits = builder.layer().coding.bits, dense = dense_words(columns, bits),
                     sparse = sparse_words(columns, bits);
  if (words != dense && words != sparse) return false;
  const bool is_same = packed_word_bits % bits == 0 || columns <= packed_word_bits / bits;
  if (dense == sparse && !is_same) {
    const std::optional<bool> version = is_sparse_version(description.section);
    if (!version) {
      builder.fail(
          fmt::format("versions of compressed-tensors pack {} codes of {} bits into {} words in two ways, and {} "
                      "does not name the version",
                      columns, bits, words, description.source));
    }
    if (version == true) builder.layer().deviations.has_whole_codes = true;
  } else if (words != dense) {
    builder.layer().deviations.has_whole_codes = true;
  }
  return true;
}

// Reads weight_shape, which says how many of the packed codes are elements.
void read_shape(const ModelTensors& tensors, const Description& description, LayerBuilder& builder,
                std::optional<std::size_t> shape) {
  Layer& layer = builder.layer();
  const TensorInfo& codes = builder.codes();
  if (!shape || !builder.ok()) return;
  const TensorInfo& info = tensors[*shape];
  const bool narrow = info.dtype == DType::int32;
  if ((info.dtype != DType::int64 && !narrow) || info.shape.size() != 1 || info.count != codes.shape.size()) {
    return builder.fail(fmt::format("a shape of {} dimensions is int64 or int32, and this is {}", codes.shape.size(),
                                    type_and_shape(info)),
                        shape);
  }
  const Result<std::vector<std::byte>> bytes = tensors.read(*shape);
  if (!bytes) return builder.fail(bytes.error().message, shape);
  std::vector<std::int64_t> sizes(info.count);
  if (narrow) {
    std::vector<std::int32_t> read(info.count);
    std::memcpy(read.data(), bytes->data(), bytes->size());
    std::ranges::copy(read, sizes.begin());
  } else {
    std::memcpy(sizes.data(), bytes->data(), bytes->size());
  }
  const bool fits = sizes.back() >= 0 && sizes.back() / packed_word_bits <= codes.shape.back();
  const bool same_rows = std::equal(sizes.begin(), sizes.end() - 1, codes.shape.begin());
  if (!same_rows || !fits || !set_packing(sizes.back(), codes.shape.back(), description, builder)) {
    return builder.fail(fmt::format("it says that the weight is {}, and the codes of {} are {}", shape_text(sizes),
                                    codes.name, type_and_shape(codes)),
                        shape);
  }
  layer.shape = std::move(sizes);
}

// Adds weight_zero_point if codes have zero points. Where they have none, the tool may have written zeros.
void add_zero_points(const ModelTensors& tensors, const std::string& module, const Group& group,
                     const Description& description, LayerBuilder& builder) {
  const std::optional<std::size_t> zeros = tensors.find(tensor_of(module, "weight_zero_point"));
  const bool integers = is_integer(builder.layer().coding.element);
  if (integers && group.weights.contains("symmetric") && !is_true(group.weights, "symmetric", true)) {
    builder.need(tensor_of(module, "weight_zero_point"), PartRole::zero_points);
    return;
  }
  if (!zeros) return;
  builder.add(tensor_of(module, "weight_zero_point"), PartRole::state);
  const bool bytes = bit_width(tensors[*zeros].dtype) == 8;
  if (bytes && tensors.has_only(*zeros, std::byte{0})) return;
  builder.fail(fmt::format("{} says that its codes have no zero points (symmetric), and here are some that are not 0",
                           description.source),
               zeros);
}

// The index of groups that act order needs; -1 in all places: there is none.
void add_group_index(const ModelTensors& tensors, const std::string& module, const Group& group,
                     const Description& description, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  const std::optional<std::size_t> index = tensors.find(tensor_of(module, "weight_g_idx"));
  const std::string order = text_in(group.weights, "actorder");
  const bool ordered = order == "group" || order == "dynamic" || is_true(group.weights, "actorder");
  const bool several = layer.block_columns > 0 && !layer.shape.empty() && layer.block_columns < layer.shape.back();
  if (index && builder.ok()) {
    const bool fits = tensors[*index].dtype == DType::int32 && tensors[*index].shape == std::vector{layer.shape.back()};
    if (!builder.expect(fits, index, "{} inputs have as many groups of int32", layer.shape.back())) return;
  }
  constexpr std::byte minus_one{0xff};
  const bool none = !index || tensors.has_only(*index, minus_one);
  if (index) builder.add(tensors[*index].name, none ? PartRole::state : PartRole::group_index);
  if (none && ordered && several) {
    builder.fail(fmt::format("{} names actorder, groups in an order that weight_g_idx tells, which {}",
                             description.source, index ? "has no groups" : "is missing"));
  }
}

// Integers in int32 words: weight_packed, weight_scale, weight_shape, weight_zero_point.
void complete_packed_integers(const ModelTensors& tensors, const std::string& module, const Group& group,
                              const Description& description, LayerBuilder& builder) {
  constexpr std::int64_t most_bits = 8;
  Layer& layer = builder.layer();
  const std::int64_t bits = size_in(group.weights, "num_bits").value_or(not_a_size);
  if (bits < 1 || bits > most_bits) {
    return builder.fail(fmt::format("{} names integers of a width that is not from 1 to 8 bits", description.source));
  }
  layer.scheme = fmt::format("int{}-{}", bits, text_in(group.weights, "strategy") == "channel" ? "channel" : "group");
  layer.coding = {.element = DType::uint8,
                  .bits = static_cast<int>(bits),
                  .packing = BlockPacking::stream,
                  .offset = 1 << (bits - 1)};
  builder.need_codes_of({DType::int32});
  if (!builder.ok()) return;
  layer.shape = builder.codes().shape;
  read_shape(tensors, description, builder, builder.need(tensor_of(module, "weight_shape"), PartRole::state));
  set_blocks(group, description, builder);
  const std::optional<std::size_t> scales = builder.need(tensor_of(module, "weight_scale"), PartRole::scales);
  builder.check_scales(scales, false, description.source);
  add_group_index(tensors, module, group, description, builder);
  add_zero_points(tensors, module, group, description, builder);
  const std::optional<std::size_t> zeros = layer.find(PartRole::zero_points);
  if (!zeros || !builder.ok()) return;
  // compressed-tensors 0.9 did not pack them.
  if (tensors[*zeros].dtype == DType::int8 && tensors[*zeros].shape == tensors[*scales].shape) return;
  if (layer.shape.size() != 2) return builder.fail("zero points of 3-D weights are not known");
  const bool sparse = layer.deviations.has_whole_codes;
  const std::vector<std::int64_t> wanted = {
      sparse ? sparse_words(layer.shape[0], bits) : dense_words(layer.shape[0], bits),
      blocks_of(layer.shape[1], layer.block_columns)};
  builder.expect(tensors[*zeros].dtype == DType::int32 && tensors[*zeros].shape == wanted, zeros,
                 "zero points of {} rows are int32 {}", layer.shape[0], shape_text(wanted));
}

// Fails if arguments contradict the format, which has them once for all.
void check_arguments(const StoredScheme& stored, const Group& group, const Description& description,
                     LayerBuilder& builder) {
  const std::string type = text_in(group.weights, "type"), strategy = text_in(group.weights, "strategy");
  const std::int64_t bits = size_in(group.weights, "num_bits").value_or(stored.coding.bits);
  const bool in_groups = strategy.empty() || strategy == "group" || strategy == "tensor_group";
  if (bits == stored.coding.bits && (type.empty() || type == "float") && in_groups) return;
  builder.fail(
      fmt::format("{} names the format \"{}\", and its weights have {} bits, the type \"{}\" and the strategy "
                  "\"{}\", where the format has {}, \"float\" and groups",
                  description.source, stored.word, bits, type, strategy, stored.coding.bits));
}

// MXFP4, MXFP6 and NVFP4: weight_packed, weight_scale, weight_global_scale.
void complete_packed_floats(const std::string& module, const StoredScheme& stored, const Group& group,
                            const Description& description, LayerBuilder& builder) {
  check_arguments(stored, group, description, builder);
  read_as(stored, builder);
  std::int64_t& size = builder.layer().block_columns;
  size = size_in(group.weights, "group_size").value_or(stored.block());
  if (size != stored.block()) {
    builder.fail(fmt::format("blocks of {} have {} elements, and {} names another number", stored.scheme,
                             stored.block(), description.source));
  }
  builder.check_scales(builder.need(tensor_of(module, stored.scales), PartRole::scales), true, description.source);
  if (stored.global.empty()) return;
  builder.check_global(builder.need(tensor_of(module, stored.global), PartRole::global_scale));
}

// Of weights in bytes; those of integers first.
constexpr std::array<std::string_view, 3> byte_formats = {"int-quantized", "float-quantized", "naive-quantized"};

// float8 and int8: weight, weight_scale, perhaps weight_zero_point.
void complete_bytes(const ModelTensors& tensors, const std::string& module, const std::string& format,
                    const Group& group, const Description& description, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  const StoredScheme* const stored = find_row(stored_by_compressed_tensors, &StoredScheme::word, format);
  const bool integer = text_in(group.weights, "type") == "int" || format == byte_formats.front(),
             mx = stored != nullptr;
  layer.coding = {.element = integer ? DType::int8 : DType::float8_e4m3fn,
                  .scale = mx ? DType::float8_e8m0fnu : DType::undefined};
  layer.scheme = integer ? "int8" : "fp8";
  if (size_in(group.weights, "num_bits").value_or(8) != 8) {
    builder.fail(fmt::format("{} names codes of another width than 8 bits, and these are bytes", description.source));
  }
  builder.need_codes_of({integer ? DType::int8 : DType::float8_e4m3fn});
  builder.set_shape(1, 1);
  set_blocks(group, description, builder);
  const bool channel = layer.block_rows == 1 && layer.block_columns == whole_row(layer.shape);
  layer.scheme = mx ? "mxfp8"
                    : fmt::format("{}-{}", integer ? "int8" : "fp8",
                                  layer.block_rows == 0   ? "tensor"
                                  : channel               ? "channel"
                                  : layer.block_rows == 1 ? "group"
                                                          : "block");
  const std::optional<std::size_t> scales = builder.need(tensor_of(module, "weight_scale"), PartRole::scales);
  builder.check_scales(scales, mx, description.source);
  add_zero_points(tensors, module, group, description, builder);
  const std::optional<std::size_t> zeros = layer.find(PartRole::zero_points);
  if (!zeros || !scales) return;
  builder.expect(tensors[*zeros].dtype == DType::int8 && tensors[*zeros].shape == tensors[*scales].shape, zeros,
                 "zero points beside scales of {} are int8", shape_text(tensors[*scales].shape));
}

void add_group_layer(const ModelTensors& tensors, const Description& description, const Groups& groups,
                     const std::string& module, std::size_t codes, bool packed, std::vector<Layer>& layers) {
  LayerBuilder builder(tensors, "compressed-tensors", tensor_of(module, "weight"), codes);
  builder.layer().scheme = "a group";
  if (const Result<const Group*> found = groups.of(module, tensors[codes].shape.size()); !found) {
    builder.fail(fmt::format("{}: {}", description.source, found.error().message));
  } else {
    const Group& group = **found;
    const std::string& format = group.format;
    std::string problem = key_problem(group.weights, decoded_weights_keys, description.source, tensors.accepted());
    if (!problem.empty()) builder.fail(std::move(problem));
    const bool floats = text_in(group.weights, "type") == "float";
    const StoredScheme* const stored = find_row(stored_by_compressed_tensors, &StoredScheme::word, format);
    if (packed && stored != nullptr && stored->coding.bits < 8) {
      complete_packed_floats(module, *stored, group, description, builder);
    } else if (packed && format == "pack-quantized" && !floats) {
      complete_packed_integers(tensors, module, group, description, builder);
    } else if (!packed && (contains(byte_formats, format) || (stored != nullptr && stored->coding.bits == 8))) {
      complete_bytes(tensors, module, format, group, description, builder);
    } else {
      builder.fail(fmt::format("{} names the format \"{}\", {}", description.source, format,
                               packed ? "whose codes are not in weight_packed" : "which is not known"));
    }
  }
  for (const char* key : {"transform_config", "sparsity_config", "moe_sparsity_config"}) {
    const Json* change = object_in(description.section, key);
    if (change == nullptr || change->empty()) continue;
    if (key[0] == 's' && text_in(*change, "format") == "dense") continue;
    builder.fail(fmt::format("{} has a {}, which changes the weights beside their codes and is not undone",
                             description.source, key));
  }
  add_activations(builder, module);
  layers.push_back(std::move(builder).done());
}

void find_compressed_tensors(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const Groups groups(description->section);
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    if (const std::optional<std::string> packed = module_with(name, "weight_packed")) {
      add_group_layer(tensors, *description, groups, *packed, i, true, layers);
    } else if (const std::optional<std::string> scaled = module_with(name, "weight_scale")) {
      const std::optional<std::size_t> codes = tensors.find(tensor_of(*scaled, "weight"));
      if (codes) add_group_layer(tensors, *description, groups, *scaled, *codes, false, layers);
    }
  }
}

}  // namespace

constinit const Spelling layouts::compressed_tensors = {
    .name = "compressed-tensors",
    .methods = {{.name = "compressed-tensors", .list = "ignore", .list_is_open = true, .rest_is_quantized = true}},
    .keys = keys_of_compressed_tensors,
    .find = find_compressed_tensors,
    .spell = spell_compressed_tensors,
    .describe = describe_compressed_tensors,
    // NVFP4 needs a scale of activations that was calibrated.
    .activations = DynamicActivations::choice,
    .activations_schemes = "fp8-tensor fp8-channel fp8-block int8-channel mxfp8 mxfp6 mxfp4",
    // DeepSeek, DeepGEMM and transformers write so; presets of llm-compressor for these weights have no other way.
    .activations_recipes = "fp8-block fp8-channel:compressed-tensors int8-channel:compressed-tensors",
    .joins_scales = true,
    .names_cache = true,
};

}  // namespace tensorcast::quantized
