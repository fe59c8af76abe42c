// SPDX-License-Identifier: Apache-2.0
// Lists the tensors of a checkpoint, and compares those of two.
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "checkpoint/source/opened_layers.hpp"
#include "checkpoint/source/tensor_set.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "convert/run/number_difference.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/select/output_names.hpp"
#include "convert/select/pattern_list.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "io/memory_budget.hpp"
#include "quantized/detect/layer_summary.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using namespace checkpoint;
using formats::TensorInfo;

// The tensors of a file, or those of all models of a checkpoint with the folder of their model before their names; then
// the weights of their layers that can be decoded.
struct TensorSet {
  std::string path;
  OpenedLayers opened;
  std::unique_ptr<quantized::DecodedReader> decoded = {};  // null: no layer is quantized
  std::vector<std::string> names = {};
  std::vector<bool> written = {};  // false: a conversion would leave the tensor out, so it is not compared
  std::vector<quantized::Layer> layers = {};

  [[nodiscard]] formats::Reader& reader() const { return decoded == nullptr ? *opened.stored : *decoded; }
  [[nodiscard]] std::size_t encoded_count() const { return names.size() - layers.size(); }
  [[nodiscard]] const TensorInfo& info(std::size_t index) const { return reader().tensors()[index]; }
  [[nodiscard]] bool is_one_array() const { return names.size() == 1 && names.front().empty(); }
};

// Opens a checkpoint or a file as a conversion with this filter would write it.
Result<TensorSet> open_set(const std::string& path, const OutputFilter& filter = {}) {
  file_conversion::OutputNames output = TRY(file_conversion::OutputNames::compile(filter));
  const bool folder = is_checkpoint(path) || !is_local(path);
  OpenedLayers opened = TRY(folder ? open_checkpoint_layers(path, filter) : open_file_layers(path, filter));
  TensorSet set{.path = path, .opened = std::move(opened)};
  // `full_name`: with the folder of its model.
  const auto add_name = [&](const std::string& name, const std::string& full_name) -> Result<void> {
    set.written.push_back(output.writes(name));
    const std::string prefix = full_name.substr(0, full_name.size() - name.size());
    set.names.push_back(prefix + TRY(set.written.back() ? output.new_name(name) : name));
    return {};
  };
  const std::vector<TensorInfo>& tensors = set.opened.stored->tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) TRY(add_name(tensors[i].name, set.opened.names[i]));
  for (std::size_t i = 0; i < set.opened.layers.size(); ++i) {
    const quantized::Layer& layer = set.opened.layers[i];
    if (!layer.problem.empty()) continue;
    TRY(add_name(layer.name, set.opened.summaries[i].name));
    set.layers.push_back(layer);
  }
  if (!set.layers.empty()) set.decoded = std::make_unique<quantized::DecodedReader>(*set.opened.stored, set.layers);
  TRY(output.check_all_matched());
  return set;
}

// Chooses what is compared of each layer: its weight if the other set has that and no scales of it, or has it in
// another spelling or, with the scales inside, in another scheme; else its tensors.
void choose_layers(TensorSet& set, const TensorSet& other) {
  const std::set<std::string_view> there(other.names.begin(),
                                         other.names.begin() + static_cast<std::ptrdiff_t>(other.encoded_count()));
  std::map<std::string_view, const quantized::Layer*> layers;  // of the other
  for (std::size_t i = 0; i < other.layers.size(); ++i) {
    layers.emplace(other.names[other.encoded_count() + i], &other.layers[i]);
  }
  const std::size_t count = set.encoded_count();
  for (std::size_t i = 0; i < set.layers.size(); ++i) {
    const quantized::Layer& layer = set.layers[i];
    const auto same = layers.find(set.names[count + i]);
    const std::optional<std::size_t> scales = layer.find(quantized::PartRole::scales);
    const bool inside = !scales;
    const bool respelled = same != layers.end() && (same->second->spelling != layer.spelling ||
                                                    (inside && same->second->scheme != layer.scheme));
    const bool scaled = inside ? same != layers.end() : there.contains(set.names[*scales]);
    if (!respelled && (scaled || !there.contains(set.names[count + i]))) {
      set.written[count + i] = false;
      continue;
    }
    for (const quantized::Part& part : layer.parts) set.written[part.tensor] = false;
  }
}

// Gives an array without a name that of the only tensor of the other file, or of its own file.
void name_array(TensorSet& set, const TensorSet& other) {
  if (!set.is_one_array() || other.is_one_array()) return;
  set.names.front() = other.names.size() == 1 ? other.names.front() : std::filesystem::path(set.path).stem().string();
}

bool has_numbers(const TensorInfo& tensor) {
  return is_castable(tensor.dtype) && tensor.dtype != DType::string && tensor.count != 0;
}

