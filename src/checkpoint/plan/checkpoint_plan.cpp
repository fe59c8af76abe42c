// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/checkpoint_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "checkpoint/plan/config_file.hpp"
#include "checkpoint/plan/layer_table_maker.hpp"
#include "checkpoint/plan/placement.hpp"
#include "checkpoint/plan/renamed_layers.hpp"
#include "checkpoint/source/tensor_set.hpp"
#include "checkpoint/store/file_name.hpp"
#include "convert/plan/conversion_record.hpp"
#include "convert/select/tensor_selection.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "io/path_name.hpp"
#include "io/sha256.hpp"
#include "quantized/layout/quantization_claim.hpp"
#include "quantized/names/module_name.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::checkpoint {
namespace {

// A tensor that is to get a place in a shard.
struct Piece {
  ShardItem item;
  std::size_t input = 0;    // that it comes from
  std::uint64_t bytes = 0;  // that it becomes
};
using Pieces = std::vector<Piece>;

// Cuts tensors into shards in their order, as transformers does.
std::vector<Pieces> cut(Pieces pieces, std::uint64_t max_bytes) {
  std::vector<Pieces> shards(1);
  std::uint64_t bytes = 0;
  for (Piece& piece : pieces) {
    if (max_bytes != 0 && !shards.back().empty() && bytes + piece.bytes > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += piece.bytes;
    shards.back().push_back(std::move(piece));
  }
  return shards;
}

// What the models of a folder have in common: its configuration is that of all.
struct FolderPlan {
  std::map<DType, std::uint64_t> bytes = {};     // of floating-point tensors that are no codes
  bool converts = false, uses_to = false;        // some of these are converted; to the request's type
  std::string claim = {};                        // what its files say about quantization
  bool finds_claimed = false;                    // a quantized tensor of a model that they describe is known
  bool converts_claimed = false;                 // some tensor of such a model is converted
  std::vector<std::string> decoded = {};         // modules
  bool stays = false;                            // something is quantized in the output, too
  std::set<std::string> quantized_experts = {};  // modules of experts of which some stay quantized
  std::optional<quantized::WrittenConfig> respelled = {};
  std::optional<Error> not_quantized = {};  // why a model of a request that quantizes has no weight that is
  file_conversion::NewEntries renamed = {};

  // Reports whether what its files say about quantization is not true any more.
  [[nodiscard]] bool replaces_description() const noexcept { return respelled || (!decoded.empty() && !stays); }
};

// The modules that are decoded, and those of experts that all are: loaders have one module for these, and look for its
// name.
std::vector<std::string> unquantized_modules(const FolderPlan& folder) {
  std::vector<std::string> modules = folder.decoded;
  std::set<std::string> experts;
  for (const std::string& module : folder.decoded) experts.insert(quantized::experts_module(module));
  experts.erase("");
  std::ranges::set_difference(experts, folder.quantized_experts, std::back_inserter(modules));
  return modules;
}

class Planning {
 public:
  Planning(const ConvertRequest& request, SourceCheckpoint source,
           std::unique_ptr<file_conversion::TensorPlanner> planner, std::vector<file_conversion::MadeChoice> known)
      : request_(request), source_(std::move(source)), planner_(std::move(planner)) {
    memory_.known = std::move(known);
    plan_.source = source_.folder;
    plan_.settings = request;
    plan_.overwrite = request.overwrite;
    plan_.inputs.assign(source_.shards.begin(), source_.shards.end());
  }

  Result<CheckpointPlan> run() {
    plan_.warnings = source_.warnings;
    for (const SourceModel& model : source_.models) TRY(plan_model(model));
    if (request_.raw_codes && std::ranges::any_of(folders_, [](auto& each) { return !each.second.claim.empty(); })) {
      plan_.warnings.push_back(
          "codes become plain numbers, and the configuration stays: a loader that applies it gets "
          "wrong weights");
    }
    TRY(check_quantized());
    TRY(planner_->check_all_planned());
    TRY(check_claims());
    if (plan_.shards.empty()) {
      return in_file(source_.folder,
                     invalid("no tensor is left to write",
                             "`drop` and `only` choose tensors by their names, which `tcast inspect` lists"));
    }
    for (PlannedShard& shard : plan_.shards) {
      TRY(lay_out(shard));
      set_fingerprint(plan_, shard);
    }
    TRY(note_descriptions());
    plan_others();
    TRY(check_names_differ());
    TRY(check_others());
    plan_.choices = std::move(memory_.made);
    plan_.accepted = request_.filter.accept;
    return std::move(plan_);
  }

 private:
  Result<void> plan_model(const SourceModel& model) {
    std::vector<TensorPlace> places;
    memory_.source.clear();
    for (const std::size_t index : model.shards) {
      const SourceShard& shard = source_.shards[index];
      for (const std::uint64_t begin : shard.header.begin_offsets) places.emplace_back(index, shard.data_begin + begin);
      memory_.source += input_text(plan_.inputs[index]) + "\n";
    }
    FolderPlan& folder = folders_[model.folder];
    const OpenedModel opened = open_model(source_, model);
    file_conversion::ModelToPlan planned = file_conversion::model_of(opened.input);
    planned.memory = &memory_;
    Pieces pieces;
    std::vector<file_conversion::PlannedTensor> renamed;  // all tensors, if there are new names
    std::vector<std::string> beside;                      // quantized tensors of no layer, such as scales of a cache
    LayerTableMaker table(planned, places, plan_.table);
    Result<void> done = planner_->plan(planned, [&](auto tensor) {
      if (!planned.claim.empty()) note_claimed(tensor, planned.claim, folder);
      note(tensor, folder, beside);
      if (!request_.filter.rename.empty()) renamed.push_back(tensor);
      pieces.push_back(piece_of(std::move(tensor), table, places));
    });
    if (!done) return at_shard(std::move(done).error(), *opened.shards);
    for (std::string& warning : planned.warnings) plan_.warnings.push_back(std::move(warning));
    if (!request_.filter.rename.empty()) {
      folder.renamed.merge(TRY(in_file(source_.folder, rename_layers(planned, renamed))));
    }
    TRY(check_layers(folder, planned.layers.method, beside));
    if (planned.respelling.any()) TRY(note_respelling(model, std::move(planned.respelling), folder));
    if (pieces.empty() && !planned.tensors.empty()) return {};  // all are dropped
    if (planned.not_quantized) {
      folder.not_quantized = at_shard(*std::move(planned.not_quantized), *opened.shards);
    }
    return add_shards(model, std::move(pieces));
  }

  static Piece piece_of(file_conversion::PlannedTensor tensor, LayerTableMaker& table,
                        std::span<const TensorPlace> places) {
    Piece piece{.item = {}, .bytes = tensor.target.bytes};
    if (tensor.layer()) {
      piece.input = table.input_of(tensor);
      piece.item =
          LayerTensors{.layer = table.row_of(tensor), .tensors = {tensor.decodes() ? 0 : tensor.rewritten()->place}};
      return piece;
    }
    const auto [input, begin] = places[tensor.source];
    piece.input = input;
    piece.item =
        std::make_shared<const ShardTensor>(ShardTensor{.planned = std::move(tensor), .input = input, .begin = begin});
    return piece;
  }

  // Remembers the configuration of the new spelling, and what is to be said.
  Result<void> note_respelling(const SourceModel& model, quantized::Respelling respelling, FolderPlan& folder) {
    for (std::string& warning : respelling.warnings) plan_.warnings.push_back(std::move(warning));
    if (folder.respelled) {
      if (folder.respelled->section == respelling.config.section) return {};
      return in_file(source_.folder + "/" + source_.shards[model.shards.front()].name,
                     unsupported("the folder has several models and one configuration, which would have to say another "
                                 "thing of each",
                                 "`skip_files` leaves out all but one"));
    }
    if (!respelling.config.own_file.empty()) {
      plan_.texts.push_back({.name = model.folder + "hf_quant_config.json", .text = respelling.config.own_file});
    }
    folder.respelled = std::move(respelling.config);
    return {};
  }

  // Notes what a tensor means for the configuration of its folder.
  void note(const file_conversion::PlannedTensor& tensor, FolderPlan& folder, std::vector<std::string>& beside) const {
    folder.stays = folder.stays || tensor.in_layer();
    if (tensor.in_layer()) folder.quantized_experts.insert(quantized::experts_module(tensor.target.name));
    if (tensor.decodes()) {
      folder.decoded.push_back(quantized::module_of(tensor.target.name));
    } else if (tensor.quantized && !tensor.in_layer()) {
      beside.push_back(tensor.name());
    }
    const formats::TensorInfo& target = tensor.target;
    if (family(target.dtype) != Family::floating || !is_castable(target.dtype)) return;
    if (tensor.quantized && !tensor.casts()) return;
    folder.bytes[target.dtype] += target.bytes;
    folder.converts = folder.converts || tensor.casts();
    folder.uses_to = folder.uses_to || (tensor.casts() && target.dtype == request_.to);
  }

  // Notes whether the quantized tensors of a folder are known whose files say that there are some.
  static void note_claimed(const file_conversion::PlannedTensor& tensor, const std::string& claim, FolderPlan& folder) {
    folder.claim = claim;
    folder.finds_claimed = folder.finds_claimed || tensor.quantized;
    folder.converts_claimed = folder.converts_claimed || tensor.casts();
  }

  Result<void> check_layers(const FolderPlan& folder, const std::string& method, std::span<const std::string> beside) {
    if (!folder.decoded.empty() && !beside.empty()) {
      plan_.warnings.push_back(fmt::format("{} stay as they are: they belong to no weight that is decoded",
                                           quantized::first_of(beside[0], beside.size() - 1)));
    }
    if (folder.decoded.empty() || !folder.stays || method.empty() || names_modules(method)) return {};
    return in_file(source_.folder,
                   unsupported(fmt::format("some layers would be decoded and some not, and the configuration of \"{}\" "
                                           "cannot name the ones that are",
                                           method),
                               "decode all of them, or none"));
  }

  // A part of a model, such as a VAE, may have nothing to quantize. Another model of the same folder may not, as the
  // configuration is that of both.
  Result<void> check_quantized() {
    const bool is_any = std::ranges::any_of(folders_, [](auto& each) { return each.second.respelled.has_value(); });
    for (const auto& [name, folder] : folders_) {
      if (!folder.not_quantized) continue;
      if (!is_any || folder.respelled) return *folder.not_quantized;
      plan_.warnings.push_back(
          fmt::format("{}: nothing is quantized: {}", name.empty() ? "./" : name, folder.not_quantized->message));
    }
    return {};
  }

  // Quantized tensors that are not recognized could not be left alone.
  [[nodiscard]] Result<void> check_claims() const {
    for (const auto& [name, folder] : folders_) {
      if (folder.finds_claimed || !folder.converts_claimed) continue;
      return in_file(source_.folder + (name.empty() ? "" : "/" + name.substr(0, name.size() - 1)),
                     unsupported(fmt::format("{}, and none of the tensors is known to be quantized", folder.claim),
                                 "`exclude` . leaves all tensors as they are; if none is quantized, remove "
                                 "quantization_config from the configuration"));
    }
    return {};
  }

  // Names the file of the tensor at fault.
  static Error at_shard(Error error, const ShardReader& reader) {
    for (std::size_t i = 0; i < reader.tensors().size() && error.file.empty() && !error.tensor.empty(); ++i) {
      if (reader.tensors()[i].name == error.tensor) error.file = reader.path_of(i);
    }
    return error;
  }

  Result<void> add_shards(const SourceModel& model, Pieces pieces) {
    PlannedModel planned;
    std::vector<Pieces> shards;
    bool anew = request_.single_file || request_.max_shard_bytes != 0;
    if (anew) {
      shards = cut(std::move(pieces), request_.single_file ? 0 : request_.max_shard_bytes);
    } else {
      shards = shards_of_inputs(model, std::move(pieces));
      anew = shards.size() < model.shards.size();  // a loader may count them by their names
    }
    const std::size_t count = shards.size();
    for (std::size_t i = 0; i < count; ++i) {
      std::string name = model.folder + shard_name(model.stem, i + 1, count);
      if (!anew) {
        const std::string& source_name = source_.shards[model.shards[i]].name;
        name = safetensors_name(source_name);
        planned.new_map = planned.new_map || name != source_name;
      }
      TRY(add_shard(planned, std::move(name), std::move(shards[i]), model));
    }
    planned.index = model.output_index;
    if (count > 1 && model.index.empty()) planned.index = model.folder + index_name(model.stem);
    if (count == 1 && anew) planned.index.clear();
    planned.new_map = planned.new_map || anew || names_change() || planned.index != model.index;
    if (!model.index.empty()) {
      planned.source_index = model.index;
      planned.source_index_sha256 = io::sha256_of(model.index_text);
    }
    plan_.models.push_back(std::move(planned));
    return {};
  }

  // Whether shards may lack tensors of their inputs, or have others.
  [[nodiscard]] bool names_change() const noexcept {
    const OutputFilter& filter = request_.filter;
    const auto changes = [](const auto& folder) { return folder.second.respelled || !folder.second.decoded.empty(); };
    return std::ranges::any_of(folders_, changes) || !filter.drop.empty() || !filter.only.empty() ||
           !filter.rename.empty();
  }

  // Returns the tensors of each input, without the inputs whose tensors are all dropped.
  std::vector<Pieces> shards_of_inputs(const SourceModel& model, Pieces pieces) const {
    std::map<std::size_t, Pieces> by_input;
    for (Piece& piece : pieces) by_input[piece.input].push_back(std::move(piece));
    std::vector<Pieces> shards;
    for (const std::size_t input : model.shards) {
      const auto found = by_input.find(input);
      const bool was_empty = source_.shards[input].header.tensors.empty();
      if (found != by_input.end()) {
        shards.push_back(std::move(found->second));
      } else if (was_empty) {
        shards.emplace_back();
      }
    }
    return shards;
  }

  Result<void> add_shard(PlannedModel& model, std::string name, Pieces pieces, const SourceModel& source) {
    PlannedShard shard{.name = std::move(name), .metadata = {}, .items = {}, .bytes = 0, .fingerprint = {}};
    // Metadata of all inputs of the shard; of an empty one, of the model's only file.
    std::set<std::size_t> inputs;
    for (Piece& piece : pieces) {
      inputs.insert(piece.input);
      append_item(shard.items, std::move(piece.item));
    }
    if (inputs.empty() && source.shards.size() == 1) inputs.insert(source.shards.front());
    ShardReader reader;
    for (const std::size_t input : inputs) reader.add_metadata(source_.shards[input].header.metadata);
    shard.metadata = TRY(planner_->metadata_of(reader.metadata(), description_of(source.folder)));
    TRY(rename_in_metadata(folders_[source.folder].renamed, shard.metadata));
    model.shards.push_back(plan_.shards.size());
    plan_.shards.push_back(std::move(shard));
    return {};
  }

  // What files of a folder say about their quantization.
  [[nodiscard]] file_conversion::NewDescription description_of(const std::string& folder) {
    const FolderPlan& plan = folders_[folder];
    return {.replaces = plan.replaces_description(),
            .written = plan.respelled ? &*plan.respelled : nullptr,
            .is_beside =
                std::ranges::find(source_.others, folder + "config.json", &ListedFile::name) != source_.others.end()};
  }

  // Lays out the data of a shard, and leaves out what its items need not say.
  Result<void> lay_out(PlannedShard& shard) const {
    for (ShardItem& item : shard.items) {
      auto* const layer = std::get_if<LayerTensors>(&item);
      if (layer == nullptr) continue;
      const std::vector<ShardTensor> all = TRY(checkpoint::tensors_of(plan_.table, layer->layer));
      if (layer->tensors.size() == all.size()) layer->tensors.clear();
    }
    const std::vector<formats::TensorInfo> targets = TRY(checkpoint::lay_out(plan_.table, shard));
    file_conversion::ConversionRecorder recorder(request_);
    TRY(for_each_tensor(plan_.table, shard.items, [&](const ShardTensor& tensor) { recorder.add(tensor.planned); }));
    recorder.write(shard.metadata, formats::safetensors_format);
    const Result<std::string> header = formats::safetensors::format_header(targets, shard.metadata);
    if (!header) return in_file(shard.name, header.error());
    shard.bytes = header->size() + shard.tensor_bytes;
    return {};
  }

  // Chooses the type that the config of a folder names; undefined: it stays.
  [[nodiscard]] DType config_dtype(const FolderPlan& folder) const {
    if (!folder.converts) return DType::undefined;
    if (request_.to != DType::undefined && (folder.uses_to || !is_loadable(request_.to))) {
      return is_loadable(request_.to) ? request_.to : DType::undefined;
    }
    const auto most = std::ranges::max_element(folder.bytes, {}, [](const auto& entry) { return entry.second; });
    return is_loadable(most->first) ? most->first : DType::undefined;
  }

  // Whether a file that may describe quantization is the configuration of the whole model.
  static bool says_more(std::string_view file) { return file == "config.json" || file == "params.json"; }

  // Notes what layers were planned by, which must be the same when the folder is finished.
  [[nodiscard]] Result<void> note_descriptions() {
    if (plan_.table.layers.empty()) return {};
    for (const ListedFile& file : source_.others) {
      if (!file_conversion::may_claim_quantization(last_component(file.name))) continue;
      const std::string text = TRY(read_text(TRY(open_source(plan_.source, file.name)), max_config_bytes));
      plan_.descriptions.push_back({.name = file.name, .sha256 = io::sha256_of(text)});
    }
    return {};
  }

  void plan_others() {
    plan_.empty_folders = std::move(source_.empty_folders);
    plan_.left_out = std::move(source_.left_out);
    for (ListedFile& file : source_.others) {
      if (is_about_others(file.name)) continue;  // of the source's files
      const std::string last = last_component(file.name);
      const FolderPlan& folder = folders_[folder_of(file.name)];
      PlannedConfig config{.name = file.name};
      if (last == "config.json") config.dtype = config_dtype(folder);
      if (file_conversion::may_claim_quantization(last)) {
        if (folder.replaces_description() && !says_more(last)) {
          plan_.left_out.push_back({.name = file.name, .bytes = file.bytes});  // it says nothing else
          continue;
        }
        if (folder.respelled && last == "config.json") config.section = folder.respelled->section;
        config.unquantized = folder.respelled && config.section.empty();
        if (!folder.decoded.empty()) config.unquantized = !folder.stays;
        if (folder.stays) config.decoded = unquantized_modules(folder);
        config.renamed = folder.renamed;
      }
      if (config.dtype != DType::undefined || config.unquantized || !config.decoded.empty() ||
          !config.section.empty() || !config.renamed.empty()) {
        plan_.configs.push_back(std::move(config));
      } else {
        plan_.copies.push_back(std::move(file));
      }
    }
  }

  // Checks that all names of the output can be in one folder: none is there twice, or the folder of another.
  [[nodiscard]] Result<void> check_names_differ() const {
    std::vector<std::string> names = output_names(plan_);
    names.emplace_back(record_name);
    const std::set<std::string_view> all(names.begin(), names.end());
    const auto fail = [](std::string message) {
      return unsupported(std::move(message), "convert the models of the folder one by one, by their indexes or files");
    };
    std::set<std::string_view> seen;
    for (const std::string_view name : names) {
      if (!seen.insert(name).second) return fail(fmt::format("two files of the output would be \"{}\"", name));
      for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
        if (!all.contains(name.substr(0, slash))) continue;
        return fail(fmt::format("the output would have \"{}\" as a file and as a folder", name.substr(0, slash)));
      }
    }
    for (const std::string& folder : plan_.empty_folders) {
      if (!all.contains(folder)) continue;
      Error error = fail(fmt::format("the output would have \"{}\" as a file and as a folder", folder));
      error.hint = "remove the empty folder from the input";
      return error;
    }
    return {};
  }

  // Opens what finish will read, so that a damaged config or a link that leads out is known before the work.
  [[nodiscard]] Result<void> check_others() const {
    for (const ListedFile& file : plan_.copies) TRY(check_source(plan_.source, file.name));
    for (const PlannedConfig& config : plan_.configs) {
      const StoredFile source = TRY(open_source(plan_.source, config.name));
      const std::string text = TRY(read_text(source, max_config_bytes));
      TRY(in_file(source.path(), rewritten_config(text, config)));
    }
    return {};
  }

  const ConvertRequest& request_;
  SourceCheckpoint source_;
  file_conversion::BudgetMemory memory_;
  std::unique_ptr<file_conversion::TensorPlanner> planner_;
  CheckpointPlan plan_;
  std::map<std::string, FolderPlan> folders_;  // by their names
};

Result<void> check_folder_request(const ConvertRequest& request) {
  const auto fail = [](std::string message, std::string hint = {}) {
    return invalid(std::move(message), std::move(hint));
  };
  if (request.raw) return fail("a checkpoint is not raw bytes");
  if (!request.from.empty())
    return fail("the files of a checkpoint say the types of their tensors", "leave `from` out");
  if (!request.input_format.empty()) {
    return fail("the formats of a checkpoint's files are told by their names and content", "leave `input_format` out");
  }
  if (!request.output_format.empty() && request.output_format != "safetensors") {
    return fail(fmt::format("checkpoints are written as safetensors, not {}", request.output_format));
  }
  if (request.single_file && request.max_shard_bytes != 0) {
    return fail("a single file has no shards", "choose `single_file` or `max_shard_size`");
  }
  const OutputFilter& filter = request.filter;
  const bool filters = !filter.drop.empty() || !filter.only.empty() || !filter.rename.empty();
  const bool cuts = request.single_file || request.max_shard_bytes != 0;
  if (!request.mix.empty()) return invalid("`mix` is from one GGUF file to another, and the input is a checkpoint");
  if (!file_conversion::has_target(request) && !cuts && !filters && request.respell.empty()) {
    return fail("there is no type to convert to",
                "`to` names one; `max_shard_size`, `only`, `drop` and `rename` work without");
  }
  return {};
}

}  // namespace

