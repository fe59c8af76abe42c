// How far two tensors are apart, as cells of a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "report_json.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {

// For columns of elements that differ, largest absolute and relative error, and SNR. `tensor` was compared.
[[nodiscard]] std::vector<std::string> difference_cells(const tensorcast::TensorDifference& tensor);
// Adds the same numbers to `entry`. `tensor` was compared.
void add_difference(Json& entry, const tensorcast::TensorDifference& tensor);

}  // namespace tcast
