// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/run_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "checkpoint/source/shard_reader.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/run/quantized_losses.hpp"
#include "convert/run/transfer.hpp"
#include "convert/run/verify.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/sha256.hpp"
#include "quantized/rewrite/respelled_reader.hpp"

namespace tensorcast::checkpoint {
namespace {

class ShardWriter final : public formats::Writer {
 public:
  explicit ShardWriter(NewFile& sink) : sink_(sink) {}

  Result<void> append(std::span<const std::byte> bytes) override { return sink_.append(bytes); }
  Result<void> finish() override { return {}; }

 private:
  NewFile& sink_;
};

// Compares what is appended with a file that is there.
class ComparingWriter final : public formats::Writer {
 public:
  explicit ComparingWriter(const StoredFile& written) : written_(written) {}

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
  Result<void> finish() override { return {}; }

  // The first byte that differs; none so far.
  [[nodiscard]] std::optional<std::uint64_t> differs_at() const noexcept { return differs_at_; }

 private:
  const StoredFile& written_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> there_;
  std::optional<std::uint64_t> differs_at_;
};

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

class ShardRun {
 public:
  // `folder`: null: nothing is written.
  ShardRun(const CheckpointPlan& plan, const PlannedShard& shard, const WorkFolder* folder, const Execution& execution,
           const std::function<bool(const Progress&)>& on_progress)
      : plan_(plan),
        shard_(shard),
        folder_(folder),
        run_{plan.settings, execution, on_progress},
        shard_tensors_(plan.tensors_of(shard)) {
    for (const ShardTensor& tensor : shard_tensors_) tensors_.push_back(&tensor.planned);
  }

  Result<std::optional<DoneShard>> run() {
    TRY(open_inputs());
    Result<std::unique_ptr<NewFile>> sink = folder_->files().create_file(WorkFolder::staged(shard_), shard_.bytes);
    if (!sink) return at_output(std::move(sink).error());
    (*sink)->set_mode(mode_);
    ShardWriter writer(**sink);
    io::Sha256 hash;
    const Result<std::string> header = this->header();
    if (!header) return at_output(header.error());
    if (Result<void> put = writer.append(std::as_bytes(std::span(*header))); !put) {
      return at_output(std::move(put).error());
    }
    hash.update(*header);
    file_conversion::ProgressMeter meter(run_.on_progress, work_bytes(plan_, shard_));
    Result<file_conversion::TransferOutcome> moved =
        file_conversion::transfer(run_, tensors_, source(), writer, meter, &hash);
    if (!moved) return at_source(std::move(moved).error());
    if (moved->cancelled) return std::optional<DoneShard>();
    if (respelled_ != nullptr) {
      Result<void> measured = file_conversion::add_quantized_losses(run_, tensors_, *respelled_, *moved);
      if (!measured) return at_source(std::move(measured).error());
    }
    if (plan_.settings.verify) {
      Result<bool> verified = verify(**sink, header->size(), meter);
      if (!verified) return at_output(std::move(verified).error());
      if (!*verified) return std::optional<DoneShard>();
    }
    TRY(check_inputs());
    TRY(folder_->check_identity());
    if (Result<void> committed = (*sink)->commit(); !committed) return at_output(std::move(committed).error());
    DoneShard done{.sha256 = hash.digest(),
                   .bytes = shard_.bytes,
                   .fingerprint = shard_.fingerprint,
                   .tensors = tensors_.size(),
                   .notes = {}};
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!moved->reports[i] && !moved->damages[i]) continue;
      TensorOutcome tensor;
      moved->move_to(tensor, i);
      done.notes.emplace(
          i,
          TensorNote{.report = tensor.report, .damage = std::move(tensor.damage), .remedy = std::move(tensor.remedy)});
    }
    TRY(folder_->set_done(shard_, done));
    return std::optional(std::move(done));
  }

  Result<std::string> compare(const StoredFile& written) {
    TRY(open_inputs());
    const std::string header = TRY(this->header());
    ComparingWriter writer(written);
    io::Sha256 hash;
    hash.update(header);
    if (!writer.append(std::as_bytes(std::span(header)))) return difference(writer, header.size(), written);
    file_conversion::ProgressMeter meter(run_.on_progress, work_bytes(plan_, shard_));
    Result<file_conversion::TransferOutcome> moved =
        file_conversion::transfer(run_, tensors_, source(), writer, meter, &hash);
    if (writer.differs_at()) return difference(writer, header.size(), written);
    if (!moved) return at_source(std::move(moved).error());
    if (moved->cancelled) return Error{.code = ErrorCode::cancelled, .message = "cancelled"};
    if (written.size() != shard_.bytes) {
      return in_file(written.path(), internal_error(fmt::format("the file has {} bytes, and the conversion makes {}",
                                                                written.size(), shard_.bytes)));
    }
    TRY(check_inputs());
    return hash.digest();
  }

