// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/respelling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/part_reader.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/names/module_name.hpp"
#include "quantized/rewrite/scale_checks.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/spelling.hpp"

namespace tensorcast::quantized {
namespace {

constexpr const char* no_reciprocal = "its scale of the whole tensor is so small that its reciprocal is infinite";

std::vector<std::byte> bytes_of(std::span<const float> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return {bytes.begin(), bytes.end()};
}

// Whether a configuration asks for scales of activations while the model runs.
bool is_dynamic(const Json& section) {
  if (text_in(section, "activation_scheme") == "dynamic") return true;
  const Json* groups = object_in(section, "config_groups");
  if (groups == nullptr) return false;
  return std::ranges::any_of(*groups, [](const Json& group) {
    const Json* inputs = group.is_object() ? object_in(group, "input_activations") : nullptr;
    return inputs != nullptr && is_true(*inputs, "dynamic");
  });
}

bool stays_as_it_is(PartRole role, const std::string& name) {
  if (role == PartRole::state) return !name.ends_with("weight_shape") && !name.ends_with("comfy_quant");
  return role == PartRole::activations;
}

bool is_input_scale(const std::string& name) {
  return module_with(name, "input_scale") || module_with(name, "input_global_scale") ||
         module_with(name, "scale_input");
}

class RespellingPlanner {
 public:
  RespellingPlanner(const FoundLayers& found, std::span<const ConfigText> texts, formats::Reader& reader,
                    const RespellRequest& request)
      : found_(found), texts_(texts), reader_(reader), tensors_(reader.tensors()), request_(request) {}

  Result<Respelling> run() {
    writer_ = TRY(writer_named(request_.spelling));
    if (!found_.refusal.empty()) return unsupported(found_.refusal);
    if (!found_.any()) return unsupported("no layer is quantized, so there is nothing to respell");
    read_old_config();
    plan_.spelling = request_.spelling;
    plan_.layers.resize(found_.layers.size());
    for (const Layer& layer : found_.layers) beside_mxfp4_ = beside_mxfp4_ || layer.scheme == "mxfp4";
    for (std::size_t i = 0; i < found_.layers.size(); ++i) {
      if (!request_.writes(found_.layers[i].name)) continue;
      TRY(at_tensor(found_.layers[i].name, plan_layer(found_.layers[i], plan_.layers[i])));
    }
    describe_model();
    if (!plan_.config.refusal.empty()) return refused(plan_.config.refusal, plan_.config.refused_layer);
    say_inexact();
    say_left_out();
    return std::move(plan_);
  }

 private:
  static Error refused(std::string message, std::string tensor = {}) {
    return of_tensor(std::move(tensor), unsupported(std::move(message), "`drop` leaves tensors out of the output"));
  }

  // What the old configuration says of activations and of its scales.
  void read_old_config() {
    for (const Description& description : read_descriptions(texts_)) {
      const Json& section = description.section;
      dynamic_ = dynamic_ || is_dynamic(section);
      if (scale_format_.empty()) scale_format_ = text_in(section, "scale_fmt");
    }
  }

  Result<void> plan_layer(const Layer& layer, RespelledLayer& plan) {
    if (layer.spelling == writer_->name) return refused("it has this spelling already", layer.name);
    if (!layer.problem.empty() && !layer.other_basis) return refused(layer.problem, layer.problem_tensor);
    const PartReader part_reader(reader_, layer);
    TRY(check_order(part_reader));
    LayerContent content = TRY(stored_content(layer, part_reader.infos()));
    plan.content = std::make_shared<const LayerContent>(content);
    plan.becomes = std::move(content);
    plan.becomes.beside_mxfp4 = beside_mxfp4_;
    plan.becomes.dynamic_activations = dynamic_ && layer.scheme.starts_with("fp8");
    std::vector<float> globals;
    if (const auto tensor = layer.find(PartRole::global_scale)) globals = TRY(read_floats(*tensor));
    TRY(change_scales(layer, plan, globals));
    const std::optional<std::size_t> input_scale = find_input_scale(layer);
    if (input_scale) plan.becomes.input_scale = global_kind(layer.coding);
    plan.writer = writer_;
    TRY(check_zero_points(part_reader, plan));
    const WrittenLayer written = plan.written();
    if (!written.ok()) return refused(written.refusal, layer.name);
    TRY(check_activations(layer, written, input_scale));
    for (const Part& part : layer.parts) {
      if (part.tensor != input_scale && stays_as_it_is(part.role, tensors_[part.tensor].name))
        plan.kept.push_back(part.tensor);
    }
    return fill_constants(layer, written, plan, globals, input_scale);
  }