Result<std::vector<formats::TensorInfo>> lay_out(const LayerTable& table, PlannedShard& shard) {
  std::vector<formats::TensorInfo> targets;
  shard.bytes_in = shard.source_bytes = shard.tensor_bytes = 0;
  TRY(for_each_tensor(table, shard.items, [&](ShardTensor tensor) {
    file_conversion::PlannedTensor& planned = tensor.planned;
    shard.bytes_in += planned.bytes_in;
    shard.source_bytes += planned.new_weight() == nullptr ? planned.bytes_in : planned.new_weight()->bytes;
    shard.tensor_bytes += planned.target.bytes;
    targets.push_back(std::move(planned.target));
  }));
  shard.tensors = targets.size();
  TRY(formats::safetensors_format.check(targets));
  const std::vector<std::size_t> layout = formats::safetensors_format.layout(targets);
  shard.order.assign(layout.begin(), layout.end());
  std::vector<formats::TensorInfo> ordered;
  ordered.reserve(targets.size());
  for (const std::size_t index : layout) ordered.push_back(std::move(targets[index]));
  return ordered;
}

std::vector<ShardTensor> CheckpointPlan::tensors_of(const PlannedShard& shard) const {
  std::vector<ShardTensor> given;
  for_each_tensor(table, shard.items, [&](ShardTensor tensor) { given.push_back(std::move(tensor)); }).value();
  std::vector<ShardTensor> ordered;
  ordered.reserve(given.size());
  for (const std::uint32_t index : shard.order) ordered.push_back(std::move(given[index]));
  return ordered;
}