 private:
  // Names the tensor and the block of the first byte that differs.
  [[nodiscard]] Error difference(const ComparingWriter& writer, std::uint64_t header_bytes,
                                 const StoredFile& written) const {
    std::uint64_t at = writer.differs_at().value_or(0);
    if (at < header_bytes) {
      return in_file(written.path(), internal_error(fmt::format("byte {} of the header is not the one that the "
                                                                "conversion makes",
                                                                at)));
    }
    at -= header_bytes;
    std::size_t i = 0;
    while (i + 1 < tensors_.size() && at >= tensors_[i]->target.bytes) at -= tensors_[i++]->target.bytes;
    const formats::TensorInfo& target = tensors_[i]->target;
    Error error = internal_error("its bytes are not those that the conversion makes");
    const ShardTensor& tensor = shard_tensors_[i];
    if (const auto* fate = tensors_[i]->rewritten(); fate != nullptr && tensor.row) {
      const Result<quantized::RespelledLayer> layer = becomes_of(plan_.table, plan_.table.layers[*tensor.row]);
      const quantized::PartRole role = layer ? layer->written().tensors[fate->place].role : quantized::PartRole::state;
      const bool is_scale = role == quantized::PartRole::scales || role == quantized::PartRole::zero_points;
      if (is_scale || role == quantized::PartRole::codes) {
        error.message = fmt::format("its bytes from {} on are not those that the conversion makes, in {}", at,
                                    block_words(layer->becomes, is_scale, at, target.bytes));
      }
    } else if (target.dtype != DType::undefined) {
      error.element = at * 8 / static_cast<std::uint64_t>(bit_width(target.dtype));
    }
    error.tensor = target.name;
    return in_file(written.path(), std::move(error));
  }

  [[nodiscard]] Result<std::string> header() const {
    std::vector<formats::TensorInfo> targets;
    targets.reserve(tensors_.size());
    for (const file_conversion::PlannedTensor* tensor : tensors_) targets.push_back(tensor->target);
    return formats::safetensors::format_header(targets, shard_.metadata);
  }

