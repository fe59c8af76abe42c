// Each tensor's target type and the reason; checked before anything is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::convert {

struct PlannedTensor {
  formats::TensorInfo target;  // name, type and shape in the output
  std::size_t source = 0;      // its index in the input
  DType from = DType::undefined;
  std::uint64_t bytes_in = 0;
  bool converts = false;  // false: copied byte for byte
  std::string reason;
  bool left = false;  // a conversion was requested and is not done
};

struct Plan {
  std::vector<PlannedTensor> tensors;  // tensors of the output, in the order of the input
  std::vector<std::size_t> layout;     // indices into `tensors`, in the order of the output's data

  [[nodiscard]] std::uint64_t bytes_in() const noexcept;
  [[nodiscard]] std::uint64_t bytes_out() const noexcept;
};

// Errors: invalid_argument (no type to convert to; patterns that are wrong or match nothing; options), unsupported
// (types that the output's format or the opset does not have; weights whose scales are another tensor).
[[nodiscard]] Result<Plan> make_plan(const ConvertRequest& request, const formats::Reader& input,
                                     const formats::Format& input_format, const formats::Format& output_format);

}  // namespace tensorcast::convert
