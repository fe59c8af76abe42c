// SPDX-License-Identifier: Apache-2.0
#include "convert/run/quantized_losses.hpp"

#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"

namespace tensorcast::file_conversion {

bool measures_losses(const ConversionSettings& settings) noexcept {
  return settings.report || settings.on_loss != OnLoss::ignore;
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
    if (settings.on_loss == OnLoss::ignore) continue;
    std::optional<Damage> damage = find_quantizing_damage(loss->report, loss->nonzero);
    if (damage && settings.on_loss == OnLoss::fail) {
      return of_tensor(tensor.name(), out_of_range(std::move(damage->what), std::move(damage->remedy)));
    }
    outcome.damages[i] = std::move(damage);
  }
  return {};
}

}  // namespace tensorcast::file_conversion
