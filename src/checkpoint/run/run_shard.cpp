// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/run_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "checkpoint/source/shard_reader.hpp"
#include "convert/run/shard_conversion.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

// Returns the block of an element of a weight's codes, or of a scale.
std::string block_words(const quantized::LayerContent& content, bool is_scale, std::uint64_t at, std::uint64_t bytes) {
  const std::uint64_t columns = is_scale ? content.grid_columns() : content.columns();
  const std::uint64_t rows = is_scale ? content.grid_rows() : content.rows();
  const double share = static_cast<double>(at) / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
  const auto element = static_cast<std::uint64_t>(share * static_cast<double>(rows * columns));
  if (columns == 0) return "";
  const auto size = [&](std::int64_t block, std::uint64_t all) {
    if (is_scale) return std::uint64_t{1};
    return block == 0 ? std::max<std::uint64_t>(all, 1) : static_cast<std::uint64_t>(block);
  };
  return fmt::format("block {} of row {} of blocks", element % columns / size(content.block_columns, columns),
                     element / columns / size(content.block_rows, rows));
}

// A shard, from its inputs to where it goes: its header, then its data, all of it hashed.
class ShardRun : public file_conversion::ShardOutput, public formats::Writer {
 public:
  Result<formats::Writer*> begin(file_conversion::ProgressMeter& /*progress*/) final {
    TRY(create());
    std::vector<formats::TensorInfo> targets;
    for (const ShardTensor& tensor : tensors_) targets.push_back(tensor.planned.target);
    const std::string header = TRY(formats::safetensors::format_header(targets, shard_.metadata));
    header_bytes_ = header.size();
    hash_.update(header);
    TRY(append(std::as_bytes(std::span(header))));
    return this;
  }
  Result<void> finish() final { return {}; }
  io::Sha256* hash() noexcept final { return &hash_; }
  // Names the file of the tensor that the error names.
  [[nodiscard]] Error at_source(Error error) const override {
    for (const ShardTensor& tensor : tensors_) {
      if (!error.file.empty()) break;
      if (tensor.planned.name() == error.tensor) error.file = path_of(tensor.input);
      const std::optional<std::size_t> row = tensor.planned.layer();
      if (!row) continue;
      name_file_of(*row, error);
      for (const std::size_t sibling : plan_.table.layers[*row].siblings) name_file_of(sibling, error);
    }
    return error;
  }

 protected:
  ShardRun(const CheckpointPlan& plan, std::size_t index, const Execution& execution,
           const std::function<bool(const Progress&)>& on_progress)
      : plan_(plan),
        shard_(plan.shards[index]),
        run_{plan.settings, execution, on_progress},
        tensors_(plan.tensors_of(shard_)) {}

  // Returns false when cancelled.
  Result<bool> convert(file_conversion::TensorNotes& notes) {
    TRY(open_inputs());
    std::vector<file_conversion::PlannedTensor*> tensors;
    for (ShardTensor& tensor : tensors_) tensors.push_back(&tensor.planned);
    file_conversion::ShardConversion conversion(
        run_, tensors,
        TRY(file_conversion::ConversionSource::create(
            tensors, reader_, [this](std::size_t row) { return load(row); }, run_.execution)));
    const bool is_complete = TRY(conversion.run(*this));
    notes = conversion.take_notes();
    return is_complete;
  }

  // Opens the place that the shard goes to.
  [[nodiscard]] virtual Result<void> create() { return {}; }

  // Checks that no input was written meanwhile.
  [[nodiscard]] Result<void> check_inputs() const {
    for (const auto& [input, file] : files_) TRY(reopen(plan_.source, plan_.inputs[input]));
    return {};
  }

 private:
  // Opens the files of the shard's tensors, which must be those that were planned.
  Result<void> open_inputs() {
    for (ShardTensor& tensor : tensors_) {
      file_conversion::PlannedTensor& planned = tensor.planned;
      if (const std::optional<std::size_t> row = planned.layer()) {
        TRY(add_parts(*row));
        for (const std::size_t sibling : plan_.table.layers[*row].siblings) TRY(add_parts(sibling));
        continue;
      }
      formats::TensorInfo info = planned.target;
      if (planned.from != DType::undefined) info.dtype = planned.from;
      info.bytes = planned.bytes_in;
      planned.source = reader_.tensors().size();
      TRY(add_range(std::move(info), tensor.input, tensor.begin));
    }
    return {};
  }

  // Adds the tensors of a layer to the reader, once.
  Result<void> add_parts(std::size_t row) {
    if (!parts_.emplace(row, reader_.tensors().size()).second) return {};
    for (LayerPart& part : source_of(plan_.table, plan_.table.layers[row]).parts) {
      TRY(add_range(std::move(part.info), part.input, part.begin));
    }
    return {};
  }

