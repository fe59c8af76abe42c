// SPDX-License-Identifier: Apache-2.0
#include "convert/run/shard_conversion.hpp"

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

ShardConversion::ShardConversion(const ConversionRun& run, std::span<PlannedTensor* const> tensors,
                                 ConversionSource source)
    : run_(&run), tensors_(tensors.begin(), tensors.end()), source_(std::move(source)) {
  if (measures_losses(run)) source_.measure_losses();
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
    const Result<bool> verified = verify(*run_, tensors_, source_.reader(), **back, progress);
    if (!verified) return output.at_output(verified.error());
    if (!*verified) return false;
  }
  if (const Result<void> committed = output.commit(progress); !committed) return output.at_output(committed.error());
  return true;
}

Result<bool> ShardConversion::write(formats::Writer& writer, ProgressMeter& progress, io::Sha256* hash) {
  if (!TRY(transfer(*run_, tensors_, source_.reader(), writer, progress, notes_, hash))) return false;
  TRY(note_losses());
  return true;
}

// Notes what weights lost that were quantized.
Result<void> ShardConversion::note_losses() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const PlannedTensor& tensor = *tensors_[i];
    const std::optional<quantized::QuantizedLoss> loss = source_.loss(tensor);
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
