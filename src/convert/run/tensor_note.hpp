// SPDX-License-Identifier: Apache-2.0
// What a conversion says of a tensor when it is done, as TensorOutcome has it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "dtype/try.hpp"
#include "quantized/rewrite/damage.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

struct TensorNote {
  std::optional<CastReport> report = {};
  std::string damage = {}, remedy = {};

  void move_to(TensorOutcome& tensor) {
    tensor.report = report;
    tensor.damage = std::move(damage);
    tensor.remedy = std::move(remedy);
  }
};

// Of tensors, by their places in the output's data, if there is something to say.
using TensorNotes = std::map<std::size_t, TensorNote>;

// Notes a damage that is to be told. Errors: out_of_range: the settings refuse it.
[[nodiscard]] inline Result<void> note_damage(const ConversionSettings& settings, std::optional<Damage> damage,
                                              std::size_t tensor, TensorNotes& notes) {
  std::optional<Damage> told = TRY(judge(settings, std::move(damage)));
  if (!told) return {};
  notes[tensor].damage = std::move(told->what);
  notes[tensor].remedy = std::move(told->remedy);
  return {};
}

}  // namespace tensorcast::file_conversion