  Result<void> add_range(formats::TensorInfo info, std::size_t input, std::uint64_t begin) {
    if (!files_.contains(input)) files_.emplace(input, TRY(open_input(plan_.inputs[input])));
    reader_.add_tensor(std::move(info), files_.at(input), begin);
    return {};
  }

  Result<std::size_t> open_input(const SourceFile& input) {
    const StoredFile source = TRY(reopen(plan_.source, input));
    const Result<formats::safetensors::FileHeader> header = formats::safetensors::read_file_header(
        source.size(), [&](std::uint64_t offset, std::span<std::byte> out) { return source.read(offset, out); });
    if (!header || io::sha256_of(header->json) != input.header_sha256 || header->data_begin != input.data_begin) {
      return changed_since_planned(source.path());
    }
    mode_ = files_.empty() ? source.mode() : mode_ & source.mode();
    return reader_.add_file(plan_.source, input);
  }

  // Returns a layer whose tensors were added.
  [[nodiscard]] quantized::Layer layer_of(std::size_t row) const {
    quantized::Layer layer = source_of(plan_.table, plan_.table.layers[row]).layer;
    for (quantized::Part& part : layer.parts) part.tensor += parts_.at(row);
    return layer;
  }

  [[nodiscard]] Result<quantized::RespelledSource> load(std::size_t row) const {
    const PlannedLayer& planned = plan_.table.layers[row];
    quantized::RespelledSource source{.layer = layer_of(row), .siblings = {}, .becomes = {}};
    for (const std::size_t sibling : planned.siblings) source.siblings.push_back(layer_of(sibling));
    if (std::holds_alternative<DecodingRule>(plan_.table.rules[planned.rule].fate)) return source;
    source.becomes = std::make_shared<const quantized::RespelledLayer>(TRY(becomes_of(plan_.table, planned)));
    return source;
  }

  // Names the file of a layer's tensor that is at fault.
  void name_file_of(std::size_t row, Error& error) const {
    const SourceLayer layer = source_of(plan_.table, plan_.table.layers[row]);
    for (std::size_t i = 0; i < layer.parts.size(); ++i) {
      const LayerPart& part = layer.parts[i];
      const bool has_codes = layer.layer.name == error.tensor && i == layer.layer.codes();
      if (has_codes || part.info.name == error.tensor) error.file = path_of(part.input);
    }
  }

  [[nodiscard]] std::string path_of(std::size_t input) const { return plan_.source + "/" + plan_.inputs[input].name; }

  ShardReader reader_;
  std::map<std::size_t, std::size_t> parts_;  // of a row of the plan: the first tensor of the reader
  std::map<std::size_t, std::size_t> files_;  // input of the plan, file of the reader

 protected:
  const CheckpointPlan& plan_;
  const PlannedShard& shard_;
  ConversionRun run_;
  std::vector<ShardTensor> tensors_;  // in the order of the data
  unsigned mode_ = 0;                 // of the output: nobody may read it who could not read all of the inputs
  std::uint64_t header_bytes_ = 0;
  io::Sha256 hash_;
};

// A shard that waits for its place in a work folder.
class StagedShard final : public ShardRun {
 public:
  StagedShard(const CheckpointPlan& plan, std::size_t index, const WorkFolder& folder, const Execution& execution,
              const std::function<bool(const Progress&)>& on_progress)
      : ShardRun(plan, index, execution, on_progress), folder_(folder) {}

  Result<std::optional<DoneShard>> run() {
    file_conversion::TensorNotes notes;
    if (!TRY(convert(notes))) return std::optional<DoneShard>();
    DoneShard done{.sha256 = hash_.digest(),
                   .bytes = shard_.bytes,
                   .fingerprint = shard_.fingerprint,
                   .tensors = tensors_.size(),
                   .notes = std::move(notes)};
    TRY(folder_.set_done(shard_, done));
    return std::optional(std::move(done));
  }

  Result<void> create() override {
    file_ = TRY(folder_.files().create_file(WorkFolder::staged(shard_), shard_.bytes));
    file_->set_mode(mode_);
    return {};
  }
  Result<void> append(std::span<const std::byte> bytes) override { return file_->append(bytes); }

  Result<formats::Reader*> read_back() override {
    const std::size_t file = written_.add_open_file(TRY(file_->read_back()));
    std::uint64_t begin = header_bytes_;
    for (const ShardTensor& tensor : tensors_) {
      written_.add_tensor(tensor.planned.target, file, begin);
      begin += tensor.planned.target.bytes;
    }
    return &written_;
  }

  Result<void> commit(file_conversion::ProgressMeter& /*progress*/) override {
    TRY(check_inputs());
    TRY(folder_.check_identity());
    return file_->commit();
  }

  [[nodiscard]] Error at_source(Error error) const override {
    return is_staged(error.file) ? at_output(std::move(error)) : ShardRun::at_source(std::move(error));
  }
  [[nodiscard]] Error at_output(Error error) const override {
    if (error.file.empty() || is_staged(error.file)) error.file = folder_.files().path_of(shard_.name);
    return error;
  }

