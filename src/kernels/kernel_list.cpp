// SPDX-License-Identifier: Apache-2.0
// All kernels of all targets in one table, filled once.
#include <array>

#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

constexpr std::size_t pair_count = number_type_count * (number_type_count - 1);

std::array<KernelRows, 3> sources_of(Target target) noexcept {
  const Ops& ops = ops_of(target);
  return {ops.float_source_rows(), ops.integer_source_rows(), ops.byte_source_rows()};
}

class Registry {
 public:
  Registry() noexcept {
    for (std::size_t target = 0; target < target_count; ++target) {
      std::size_t size = 0;
      for (const KernelRows source : sources_of(static_cast<Target>(target))) {
        for (const Kernel& kernel : source) {
          if (size == pair_count) return;
          Kernel& row = rows_[target][size++];
          row = kernel;
          by_pair_[target][row_number(kernel.from)][row_number(kernel.to)] = &row;
        }
      }
      sizes_[target] = size;
    }
  }

  [[nodiscard]] KernelRows rows(Target target) const noexcept {
    const auto index = static_cast<std::size_t>(target);
    return KernelRows(rows_[index]).first(sizes_[index]);
  }
  [[nodiscard]] const Kernel* find(Target target, DType from, DType to) const noexcept {
    if (find_row(from) == nullptr || find_row(to) == nullptr) return nullptr;
    return by_pair_[static_cast<std::size_t>(target)][row_number(from)][row_number(to)];
  }

 private:
  std::array<std::array<Kernel, pair_count>, target_count> rows_ = {};
  std::array<std::size_t, target_count> sizes_ = {};
  std::array<std::array<std::array<const Kernel*, dtype_table.size()>, dtype_table.size()>, target_count> by_pair_ = {};
};

const Registry& registry() noexcept {
  static const Registry instance;
  return instance;
}

}  // namespace

std::span<const Kernel> kernels(Target target) noexcept { return registry().rows(target); }

const Kernel* find_kernel(Target target, DType from, DType to) noexcept { return registry().find(target, from, to); }

}  // namespace tensorcast::kernels