class TensorComparison {
 public:
  TensorComparison(TensorSet& a, TensorSet& b, file_conversion::ProgressMeter& meter)
      : a_(a), b_(b), meter_(meter), raw_(block), values_a_(block), values_b_(block) {}

  // Returns false when cancelled.
  Result<bool> run(std::size_t in_a, std::size_t in_b, TensorDifference& result) {
    const TensorInfo& a = a_.info(in_a);
    const TensorInfo& b = b_.info(in_b);
    for (const TensorInfo* tensor : {&a, &b}) {
      if (tensor->problem) return *tensor->problem;
    }
    const bool numbers = has_numbers(a) && has_numbers(b);
    result.count = a.count;
    result.equal = a.dtype == b.dtype && a.foreign_dtype == b.foreign_dtype && a.shape == b.shape;
    if (a.shape != b.shape || (!numbers && !result.equal)) return true;
    if (a.dtype == DType::string) return compare_strings(in_a, in_b, result);
    if (!numbers) return compare_bytes(in_a, in_b, result);
    file_conversion::NumberDifference found;
    const std::uint64_t per_block = block / sizeof(double) / 64 * 64;
    for (std::uint64_t first = 0; first < a.count; first += per_block) {
      const auto count = static_cast<std::size_t>(std::min(per_block, a.count - first));
      TRY(load(a_.reader(), in_a, first, count, values_a_));
      const auto* const x = reinterpret_cast<const double*>(values_a_.span().data());
      TRY(load(b_.reader(), in_b, first, count, values_b_));
      const auto* const y = reinterpret_cast<const double*>(values_b_.span().data());
      for (std::size_t i = 0; i < count; ++i) found.add(x[i], y[i]);
      const std::uint64_t moved = storage_bytes(a.dtype, count) + storage_bytes(b.dtype, count);
      if (!meter_.advance(moved, a.name)) return false;
    }
    found.fill(result);
    result.equal = result.equal && found.different == 0;
    return true;
  }

 private:
  static constexpr std::size_t block = std::size_t{1} << 20;

  // Loads elements as float64.
  Result<void> load(formats::Reader& reader, std::size_t index, std::uint64_t first, std::size_t count,
                    const file_conversion::AlignedBuffer& values) {
    const DType dtype = reader.tensors()[index].dtype;
    const auto source = raw_.span().first(storage_bytes(dtype, count));
    TRY(reader.read(index, storage_bytes(dtype, first), source));
    const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
    return cast({dtype, shape, source}, {DType::float64, shape, values.span().first(count * sizeof(double))});
  }

  Result<bool> compare_strings(std::size_t in_a, std::size_t in_b, TensorDifference& result) {
    const auto read = [&](TensorSet& set, std::size_t index) {
      return formats::read_all_strings(set.reader(), index, io::MemoryBudget(set.info(index).bytes));
    };
    const StringBuffer a = TRY(read(a_, in_a));
    const StringBuffer b = TRY(read(b_, in_b));
    result.equal = a.offsets == b.offsets && a.data == b.data;
    return meter_.advance(a_.info(in_a).bytes + b_.info(in_b).bytes, result.name);
  }

  Result<bool> compare_bytes(std::size_t in_a, std::size_t in_b, TensorDifference& result) {
    const std::uint64_t total = a_.info(in_a).bytes;
    for (std::uint64_t offset = 0; offset < total; offset += block) {
      const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(block, total - offset));
      TRY(a_.reader().read(in_a, offset, values_a_.span().first(bytes)));
      TRY(b_.reader().read(in_b, offset, values_b_.span().first(bytes)));
      if (std::memcmp(values_a_.span().data(), values_b_.span().data(), bytes) != 0) result.equal = false;
      if (!meter_.advance(2 * bytes, result.name)) return false;
    }
    return true;
  }

  TensorSet& a_;
  TensorSet& b_;
  file_conversion::ProgressMeter& meter_;
  file_conversion::AlignedBuffer raw_;
  file_conversion::AlignedBuffer values_a_;
  file_conversion::AlignedBuffer values_b_;
};