std::uint64_t CheckpointPlan::disk_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const PlannedShard& shard : shards) sum += shard.bytes;
  for (const ListedFile& file : copies) sum += file.bytes;
  return sum;
}

std::vector<std::string> CheckpointPlan::folders() const {
  std::set<std::string> folders = {""};
  for (const PlannedShard& shard : shards) folders.insert(folder_of(shard.name));
  for (const PlannedConfig& config : configs) folders.insert(folder_of(config.name));
  for (const ListedFile& file : copies) folders.insert(folder_of(file.name));
  return {folders.begin(), folders.end()};
}

Result<CheckpointPlan> make_checkpoint_plan(const ConvertRequest& request,
                                            std::vector<file_conversion::MadeChoice> known) {
  TRY(check_folder_request(request));
  TRY(io::check_path(request.output));
  if (!is_folder(request.input) && !is_file(request.input)) TRY(read_source(request.input));
  const PathUse input[] = {{.path = source_folder(request.input), .noun = "input", .folder = true}};
  TRY(check_apart({.path = request.output, .noun = "output", .folder = true}, input));
  if (!is_utf8(request.input)) {
    return in_file(request.input,
                   unsupported("the path of the folder is not UTF-8, so no plan can name it", "rename the folder"));
  }
  // Patterns are checked first, so that a typing error costs nothing.
  auto planner =
      TRY(file_conversion::TensorPlanner::create(request, formats::safetensors_format, formats::safetensors_format));
  SourceCheckpoint source = TRY(read_source(request.input, request.filter.skip_files));
  source.accepted = request.filter.accept;
  Result<CheckpointPlan> plan = Planning(request, std::move(source), std::move(planner), std::move(known)).run();
  if (!plan) return with_given_path(std::move(plan).error(), request.input);
  return plan;
}

}  // namespace tensorcast::checkpoint
