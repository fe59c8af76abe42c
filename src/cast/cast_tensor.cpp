// SPDX-License-Identifier: Apache-2.0
// Casts of tensors that own their elements.
#include <limits>
#include <memory_resource>

#include "cast/conversion.hpp"
#include "cast/parse_strings.hpp"
#include "cast/tensor_memory.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr std::size_t line_bytes = 64;

Result<Tensor> cast_tensor(const Tensor& src, DType to, const CastOptions& options, const Execution& execution,
                           CastReport* report) {
  if (!src.defined()) return invalid("the tensor is not defined");
  TRY(check_execution(execution));
  if (src.dtype() == to && (to == DType::string || (options.scale == 1.0 && report == nullptr))) {
    // Checks the options; the codes stay as they are.
    TRY(codec::check_options(options, to, to));
    return src;
  }
  if (to == DType::string) {
    StringBuffer strings = TRY(cast_to_strings(src.view(), options));
    return Tensor::own(src.shape(), std::move(strings));
  }
  const std::size_t bytes = storage_bytes(to, src.count());
  if (bytes == std::numeric_limits<std::size_t>::max()) {
    return invalid(formatted("{} elements of {} do not fit into memory", src.count(), name(to)));
  }
  const std::shared_ptr<std::byte> memory = allocate(bytes, execution);
  const MutableTensorView dst{to, src.shape(), {memory.get(), bytes}};
  Result<void> done;
  if (src.dtype() == DType::string) {
    done = parse_strings(src.strings(), dst, options, execution.first_element);
  } else {
    done = report != nullptr ? cast(src.view(), dst, options, *report, execution)
                             : cast(src.view(), dst, options, execution);
  }
  if (!done) return std::move(done).error();
  return Tensor::share(dst, memory);
}

}  // namespace

std::shared_ptr<std::byte> allocate(std::size_t bytes, const Execution& execution) {
  std::pmr::memory_resource* const memory =
      execution.memory != nullptr ? execution.memory : std::pmr::new_delete_resource();
  const std::size_t size = bytes == 0 ? 1 : bytes;
  auto* const data = static_cast<std::byte*>(memory->allocate(size, line_bytes));
  return {data, [memory, size](std::byte* owned) { memory->deallocate(owned, size, line_bytes); }};
}

Result<Tensor> cast(const Tensor& src, DType to, const CastOptions& options, const Execution& execution) {
  return guarded([&] { return cast_tensor(src, to, options, execution, nullptr); });
}

Result<Tensor> cast(const Tensor& src, DType to, const CastOptions& options, CastReport& report,
                    const Execution& execution) {
  return guarded([&] { return cast_tensor(src, to, options, execution, &report); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