  // Opens the files of the shard's tensors, which must be those that were planned.
  Result<void> open_inputs() {
    std::vector<quantized::Layer> decoded;
    bool is_written = false;
    for (ShardTensor& tensor : shard_tensors_) {
      if (tensor.row) {
        TRY(add_parts(*tensor.row));
        for (const std::size_t sibling : plan_.table.layers[*tensor.row].siblings) TRY(add_parts(sibling));
        if (tensor.planned.decodes()) {
          decoded.push_back(layer_of(*tensor.row));
        } else {
          is_written = true;
        }
        continue;
      }
      formats::TensorInfo info = tensor.planned.target;
      if (tensor.planned.from != DType::undefined) info.dtype = tensor.planned.from;
      info.bytes = tensor.planned.bytes_in;
      tensor.planned.source = reader_.tensors().size();
      TRY(add_range(std::move(info), tensor.input, tensor.begin));
    }
    if (!decoded.empty()) {
      std::size_t source = reader_.tensors().size(), layer = 0;
      decoded_ = std::make_unique<quantized::DecodedReader>(reader_, std::move(decoded));
      for (ShardTensor& tensor : shard_tensors_) {
        if (!tensor.planned.decodes()) continue;
        tensor.planned.source = source++;
        add_rounded_source(tensor.planned, layer++, *decoded_);
      }
    }
    if (!is_written) return {};
    respelled_ = std::make_unique<quantized::RespelledReader>(source(), run_.execution,
                                                              [this](std::size_t row) { return load(row); });
    if (file_conversion::measures_losses(run_)) respelled_->measure_losses();
    for (ShardTensor& tensor : shard_tensors_) {
      if (!tensor.row || tensor.planned.decodes()) continue;
      tensor.planned.source = respelled_->add(tensor.planned.target, *tensor.row, tensor.planned.rewritten()->place);
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
    source.becomes = std::make_shared<const quantized::RespelledLayer>(TRY(becomes_of(plan_.table, planned)));
    return source;
  }

  Result<void> add_range(formats::TensorInfo info, std::size_t input, std::uint64_t begin) {
    if (!files_.contains(input)) {
      files_.emplace(input, TRY(open_input(plan_.inputs[input])));
    }
    reader_.add_tensor(std::move(info), files_.at(input), begin);
    return {};
  }

  formats::Reader& source() noexcept {
    if (respelled_ != nullptr) return *respelled_;
    return decoded_ != nullptr ? *decoded_ : static_cast<formats::Reader&>(reader_);
  }

  Result<std::size_t> open_input(const PlannedInput& input) {
    std::unique_ptr<StoredFile> source = TRY(reopen(plan_.source, input.name, input.bytes, input.version));
    const Result<formats::safetensors::FileHeader> header = formats::safetensors::read_file_header(
        source->size(), [&](std::uint64_t offset, std::span<std::byte> out) { return source->read(offset, out); });
    if (!header || io::sha256_of(header->json) != input.header_sha256 || header->data_begin != input.data_begin) {
      return changed_since_planned(source->path());
    }
    const unsigned mode = source->mode();
    mode_ = files_.empty() ? mode : mode_ & mode;  // nobody may read who could not read all of it before
    return reader_.add_file(
        {.folder = plan_.source, .name = input.name, .bytes = input.bytes, .version = input.version});
  }

  // Checks that no input was written meanwhile.
  Result<void> check_inputs() const {
    for (const auto& [input, file] : files_) {
      const PlannedInput& planned = plan_.inputs[input];
      const auto source = TRY(reopen(plan_.source, planned.name, planned.bytes, planned.version));
    }
    return {};
  }

  Result<bool> verify(NewFile& sink, std::uint64_t header_bytes, file_conversion::ProgressMeter& meter) {
    std::unique_ptr<StoredFile> written = TRY(sink.read_back());
    ShardReader output;
    const std::size_t file = output.add_open_file(std::move(written));
    std::uint64_t begin = header_bytes;
    for (const ShardTensor& tensor : shard_tensors_) {
      output.add_tensor(tensor.planned.target, file, begin);
      begin += tensor.planned.target.bytes;
    }
    return file_conversion::verify(run_, tensors_, source(), output, meter);
  }

  [[nodiscard]] std::string staged_path() const { return folder_->files().path_of(WorkFolder::staged(shard_)); }

  [[nodiscard]] Error at_output(Error error) const {
    if (error.file.empty() || error.file == staged_path()) error.file = folder_->files().path_of(shard_.name);
    return error;
  }

  [[nodiscard]] Error at_source(Error error) const {
    if (folder_ != nullptr && error.file == staged_path()) return at_output(std::move(error));
    for (const ShardTensor& tensor : shard_tensors_) {
      if (!error.file.empty()) break;
      if (tensor.planned.name() == error.tensor) error.file = plan_.source + "/" + plan_.inputs[tensor.input].name;
      if (!tensor.row) continue;
      name_file_of(*tensor.row, error);
      for (const std::size_t sibling : plan_.table.layers[*tensor.row].siblings) name_file_of(sibling, error);
    }
    return error;
  }

  // Names the file of a layer's tensor that is at fault.
  void name_file_of(std::size_t row, Error& error) const {
    const DecodedLayer layer = source_of(plan_.table, plan_.table.layers[row]);
    for (std::size_t i = 0; i < layer.parts.size(); ++i) {
      const LayerPart& part = layer.parts[i];
      const bool has_codes = layer.layer.name == error.tensor && i == layer.layer.codes();
      if (!has_codes && part.info.name != error.tensor) continue;
      error.file = plan_.source + "/" + plan_.inputs[part.input].name;
    }
  }

  const CheckpointPlan& plan_;
  const PlannedShard& shard_;
  const WorkFolder* folder_;
  ConversionRun run_;
  std::vector<ShardTensor> shard_tensors_;  // in the order of the data; their sources are those of source()
  std::vector<const file_conversion::PlannedTensor*> tensors_;  // the same
  std::map<std::size_t, std::size_t> parts_;                    // of a row of the plan: the first tensor of the reader
  ShardReader reader_;
  std::unique_ptr<quantized::DecodedReader> decoded_;      // of reader_, if layers are decoded
  std::unique_ptr<quantized::RespelledReader> respelled_;  // of these, if layers get another spelling or scheme
  unsigned mode_ = 0;                                      // of the output
  std::map<std::size_t, std::size_t> files_;               // input of the plan, file of the reader
};

}  // namespace

std::uint64_t work_bytes(const CheckpointPlan& plan, const PlannedShard& shard) noexcept {
  const std::uint64_t bytes = shard.bytes_in + shard.tensor_bytes;
  return plan.settings.verify ? 2 * bytes : bytes;
}

Result<std::optional<DoneShard>> run_shard(const CheckpointPlan& plan, std::size_t index, const WorkFolder& folder,
                                           const Execution& execution,
                                           const std::function<bool(const Progress&)>& on_progress) {
  return ShardRun(plan, plan.shards[index], &folder, execution, on_progress).run();
}

Result<std::string> compare_shard(const CheckpointPlan& plan, std::size_t index, const StoredFile& written,
                                  const Execution& execution, const std::function<bool(const Progress&)>& on_progress) {
  return ShardRun(plan, plan.shards[index], nullptr, execution, on_progress).compare(written);
}

}  // namespace tensorcast::checkpoint