  // Zero points that are all the middle are those of symmetric codes.
  Result<void> check_zero_points(const PartReader& reader, RespelledLayer& plan) {
    const LayerContent& content = *plan.content;
    if (!content.zero_points) return {};
    const std::unique_ptr<LayerCodes> codes = TRY(RespelledCodes::create(reader, content, {}));
    plan.becomes.zero_points = !TRY(is_symmetric(*codes, content));
    const WrittenLayer written = plan.written();
    if (!written.ok() || written.layer.coding.zero_added == 0) return {};
    const std::uint64_t columns = content.grid_columns();
    std::vector<std::byte> zeros(content.grid_rows() * columns);
    TRY(codes->zero_points(0, zeros));
    const auto least = static_cast<std::byte>(-(1 << (content.coding.bits - 1)));
    const auto found = std::ranges::find(zeros, least);
    if (found == zeros.end()) return {};
    const auto place = static_cast<std::uint64_t>(found - zeros.begin());
    Error error =
        refused(fmt::format("the zero point of output {} in group {} is 0, and {} stores one less, which tools "
                            "read in two ways",
                            place / columns, place % columns, writer_->name),
                reader.info(*reader.find(PartRole::zero_points)).name);
    error.hint = "`gptq-v2` stores zero points as they are, as do `awq` and `auto-round-awq`";
    return error;
  }

  Result<std::vector<float>> read_floats(std::size_t tensor) {
    const formats::TensorInfo& info = tensors_[tensor];
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    if (!is_plain_float(info.dtype) || info.count > most) {
      return refused("a scale of a whole tensor is a number of 16 or 32 bits", info.name);
    }
    std::vector<float> numbers(info.count);
    std::vector<std::byte> bytes(info.bytes);
    TRY(reader_.read(tensor, 0, bytes));
    TRY(to_float(info.dtype, bytes, numbers));
    return numbers;
  }

  // MXFP4 where the spelling has NVFP4 only, and back.
  Result<void> change_scales(const Layer& layer, RespelledLayer& plan, std::vector<float>& globals) {
    LayerContent& becomes = plan.becomes;
    plan.change.kind = change_of(becomes);
    if (plan.change.kind == ScaleChange::Kind::none) return check_ggml(layer, plan);
    const ScaleSource source{.reader = reader_, .layer = layer, .content = *plan.content};
    if (plan.change.kind == ScaleChange::Kind::to_nvfp4) {
      int exponent = TRY(exponent_for_nvfp4(source));
      plan.change.exponents = {exponent};
      globals = {std::ldexp(1.0F, exponent)};
      becomes = rescaled(std::move(becomes), plan.change.kind);
      return {};
    }
    if (globals.empty()) globals = {1.0F};
    for (const float global : globals) {
      const float factor = plan.content->coding.global == GlobalScale::divisor ? 1.0F / global : global;
      int exponent = 0;
      if (std::frexp(factor, &exponent) != 0.5F) {
        return refused("its scale of the whole tensor is no power of two, as MXFP4 needs", layer.name);
      }
      plan.change.exponents.push_back(exponent - 1);
    }
    becomes = rescaled(std::move(becomes), plan.change.kind);
    globals.clear();
    return check_for_mxfp4(source, plan.change.exponents);
  }

  [[nodiscard]] ScaleChange::Kind change_of(const LayerContent& content) const {
    if (content.coding.element != DType::float4_e2m1fn) return ScaleChange::Kind::none;
    const bool has_mxfp4 = spells("mxfp4", 32), has_nvfp4 = spells("nvfp4", 16);
    if (content.scales() == DType::float8_e8m0fnu && !has_mxfp4 && has_nvfp4) return ScaleChange::Kind::to_nvfp4;
    if (content.scales() == DType::float8_e4m3fn && !has_nvfp4 && has_mxfp4) return ScaleChange::Kind::to_mxfp4;
    return ScaleChange::Kind::none;
  }

  // ggml reads no sign of a scale, and takes NaN for 0.
  Result<void> check_ggml(const Layer& layer, const RespelledLayer& plan) {
    if (!writer_->is_of_gguf || plan.content->scales() != DType::float8_e4m3fn) return {};
    return check_positive(ScaleSource{.reader = reader_, .layer = layer, .content = *plan.content});
  }

  [[nodiscard]] bool spells(const char* scheme, std::int64_t block) const {
    return spell(*writer_, {{.name = "a.weight",
                             .scheme = scheme,
                             .shape = {128, 128},
                             .block_rows = 1,
                             .block_columns = block,
                             .coding = {.element = DType::float4_e2m1fn, .bits = 4},
                             .deviations = {}}})
        .ok();
  }

  // The scale of activations that both spellings have.
  [[nodiscard]] std::optional<std::size_t> find_input_scale(const Layer& layer) const {
    for (const Part& part : layer.parts) {
      const formats::TensorInfo& info = tensors_[part.tensor];
      const bool is_number = is_plain_float(info.dtype) && info.count == 1;
      if (part.role == PartRole::activations && is_input_scale(info.name) && is_number) return part.tensor;
    }
    return std::nullopt;
  }

