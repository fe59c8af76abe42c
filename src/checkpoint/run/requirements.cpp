// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/requirements.hpp"

#include <algorithm>
#include <chrono>

#include "checkpoint/run/run_shards.hpp"
#include "checkpoint/source/shard_file.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "convert/run/element_blocks.hpp"
#include "io/sha256.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::uint64_t sample_bytes = std::uint64_t{32} << 20;
// The program itself, and what a tensor of the plan takes besides its name.
constexpr std::uint64_t program_bytes = std::uint64_t{24} << 20;
constexpr std::uint64_t bytes_per_tensor = 1200;
constexpr std::uint64_t blocks = 5;  // one read, four written

template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds per byte of the source.
struct Costs {
  double read = 0.0;
  double convert = 0.0;
  double hash = 0.0;  // of a byte of the output
};

Costs measure(const CheckpointPlan& plan, const ShardTensor& tensor, const Execution& execution) {
  Costs costs;
  const auto shard = open_shard_file(plan.source, plan.inputs[tensor.input].name, false);
  const std::uint64_t bytes = std::min(tensor.planned.bytes_in, sample_bytes) / 64 * 64;
  if (!shard || bytes == 0) return costs;
  const file_conversion::AlignedBuffer data(bytes);
  bool got = false;
  costs.read =
      seconds_of([&] { got = shard->source.read(tensor.begin, data.span()).ok(); }) / static_cast<double>(bytes);
  if (!got) return costs;
  io::Sha256 hash;
  const std::uint64_t hashed = std::min(bytes, sample_bytes / 4);
  costs.hash = seconds_of([&] { hash.update(data.span().first(hashed)); }) / static_cast<double>(hashed);
  if (!tensor.planned.casts()) return costs;
  const DType from = tensor.planned.from;
  const DType to = tensor.planned.target.dtype;
  const auto count = static_cast<std::size_t>(bytes * 8 / static_cast<std::uint64_t>(bit_width(from)));
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  const file_conversion::AlignedBuffer converted(storage_bytes(to, count));
  CastOptions options = plan.settings.options;
  options.scale = tensor.planned.scale();
  CastReport report;
  const bool measured = plan.settings.report || plan.settings.on_loss != OnLoss::ignore;
  const double seconds = seconds_of([&] {
    // An error will be found again, with its place, when the tensor is converted.
    const MutableTensorView target{to, shape, converted.span()};
    (void)(measured ? cast({from, shape, data.span()}, target, options, report, execution)
                    : cast({from, shape, data.span()}, target, options, execution));
  });
  costs.convert = seconds / static_cast<double>(bytes);
  return costs;
}

}  // namespace

Requirements measure_requirements(const CheckpointPlan& plan, const std::string& output, const Execution& execution) {
  Requirements needs;
  std::uint64_t bytes_in = 0;
  std::uint64_t tensors = 0;
  std::uint64_t names = 0;
  bool scaled = false;
  std::optional<ShardTensor> largest;
  for (const PlannedShard& shard : plan.shards) {
    bytes_in += shard.bytes_in;
    for (const ShardTensor& tensor : plan.tensors_of(shard)) {
      ++tensors;
      if (const auto* weight = tensor.planned.new_weight(); weight != nullptr && weight->passes > 1)
        bytes_in += weight->bytes;
      scaled = scaled || tensor.planned.scale() != 1.0;
      names += tensor.planned.target.name.size() + tensor.planned.reason.detail.size();
      const auto size = [](const ShardTensor& t) { return std::pair(t.planned.casts(), t.planned.bytes_in); };
      if (!largest || size(tensor) > size(*largest)) largest = tensor;
    }
  }
  needs.disk_bytes = plan.disk_bytes();
  needs.disk_free_bytes = free_bytes(output);
  const ConversionRun run{plan.settings, execution, {}};
  const std::uint64_t at_once = shards_at_once(execution, plan.shards.size());
  needs.memory_bytes = program_bytes + at_once * blocks * file_conversion::block_bytes_for(run, scaled) +
                       tensors * bytes_per_tensor + 3 * names;
  if (largest) {
    const Costs costs = measure(plan, *largest, execution);
    // Reading and converting take turns; hashing and writing go on meanwhile.
    const double in = static_cast<double>(bytes_in) * (costs.read + costs.convert);
    const double out =
        static_cast<double>(needs.disk_bytes) * std::max(costs.hash / static_cast<double>(at_once), costs.read);
    needs.seconds = std::max(in, out) + 0.1 * std::min(in, out);
  }
  return needs;
}

}  // namespace tensorcast::checkpoint