Result<DiffOutcome> diff(const DiffRequest& request) {
  file_conversion::PatternList include = TRY(file_conversion::PatternList::compile(request.include));
  TensorSet a = TRY(open_set(request.a, request.filter));
  TensorSet b = TRY(open_set(request.b));
  name_array(a, b);
  name_array(b, a);
  choose_layers(a, b);
  choose_layers(b, a);
  std::unordered_map<std::string_view, std::size_t> in_b;
  for (std::size_t i = 0; i < b.names.size(); ++i) {
    if (b.written[i]) in_b.emplace(b.names[i], i);
  }
  const auto chosen = [&](const std::string& name) { return request.include.empty() || include.matches(name); };

  DiffOutcome outcome;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // in a, in b if it is there
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < a.names.size(); ++i) {
    const TensorInfo& info = a.info(i);
    const auto found = a.written[i] ? in_b.find(a.names[i]) : in_b.end();
    const bool wanted = a.written[i] && chosen(a.names[i]);
    std::optional<std::size_t> other;
    if (found != in_b.end()) {
      other = found->second;
      in_b.erase(found);
    }
    if (!wanted) continue;
    TensorDifference& tensor = outcome.tensors.emplace_back();
    tensor.name = a.names[i];
    tensor.from = info.dtype;
    tensor.from_shape = info.shape;
    tensor.in_b = other.has_value();
    pairs.emplace_back(i, other.value_or(0));
    if (!other) continue;
    const TensorInfo& compared = b.info(*other);
    tensor.to = compared.dtype;
    tensor.to_shape = compared.shape;
    tensor.equal =
        info.dtype == compared.dtype && info.foreign_dtype == compared.foreign_dtype && info.shape == compared.shape;
    bytes += info.bytes + compared.bytes;
  }
  const std::size_t common = outcome.tensors.size();
  for (std::size_t i = 0; i < b.names.size(); ++i) {
    const auto found = in_b.find(b.names[i]);
    if (found == in_b.end() || found->second != i || !chosen(b.names[i])) continue;
    TensorDifference& tensor = outcome.tensors.emplace_back();
    tensor.name = b.names[i];
    tensor.to = b.info(i).dtype;
    tensor.to_shape = b.info(i).shape;
    tensor.in_a = false;
  }
  TRY(include.check_all_matched("include"));
  if (request.headers_only) return outcome;
  file_conversion::ProgressMeter meter(request.on_progress, bytes);
  TensorComparison comparison(a, b, meter);
  for (std::size_t i = 0; i < common; ++i) {
    if (!outcome.tensors[i].in_b) continue;
    const bool compared =
        TRY(at_tensor(outcome.tensors[i].name, comparison.run(pairs[i].first, pairs[i].second, outcome.tensors[i])));
    if (!compared) return in_file(request.a, cancelled("cancelled"));
  }
  return outcome;
}

}  // namespace

Result<CheckpointSummary> inspect_checkpoint(const std::string& path) {
  return guarded(path, [&]() -> Result<CheckpointSummary> {
    SourceCheckpoint checkpoint = TRY(read_source(path));
    CheckpointSummary summary;
    // In the root of a model of Hugging Face's cache, files are in a snapshot.
    const Result<std::string> real = real_path(path);
    const bool below = real && is_folder(*real) && checkpoint.folder.starts_with(*real + "/");
    const std::string prefix = below ? checkpoint.folder.substr(real->size() + 1) + "/" : std::string();
    for (const SourceModel& model : checkpoint.models) {
      if (!model.index.empty()) summary.indexes.push_back(prefix + model.index);
      for (const std::size_t index : model.shards) {
        const SourceShard& shard = checkpoint.shards[index];
        summary.shards.push_back({.name = prefix + shard.name,
                                  .bytes = shard.bytes,
                                  .tensors = shard.header.tensors.size(),
                                  .metadata = shard.header.metadata});
        for (const TensorInfo& tensor : shard.header.tensors) {
          summary.tensors.push_back({.summary = {.name = tensor.name,
                                                 .dtype = tensor.dtype,
                                                 .shape = tensor.shape,
                                                 .bytes = tensor.bytes,
                                                 .foreign_dtype = tensor.foreign_dtype},
                                     .file = prefix + shard.name,
                                     .full_name = name_prefix(model) + tensor.name,
                                     .kind = tensor_kind(tensor.name, tensor.shape.size())});
        }
      }
    }
    for (const SourceModel& model : checkpoint.models) {
      const OpenedModel opened = open_model(checkpoint, model);
      formats::Reader& reader = *opened.input.reader;
      const quantized::FoundLayers found = opened.layers();
      for (QuantizedLayer& layer : quantized::summary_of(found, reader.tensors(), name_prefix(model))) {
        summary.layers.push_back(std::move(layer));
      }
      if (!opened.unread.empty()) summary.warnings.push_back(name_prefix(model) + opened.unread);
      const quantized::ScaleRemarks remarks = quantized::scale_remarks(found, reader);
      for (const std::string& warning : remarks.warnings) summary.warnings.push_back(name_prefix(model) + warning);
      for (const std::string& note : remarks.notes) summary.notes.push_back(name_prefix(model) + note);
    }
    for (const ListedFile& file : checkpoint.others) {
      summary.other_files.push_back({.name = prefix + file.name, .bytes = file.bytes, .tensors = 0, .metadata = {}});
    }
    return summary;
  });
}

Result<DiffOutcome> diff_checkpoints(const DiffRequest& request) {
  return guarded(request.a, [&] { return diff(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
