// SPDX-License-Identifier: Apache-2.0
// Plans tensors that are not in a file.
#include "convert/plan/file_plan.hpp"
#include "dtype/error_places.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

Result<std::vector<formats::TensorInfo>> infos_of_summaries(std::span<const TensorSummary> tensors) {
  std::vector<formats::TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const TensorSummary& tensor : tensors) {
    const std::size_t count = TRY(of_tensor(tensor.name, element_count(tensor.shape)));
    const bool sized = is_castable(tensor.dtype) && tensor.dtype != DType::string;
    infos.push_back({.name = tensor.name,
                     .dtype = tensor.dtype,
                     .shape = tensor.shape,
                     .count = count,
                     .bytes = sized ? storage_bytes(tensor.dtype, count) : 0,
                     .foreign_dtype = tensor.foreign_dtype});
  }
  return infos;
}

}  // namespace

Result<std::vector<TensorOutcome>> plan_tensors(const ConvertRequest& request, std::span<const TensorSummary> tensors) {
  return guarded([&]() -> Result<std::vector<TensorOutcome>> {
    const std::vector<formats::TensorInfo> infos = TRY(infos_of_summaries(tensors));
    // npz holds many tensors of every type.
    const auto planner = TRY(file_conversion::TensorPlanner::create(request, formats::npz_format, formats::npz_format));
    file_conversion::ModelToPlan model{.tensors = infos};
    const std::vector<file_conversion::PlannedTensor> planned = TRY(planner->plan(model));
    TRY(planner->check_all_planned());
    std::vector<TensorOutcome> outcomes;
    outcomes.reserve(planned.size());
    for (const file_conversion::PlannedTensor& tensor : planned)
      outcomes.push_back(file_conversion::planned_outcome(tensor));
    return outcomes;
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