  // One scale of activations follows, if the spelling has a place for it; zero points and further scales have none.
  Result<void> check_activations(const Layer& layer, const WrittenLayer& written,
                                 std::optional<std::size_t> input_scale) {
    const bool follows = written.layer.find(PartRole::activations).has_value();
    if (input_scale && !follows) left_out_.push_back(tensors_[*input_scale].name);
    for (const Part& part : layer.parts) {
      const formats::TensorInfo& info = tensors_[part.tensor];
      if (part.role != PartRole::activations || part.tensor == input_scale) continue;
      const bool is_zero_point = module_with(info.name, "input_zero_point").has_value();
      const bool is_moved = is_zero_point && follows && !TRY(is_zero(part.tensor));
      if (is_moved || (is_input_scale(info.name) && info.count > 1)) {
        return refused(fmt::format("it is {} of activations, {}, and {} has one scale of them alone",
                                   is_zero_point ? "a zero point" : "a scale", type_and_shape(info), writer_->name),
                       info.name);
      }
    }
    return {};
  }

  Result<bool> is_zero(std::size_t tensor) {
    std::vector<std::byte> bytes(tensors_[tensor].bytes);
    TRY(reader_.read(tensor, 0, bytes));
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
  }

  Result<void> fill_constants(const Layer& layer, const WrittenLayer& written, RespelledLayer& plan,
                              const std::vector<float>& globals, std::optional<std::size_t> input_scale) {
    const bool divides = written.layer.coding.global == GlobalScale::divisor;
    for (std::size_t i = 0; i < written.tensors.size(); ++i) {
      const WrittenTensor& tensor = written.tensors[i];
      std::vector<std::byte> constant;
      std::optional<std::size_t> source = layer.find(tensor.role);
      if (tensor.role == PartRole::global_scale) {
        // A layer of ggml or MLX may have none.
        std::vector<float> numbers = globals.empty() ? std::vector<float>(tensor.info.count, 1.0F) : globals;
        const bool was =
            plan.change.kind == ScaleChange::Kind::none && plan.content->coding.global == GlobalScale::divisor;
        const bool judged = plan.change.kind == ScaleChange::Kind::none;
        if (was != divides && !invert(numbers, layer.name, judged, divides)) return refused(no_reciprocal, layer.name);
        constant = bytes_of(numbers);
      } else if (tensor.role == PartRole::activations) {
        source = input_scale;
        std::vector<float> numbers = TRY(read_floats(*input_scale));
        const bool was = plan.becomes.input_scale == GlobalScale::divisor;
        const std::string& name = tensors_[*input_scale].name;
        if (was != divides && !invert(numbers, name, true, false)) return refused(no_reciprocal, name);
        constant = bytes_of(numbers);
      }
      if (constant.size() != tensor.info.bytes && !constant.empty()) {
        return refused(fmt::format("it has {} scales of whole matrices, and the spelling has {}",
                                   constant.size() / sizeof(float), tensor.info.count),
                       layer.name);
      }
      if (!constant.empty()) plan.constants.emplace(i, std::move(constant));
      plan.sources.push_back(source.value_or(layer.codes()));
    }
    if (request_.exact && !inexact_.empty()) {
      return refused(
          "the reciprocal of its scale is not exact, so decoded numbers may differ in the last bit of float32",
          inexact_.front());
    }
    return {};
  }

  // Returns false if a reciprocal overflows. `to_divisors`: factors of weights become divisors.
  bool invert(std::vector<float>& numbers, const std::string& name, bool judged, bool to_divisors) {
    for (float& number : numbers) {
      // A factor of 0 is a divisor of infinity: all numbers are zeros.
      const bool zeroes = to_divisors && number == 0.0F;
      const float inverse = zeroes ? std::numeric_limits<float>::infinity() : reciprocal(number);
      if (std::isinf(inverse) && !zeroes) return false;
      if (judged && !is_exact_reciprocal(number, inverse) && (inexact_.empty() || inexact_.back() != name))
        inexact_.push_back(name);
      number = inverse;
    }
    return true;
  }

  void say_inexact() {
    if (inexact_.empty()) return;
    plan_.warnings.push_back(
        fmt::format("{}: the reciprocal of the tensor's scale is rounded, so decoded float32 numbers may differ in "
                    "the last bits, and respelling back may give another scale",
                    first_of(inexact_.front(), inexact_.size() - 1)));
  }

  void say_left_out() {
    if (left_out_.empty()) return;
    plan_.warnings.push_back(fmt::format("left out: {}; {} has no scales of activations for these layers",
                                         first_of(left_out_.front(), left_out_.size() - 1), writer_->name));
  }

