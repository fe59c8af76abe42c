#include "difference_text.hpp"

#include <fmt/format.h>

#include "printable.hpp"

namespace tcast {

std::vector<std::string> difference_cells(const tensorcast::TensorDifference& tensor) {
  return {fmt::format("{} of {}", grouped(tensor.different), grouped(tensor.count)), short_number(tensor.max_abs_error),
          short_number(tensor.max_rel_error), decibel_text(tensor.snr_db)};
}

void add_difference(Json& entry, const tensorcast::TensorDifference& tensor) {
  entry["count"] = tensor.count;
  entry["different"] = tensor.different;
  entry["max_abs_error"] = finite_or_null(tensor.max_abs_error);
  entry["max_rel_error"] = finite_or_null(tensor.max_rel_error);
  entry["snr_db"] = finite_or_null(tensor.snr_db);
}

}  // namespace tcast
