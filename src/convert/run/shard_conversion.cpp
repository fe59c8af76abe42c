// SPDX-License-Identifier: Apache-2.0
#include "convert/run/shard_conversion.hpp"

#include <algorithm>
#include <optional>

#include "convert/run/transfer.hpp"
#include "convert/run/verify.hpp"
#include "dtype/error_places.hpp"
#include "dtype/try.hpp"
#include "quantized/rewrite/damage.hpp"

namespace tensorcast::file_conversion {
namespace {

bool measures_losses(const ConversionSettings& settings) noexcept {
  return settings.report || settings.on_loss != OnLoss::ignore || settings.refuse_zeroed;
}

}  // namespace

Result<ShardConversion> ShardConversion::create(const ConversionRun& run, std::span<PlannedTensor* const> tensors,
                                                formats::Reader& stored, quantized::LoadLayer load) {
  ShardConversion conversion(run, tensors, stored);
  TRY(conversion.read_decoded(tensors, load));
  conversion.read_rewritten(tensors, std::move(load));
  return conversion;
}

Result<void> ShardConversion::read_decoded(std::span<PlannedTensor* const> tensors, const quantized::LoadLayer& load) {
  std::vector<quantized::Layer> layers;
  for (const PlannedTensor* tensor : tensors) {
    if (tensor->decodes()) layers.push_back(TRY(load(tensor->decoded()->layer)).layer);
  }
  if (layers.empty()) return {};
  std::size_t layer = 0, source = source_->tensors().size();
  decoded_ = std::make_unique<quantized::DecodedReader>(*source_, std::move(layers));
  for (PlannedTensor* tensor : tensors) {
    if (!tensor->decodes()) continue;
    tensor->source = source++;
    // In its target's type, if the reader knows it.
    const DType to = tensor->target.dtype;
    auto& fate = std::get<Decoded>(tensor->fate);
    if (quantized::DecodedReader::rounds_to(to)) fate.rounded = decoded_->add_rounded(layer, to);
    ++layer;
  }
  source_ = decoded_.get();
  return {};
}

void ShardConversion::read_rewritten(std::span<PlannedTensor* const> tensors, quantized::LoadLayer load) {
  const auto is_rewritten = [](const PlannedTensor* tensor) { return tensor->rewritten() != nullptr; };
  if (std::ranges::none_of(tensors, is_rewritten)) return;
  respelled_ = std::make_unique<quantized::RespelledReader>(*source_, run_->execution, std::move(load));
  if (measures_losses(*run_)) respelled_->measure_losses();
  for (PlannedTensor* tensor : tensors) {
    if (const Rewritten* fate = tensor->rewritten()) {
      tensor->source = respelled_->add(tensor->target, fate->layer, fate->place);
    }
  }
  source_ = respelled_.get();
}

Result<bool> ShardConversion::run(ShardOutput& output) {
  ProgressMeter progress(run_->on_progress, work_bytes());
  const Result<formats::Writer*> writer = output.begin(progress);
  if (!writer) return output.at_output(writer.error());
  const Result<bool> written = write(**writer, progress, output.hash());
  if (!written) return output.at_source(written.error());
  if (!*written) return false;
  if (const Result<void> finished = (*writer)->finish(); !finished) return output.at_output(finished.error());
  if (run_->verify) {
    const Result<formats::Reader*> back = output.read_back();
    if (!back) return output.at_output(back.error());
    const Result<bool> verified = verify(*run_, tensors_, *source_, **back, progress);
    if (!verified) return output.at_output(verified.error());
    if (!*verified) return false;
  }
  if (const Result<void> committed = output.commit(progress); !committed) return output.at_output(committed.error());
  return true;
}

Result<bool> ShardConversion::write(formats::Writer& writer, ProgressMeter& progress, io::Sha256* hash) {
  if (!TRY(transfer(*run_, tensors_, *source_, writer, progress, notes_, hash))) return false;
  TRY(note_losses());
  return true;
}

// Notes what weights lost that were quantized.
Result<void> ShardConversion::note_losses() {
  if (respelled_ == nullptr || !measures_losses(*run_)) return {};
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const PlannedTensor& tensor = *tensors_[i];
    if (tensor.rewritten() == nullptr) continue;
    const std::optional<quantized::QuantizedLoss> loss = respelled_->loss(tensor.source);
    if (!loss) continue;
    if (run_->report) notes_[i].report = loss->report;
    std::optional<Damage> damage = find_quantizing_damage(loss->report, loss->nonzero, loss->was_finite);
    TRY(of_tensor(tensor.name(), note_damage(*run_, std::move(damage), i, notes_)));
  }
  return {};
}

// The bytes that it adds to the progress.
std::uint64_t ShardConversion::work_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const PlannedTensor* tensor : tensors_) bytes += tensor->bytes_in + tensor->target.bytes;
  return run_->verify ? 2 * bytes : bytes;
}

}  // namespace tensorcast::file_conversion