  void describe_model() {
    WrittenModel model;
    model.scale_format = scale_format_;
    plan_.config = describe_layers(*writer_, found_, tensors_, plan_, request_.writes, ModelArchitecture::of(texts_),
                                   std::move(model));
    const Json section = Json::parse(plan_.config.section, nullptr, false);
    if (dynamic_ || !section.is_object() || !is_dynamic(section)) return;
    plan_.warnings.push_back(fmt::format(
        "the configuration of {} has activations quantized while the model runs, which that of the input has not; "
        "respelling back keeps it",
        writer_->name));
  }

  const FoundLayers& found_;
  std::span<const ConfigText> texts_;
  formats::Reader& reader_;
  const std::vector<formats::TensorInfo>& tensors_;
  const RespellRequest& request_;
  const Spelling* writer_ = nullptr;
  bool beside_mxfp4_ = false;
  bool dynamic_ = false;
  std::string scale_format_;
  std::vector<std::string> inexact_;   // names of layers and tensors
  std::vector<std::string> left_out_;  // names of tensors
  Respelling plan_;
};

}  // namespace

WrittenLayer RespelledLayer::written() const {
  WrittenLayer made = spell(*writer, becomes);
  for (const auto& [place, bytes] : constants) made.tensors[place].constant = bytes;
  return made;
}

Result<const Spelling*> writer_named(const std::string& spelling) {
  if (const Spelling* writer = find_writer(spelling); writer != nullptr) return writer;
  return invalid(fmt::format("\"{}\" is not a spelling that can be written", spelling),
                 fmt::format("the spellings are {}", fmt::join(written_spellings(), ", ")));
}

WrittenConfig describe_layers(const Spelling& writer, const FoundLayers& found,
                              std::span<const formats::TensorInfo> tensors, const Respelling& plan,
                              const std::function<bool(const std::string&)>& writes,
                              const ModelArchitecture& architecture, WrittenModel model) {
  for (const RespelledLayer& layer : plan.layers) {
    if (layer.changes()) model.layers.push_back(layer.written().layer);
  }
  if (model.layers.empty()) return {};
  model.float8_cache = found.float8_cache;
  std::map<std::string, bool> experts;  // modules of experts, and whether all of one stay plain
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const formats::TensorInfo& tensor = tensors[i];
    if (!writes(tensor.name)) continue;
    if (tensor.name.ends_with(".k_scale") || tensor.name.ends_with(".v_scale")) model.float8_cache = true;
    const std::optional<std::size_t> layer = found.layer_of[i];
    const bool stays_plain = is_plain_float(tensor.dtype) && (!layer || plan.unfit.contains(*layer));
    if (const std::string all = experts_module(tensor.name); !all.empty() && (layer || tensor.shape.size() > 1)) {
      const auto [known, is_new] = experts.emplace(all, stays_plain);
      known->second = known->second && stays_plain;
    }
    if (!stays_plain || tensor.shape.size() != 2 || !module_with(tensor.name, "weight")) continue;
    std::string module = module_of(tensor.name);
    // Loaders match parts of names: the root's, "", is a part of all. An entry too many costs nothing.
    if (!module.empty() && !file_conversion::is_table_or_norm(module)) model.unquantized.push_back(std::move(module));
  }
  // Loaders have one module for all experts of a layer, and look for its name.
  for (const auto& [module, stay_plain] : experts) {
    if (stay_plain) model.unquantized.push_back(module);
  }
  // A head that is tied to the embedding has no tensor, and loaders must not look for its codes.
  for (std::string& head : architecture.tied_heads()) {
    const bool is_quantized = std::ranges::any_of(
        model.layers, [&](const Layer& written) { return module_of(written.name).ends_with(head); });
    const bool is_listed = std::ranges::find(model.unquantized, head) != model.unquantized.end();
    if (!is_quantized && !is_listed) model.unquantized.push_back(std::move(head));
  }
  if (!found.other_cache.empty()) model.float8_cache = false;
  WrittenConfig config = describe(writer, model);
  if (writer.names_cache && !found.other_cache.empty() && !found.leaves_cache) {
    config.refusal = fmt::format(
        "{} stores keys and values of the cache as {}, and the configuration of {} that is written says float8 with "
        "one scale for a tensor, or nothing; `accept` kv_cache_scheme or kv_cache_quant_algo leaves it out",
        found.source, found.other_cache, writer.name);
  }
  return config;
}

Result<Respelling> plan_respelling(const FoundLayers& found, std::span<const ConfigText> texts, formats::Reader& reader,
                                   const RespellRequest& request) {
  return RespellingPlanner(found, texts, reader, request).run();
}

}  // namespace tensorcast::quantized