 private:
  [[nodiscard]] bool is_staged(const std::string& path) const {
    return path == folder_.files().path_of(WorkFolder::staged(shard_));
  }

  const WorkFolder& folder_;
  std::unique_ptr<NewFile> file_;
  ShardReader written_;
};

// A shard that is compared with a file.
class ComparedShard final : public ShardRun {
 public:
  ComparedShard(const CheckpointPlan& plan, std::size_t index, const StoredFile& written, const Execution& execution,
                const std::function<bool(const Progress&)>& on_progress)
      : ShardRun(plan, index, execution, on_progress), written_(written) {
    run_.verify = false;
  }

  // Returns the SHA-256.
  Result<std::string> run() {
    file_conversion::TensorNotes notes;
    const bool is_complete = TRY(convert(notes));
    if (differs_at_) return difference();
    if (!is_complete) return cancelled("cancelled");
    return hash_.digest();
  }

  Result<void> append(std::span<const std::byte> bytes) override {
    const std::uint64_t left = written_.size() - std::min(written_.size(), position_);
    there_.resize(std::min<std::uint64_t>(bytes.size(), left));
    TRY(written_.read(position_, there_));
    const auto [made, found] = std::mismatch(bytes.begin(), bytes.end(), there_.begin(), there_.end());
    if (made != bytes.end()) {
      differs_at_ = position_ + static_cast<std::uint64_t>(made - bytes.begin());
      return internal_error("the bytes differ");
    }
    position_ += bytes.size();
    return {};
  }

  Result<formats::Reader*> read_back() override { return internal_error("nothing was written"); }
  Result<void> commit(file_conversion::ProgressMeter& /*progress*/) override {
    if (written_.size() != shard_.bytes) {
      return in_file(written_.path(), internal_error(fmt::format("the file has {} bytes, and the conversion makes {}",
                                                                 written_.size(), shard_.bytes)));
    }
    return check_inputs();
  }

  [[nodiscard]] Error at_source(Error error) const override {
    return differs_at_ ? difference() : ShardRun::at_source(std::move(error));
  }
  [[nodiscard]] Error at_output(Error error) const override { return differs_at_ ? difference() : std::move(error); }

 private:
  // Names the tensor and the block of the first byte that differs.
  [[nodiscard]] Error difference() const {
    std::uint64_t at = *differs_at_;
    if (at < header_bytes_) {
      return in_file(written_.path(),
                     internal_error(fmt::format("byte {} of the header is not the one that the conversion makes", at)));
    }
    at -= header_bytes_;
    std::size_t i = 0;
    while (i + 1 < tensors_.size() && at >= tensors_[i].planned.target.bytes) at -= tensors_[i++].planned.target.bytes;
    const file_conversion::PlannedTensor& tensor = tensors_[i].planned;
    Error error = internal_error("its bytes are not those that the conversion makes");
    if (const auto* fate = tensor.rewritten()) {
      const Result<quantized::RespelledLayer> layer = becomes_of(plan_.table, plan_.table.layers[fate->layer]);
      const quantized::PartRole role = layer ? layer->written().tensors[fate->place].role : quantized::PartRole::state;
      const bool is_scale = role == quantized::PartRole::scales || role == quantized::PartRole::zero_points;
      if (is_scale || role == quantized::PartRole::codes) {
        error.message = fmt::format("its bytes from {} on are not those that the conversion makes, in {}", at,
                                    block_words(layer->becomes, is_scale, at, tensor.target.bytes));
      }
    } else if (tensor.target.dtype != DType::undefined) {
      error.element = at * 8 / static_cast<std::uint64_t>(bit_width(tensor.target.dtype));
    }
    error.tensor = tensor.target.name;
    return in_file(written_.path(), std::move(error));
  }

  const StoredFile& written_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> there_;
  std::optional<std::uint64_t> differs_at_;  // the first byte; none so far
};

}  // namespace

std::uint64_t work_bytes(const CheckpointPlan& plan, const PlannedShard& shard) noexcept {
  const std::uint64_t bytes = shard.bytes_in + shard.tensor_bytes;
  return plan.settings.verify ? 2 * bytes : bytes;
}

Result<std::optional<DoneShard>> run_shard(const CheckpointPlan& plan, std::size_t index, const WorkFolder& folder,
                                           const Execution& execution,
                                           const std::function<bool(const Progress&)>& on_progress) {
  return StagedShard(plan, index, folder, execution, on_progress).run();
}

Result<std::string> compare_shard(const CheckpointPlan& plan, std::size_t index, const StoredFile& written,
                                  const Execution& execution, const std::function<bool(const Progress&)>& on_progress) {
  return ComparedShard(plan, index, written, execution, on_progress).run();
}

}  // namespace tensorcast::checkpoint
