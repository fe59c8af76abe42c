// SPDX-License-Identifier: Apache-2.0
#include "convert/run/quantized_losses.hpp"

#include <utility>

#include "dtype/error_places.hpp"

namespace tensorcast::file_conversion {

bool measures_losses(const ConversionSettings& settings) noexcept {
  return settings.report || settings.on_loss != OnLoss::ignore || settings.refuse_zeroed;
}

Result<void> add_quantized_losses(const ConversionSettings& settings, std::span<const PlannedTensor* const> tensors,
                                  quantized::RespelledReader& reader, TransferOutcome& outcome) {
  if (!measures_losses(settings)) return {};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const PlannedTensor& tensor = *tensors[i];
    if (tensor.rewritten() == nullptr) continue;
    const std::optional<quantized::QuantizedLoss> loss = reader.loss(tensor.source);
    if (!loss) continue;
    if (settings.report) outcome.reports[i] = loss->report;
    Result<std::optional<Damage>> damage =
        judge(settings, find_quantizing_damage(loss->report, loss->nonzero, loss->was_finite));
    if (!damage) return of_tensor(tensor.name(), std::move(damage).error());
    outcome.damages[i] = *std::move(damage);
  }
  return {};
}

}  // namespace tensorcast::file_conversion
