// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "block/decode/checked.hpp"
#include "block/decode/row_reader.hpp"
#include "block/decode/transposed_experts.hpp"
#include "block/decode/transposed_tile.hpp"
#include "block/format/code_matrix.hpp"
#include "block/format/codings.hpp"
#include "block/tuning.hpp"
#include "cast/conversion.hpp"
#include "cast/parallel.hpp"
#include "cast/transpose.hpp"
#include "cast/tuning.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/prefetch.hpp"
#include "dtype/try.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast::block {
namespace {

// Rows [first, first + rows) of the weight into `out`.
class Writer {
 public:
  // `reader`: one that other calls use, too; null: each call of write() has its own. `origin`: the place of the
  // weight's first element in a larger tensor.
  Writer(const Checked& checked, DType to, const codec::Policy& policy, RowReader* reader = nullptr,
         std::uint64_t origin = 0)
      : checked_(checked),
        to_(to),
        policy_(policy),
        shared_reader_(reader),
        origin_(origin),
        may_be_fused_(may_be_fused()) {}

  // Where row `first` and those after it are written, and the bytes that are read and written in all.
  void aim(std::size_t first, std::byte* out, std::size_t bytes) noexcept {
    first_ = first;
    out_ = out;
    bypasses_cache_ = bytes >= bypass_cache_min_bytes;
    bypasses_buffer_ = bypasses_cache_ && stores_bypass_buffer(active_target());
  }

  Result<void> write(std::size_t begin, std::size_t end, CastReport* report) const {
    const bool is_fused = report == nullptr && may_be_fused_;
    const Made made{.is_final = is_fused, .type = is_fused ? to_ : DType::float32, .report = report};
    const auto written = [&] {
      if (!checked_.transposed) return write_rows(begin, end, made);
      if (TransposedTile::can_transpose(checked_)) return write_transposed<TransposedTile>(begin, end, made);
      if (TransposedExperts::can_transpose(checked_, made.type))
        return write_transposed<TransposedExperts>(begin, end, made);
      return write_transposed(begin, end, made);
    };
    Result<void> done = written();
    if (bypasses_cache_) ops_.stream_fence();  // other threads may read the target after this
    return done;
  }

 private:
  // The numbers that are read: those of the target, or float32, which is converted to it.
  struct Made {
    bool is_final;
    DType type;
    CastReport* report;
    [[nodiscard]] std::size_t item() const noexcept { return static_cast<std::size_t>(bit_width(type)) / 8; }
  };
  using Numbers = std::array<std::byte, RowReader::max_elements * sizeof(float)>;

  // Reports whether the reader rounds to the target itself.
  [[nodiscard]] bool may_be_fused() const {
    if (to_ == DType::float32) return policy_.scale == 1.0;
    return is_plain_float(to_) && policy_ == codec::policy_of({}, DType::float32, to_);
  }

  [[nodiscard]] std::byte* place(std::size_t row, std::size_t column) const {
    return out_ + ((row - first_) * checked_.columns + column) * static_cast<std::size_t>(bit_width(to_) / 8);
  }

  Result<void> write_rows(std::size_t begin, std::size_t end, const Made& made) const {
    if (shared_reader_ != nullptr) return write_rows(begin, end, made, *shared_reader_);
    RowReader reader(checked_);
    return write_rows(begin, end, made, reader);
  }

  Result<void> write_rows(std::size_t begin, std::size_t end, const Made& made, RowReader& reader) const {
    alignas(64) Numbers numbers;
    const bool is_flat = checked_.codes.packing == BlockPacking::flat;
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t from = is_flat ? row * checked_.columns : 0;
      for (std::size_t done = 0; done < checked_.columns;) {
        const std::size_t column = from + done;
        const std::size_t skipped = column % CodeMatrices::alignment;
        const std::size_t n = std::min(RowReader::max_elements - skipped, checked_.columns - done);
        const std::size_t matrix = is_flat ? 0 : row / checked_.rows, in_matrix = is_flat ? 0 : row % checked_.rows;
        if (prefetches_) {
          const auto codes = checked_.codes.bytes_of(matrix, in_matrix, column - skipped, skipped + n);
          prefetch(codes.data() + codes.size(), codes.size());
        }
        const auto write = [&](std::byte* to) { return reader.write(matrix, in_matrix, column, n, made.type, to); };
        if (skipped != 0 || !bypasses_buffer(n, row, done, made, write)) {
          reader.read(matrix, in_matrix, column - skipped, skipped + n, made.type, numbers.data());
          TRY(put(numbers.data() + skipped * made.item(), n, row, done, made));
        }
        done += n;
      }
    }
    return {};
  }

  // Codes are transposed, then read as rows.
  template <class Tile>
  Result<void> write_transposed(std::size_t begin, std::size_t end, const Made& made) const {
    Tile tile(checked_, made.type);
    alignas(64) Numbers numbers;
    for (std::size_t row = begin; row < end;) {
      const std::size_t matrix = row / checked_.rows, in_matrix = row % checked_.rows;
      const std::size_t skipped = in_matrix % Tile::row_unit;
      const std::size_t n = std::min({Tile::rows - skipped, end - row, checked_.rows - in_matrix});
      for (std::size_t column = 0; column < checked_.columns;) {
        const std::size_t depth = tile.load(matrix, in_matrix - skipped, skipped + n, column);
        if (depth == 0) {
          TRY(write_transposed(row, row + n, made));
          break;
        }
        for (std::size_t i = 0; i < n; ++i) {
          const auto write = [&](std::byte* to) { return tile.write(skipped + i, to); };
          if (bypasses_buffer(depth, row + i, column, made, write)) continue;
          tile.read(skipped + i, numbers.data());
          TRY(put(numbers.data(), depth, row + i, column, made));
        }
        column += depth;
      }
      row += n;
    }
    return {};
  }

  Result<void> write_transposed(std::size_t begin, std::size_t end, const Made& made) const {
    return bit_width(made.type) == 16 ? write_transposed_of<std::uint16_t>(begin, end, made)
                                      : write_transposed_of<std::uint32_t>(begin, end, made);
  }

  // Rows of codes are read, then numbers are transposed, a line of the cache of each row at a time.
  template <class Element>
  Result<void> write_transposed_of(std::size_t begin, std::size_t end, const Made& made) const {
    constexpr std::size_t wide = 2048 / sizeof(Element), line = 64 / sizeof(Element);
    static_assert(wide % CodeMatrices::alignment == 0 && wide <= RowReader::max_elements);
    constexpr std::size_t stride = wide + line;  // rows of a power of two would fall on the same lines
    constexpr std::size_t transposed_stride = tile_depth + line;
    constexpr std::size_t ahead = 4;  // rows
    RowReader reader(checked_);
    std::vector<Element> read(tile_depth * stride), transposed(line * transposed_stride);
    const auto* const from = reinterpret_cast<const std::byte*>(read.data());
    auto* const to = reinterpret_cast<std::byte*>(transposed.data());
    for (std::size_t row = begin; row < end;) {
      const std::size_t matrix = row / checked_.rows, in_matrix = row % checked_.rows;
      const std::size_t skipped = in_matrix % CodeMatrices::alignment;
      const std::size_t n = std::min({wide - skipped, end - row, checked_.rows - in_matrix});
      for (std::size_t k = 0; k < checked_.columns; k += tile_depth) {
        const std::size_t depth = std::min(tile_depth, checked_.columns - k);
        for (std::size_t i = 0; i < depth; ++i) {
          if (checked_.coding().transposed && k + i + ahead < checked_.columns) {  // they are a stream
            prefetch(checked_.codes.stream(matrix, k + i + ahead, in_matrix - skipped),
                     (skipped + n) * static_cast<std::size_t>(checked_.codes.bits) / 8);
          }
          reader.read(matrix, k + i, in_matrix - skipped, skipped + n, made.type,
                      reinterpret_cast<std::byte*>(&read[i * stride]));
        }
        for (std::size_t done = 0; done < n; done += line) {
          const std::size_t rows = std::min(line, n - done);
          Transposer<Element>::run(from + (skipped + done) * sizeof(Element), stride * sizeof(Element), depth, rows, to,
                                   transposed_stride * sizeof(Element));
          for (std::size_t j = 0; j < rows; ++j) {
            const std::byte* const transposed_row = to + j * transposed_stride * sizeof(Element);
            TRY(put(transposed_row, depth, row + done + j, k, made));
          }
        }
      }
      row += n;
    }
    return {};
  }

  // Reports whether `write` has written the numbers to their place, which it may do if they fill lines of the cache.
  template <class Write>
  [[nodiscard]] bool bypasses_buffer(std::size_t count, std::size_t row, std::size_t column, const Made& made,
                                     const Write& write) const {
    constexpr std::uintptr_t line = 64;
    if (!bypasses_buffer_ || !made.is_final || count % kernels::run_step != 0) return false;
    std::byte* const to = place(row, column);
    return reinterpret_cast<std::uintptr_t>(to) % line == 0 && write(to);
  }

  Result<void> put(const std::byte* numbers, std::size_t count, std::size_t row, std::size_t column,
                   const Made& made) const {
    std::byte* const to = place(row, column);
    if (made.is_final) {
      if (bypasses_cache_) {
        ops_.stream_copy(numbers, to, count * made.item());
      } else {
        std::memcpy(to, numbers, count * made.item());
      }
      return {};
    }
    const Conversion conversion{.src = numbers,
                                .from = DType::float32,
                                .dst = to,
                                .to = to_,
                                .count = count,
                                .first = origin_ + row * checked_.columns + column};
    return counted_from((row - first_) * checked_.columns + column,
                        run(conversion, policy_, {.threads = 1}, made.report));
  }

  const Checked& checked_;
  std::size_t first_ = 0;
  DType to_;
  std::byte* out_ = nullptr;
  const codec::Policy& policy_;
  RowReader* shared_reader_;
  std::uint64_t origin_;
  bool may_be_fused_;
  const kernels::Ops& ops_ = kernels::ops_of(active_target());
  bool bypasses_cache_ = false;
  bool bypasses_buffer_ = false;
  // Whether the codes of the next step are prefetched. The time with it: AVX-512 (Sapphire Rapids) 0.75 to 0.95, AVX2
  // (Zen 3) 1.0 to 1.1.
  bool prefetches_ = ops_.register_bytes >= 64;
};

Result<void> write_in_tasks(const Writer& writer, const Checked& checked, std::size_t first, std::size_t rows,
                            CastReport* report, const Execution& execution) {
  // Blocks of the codes that share scales, and tiles, stay together.
  const std::size_t unit = checked.transposed ? CodeMatrices::alignment : 16;
  const std::size_t each = std::max(unit, task_elements / checked.columns / unit * unit);
  const std::size_t tasks = (rows - 1) / each + 1;
  if (tasks == 1 || execution.threads == 1 || !may_use_threads(execution)) {
    return writer.write(first, first + rows, report);
  }
  std::vector<CastReport> reports(report == nullptr ? 0 : tasks);
  TRY(try_tasks(tasks, execution, [&](std::size_t task) {
    const std::size_t begin = first + task * each;
    const std::size_t end = std::min(begin + each, first + rows);
    return writer.write(begin, end, reports.empty() ? nullptr : &reports[task]);
  }));
  for (const CastReport& part : reports) report->merge(part);
  return {};
}

Result<void> check_target(DType to, const CastOptions& options) {
  if (family(to) != Family::floating || bit_width(to) < 8) {
    return invalid("the target is no floating-point type of 8 bits or more");
  }
  // The numbers have no place yet that the target could overlap: types and options are checked, as those of no element.
  return tensorcast::check({nullptr, DType::float32, nullptr, to, 0}, options);
}

// Sets where all codes would begin, and returns those of the rows. `given`: all of them, or those of the rows.
Result<std::span<const std::byte>> take_codes(Checked& checked, std::span<const std::byte> given,
                                              const CodeRange& range) {
  const std::size_t all = checked.codes.count * checked.codes.matrix_bytes;
  if (!given.empty() && given.data() == nullptr) return invalid("the codes are null");
  if (given.size() != all && given.size() != range.end - range.begin) {
    return invalid(
        formatted("{} bytes of codes, where {} to {} of {} are needed", given.size(), range.begin, range.end, all));
  }
  const auto data = reinterpret_cast<std::uintptr_t>(given.data());
  const bool are_all = given.size() == all;
  checked.codes.data = reinterpret_cast<const std::byte*>(are_all ? data : data - range.begin);
  return are_all ? given.subspan(range.begin, range.end - range.begin) : given;
}

Result<void> convert(const BlockTensor& tensor, std::int64_t first, const MutableTensorView& out,
                     const CastOptions& options, CastReport* report, const Execution& execution) {
  Checked checked = TRY(check(tensor));
  TRY(check_target(out.dtype, options));
  const std::size_t count = TRY(element_count(out.shape));
  if (count != 0 && out.bytes.data() == nullptr) return invalid("the target buffer is null");
  TRY(check_size("target", out.dtype, count, out.bytes.size()));
  TRY(check_execution(execution));
  if (count == 0) return {};
  if (checked.columns == 0 || count % checked.columns != 0) {
    return invalid(formatted("{} elements are no rows of {}", count, checked.columns));
  }
  const std::size_t rows = count / checked.columns;
  const CodeRange range = TRY(range_of(checked, first, static_cast<std::int64_t>(rows)));
  const std::span<const std::byte> codes = TRY(take_codes(checked, tensor.codes.bytes, range));
  TRY(check_target_memory(checked, codes, out.bytes));
  const codec::Policy policy = codec::policy_of(options, DType::float32, out.dtype);
  Writer writer(checked, out.dtype, policy, nullptr, execution.first_element);
  writer.aim(static_cast<std::size_t>(first), out.bytes.data(), tensor.codes.bytes.size() + out.bytes.size());
  return write_in_tasks(writer, checked, static_cast<std::size_t>(first), rows, report, execution);
}

}  // namespace

// A tensor that is checked, and what reads its rows.
class PreparedRows {
 public:
  PreparedRows(const BlockTensor& tensor, Checked checked, DType to, const codec::Policy& policy)
      : tensor_(tensor), checked_(std::move(checked)), to_(to), policy_(policy) {
    checked_.tensor = &tensor_;
  }
  PreparedRows(const PreparedRows&) = delete;
  PreparedRows& operator=(const PreparedRows&) = delete;

  Result<void> read(std::span<const std::byte> codes, std::int64_t first, std::int64_t count, std::byte* out) {
    const CodeRange range = TRY(range_of(checked_, first, count));
    if (count == 0 || checked_.columns == 0) return {};
    if (out == nullptr) return invalid("the target buffer is null");
    const std::span<const std::byte> read = TRY(take_codes(checked_, codes, range));
    const auto begin = static_cast<std::size_t>(first), rows = static_cast<std::size_t>(count);
    const std::size_t bytes = storage_bytes(row(to_), rows * checked_.columns);
    TRY(check_target_memory(checked_, read, {out, bytes}));
    reader_.restart();
    writer_.aim(begin, out, read.size() + bytes);
    return writer_.write(begin, begin + rows, nullptr);
  }
  [[nodiscard]] Result<CodeRange> range(std::int64_t first, std::int64_t count) const {
    return range_of(checked_, first, count);
  }
  [[nodiscard]] std::span<const std::byte> codes() const noexcept { return tensor_.codes.bytes; }

 private:
  const BlockTensor tensor_;
  Checked checked_;
  const DType to_;
  const codec::Policy policy_;
  RowReader reader_{checked_};
  Writer writer_{checked_, to_, policy_, &reader_};
};

}  // namespace tensorcast::block

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<CodeRange> code_range(const BlockTensor& tensor, std::int64_t first, std::int64_t count) {
  return guarded([&]() -> Result<CodeRange> { return block::range_of(TRY(block::check(tensor)), first, count); });
}

Result<void> dequantize(const BlockTensor& tensor, std::int64_t first, const MutableTensorView& out,
                        const CastOptions& options, CastReport* report, const Execution& execution) {
  return guarded([&] { return block::convert(tensor, first, out, options, report, execution); });
}

struct PreparedDequantize::State : block::PreparedRows {
  using PreparedRows::PreparedRows;
};

struct PreparedDequantizeAccess {
  static Result<PreparedDequantize> make(const BlockTensor& tensor, DType to, const CastOptions& options) {
    block::Checked checked = TRY(block::check(tensor));
    TRY(block::check_target(to, options));
    const codec::Policy policy = codec::policy_of(options, DType::float32, to);
    // The checked description points at `tensor` until the state has its copy.
    return PreparedDequantize(std::make_unique<PreparedDequantize::State>(tensor, std::move(checked), to, policy));
  }
};

PreparedDequantize::PreparedDequantize(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
PreparedDequantize::PreparedDequantize(PreparedDequantize&& other) noexcept = default;
PreparedDequantize& PreparedDequantize::operator=(PreparedDequantize&& other) noexcept = default;
PreparedDequantize::~PreparedDequantize() = default;

Result<void> PreparedDequantize::operator()(std::int64_t first, std::int64_t count, void* dst) noexcept {
  if (state_ == nullptr) return (*this)({}, first, count, dst);
  return (*this)(state_->codes(), first, count, dst);
}

Result<void> PreparedDequantize::operator()(std::span<const std::byte> codes, std::int64_t first, std::int64_t count,
                                            void* dst) noexcept {
  return guarded([&]() -> Result<void> {
    if (state_ == nullptr) return moved_from("PreparedDequantize");
    return state_->read(codes, first, count, static_cast<std::byte*>(dst));
  });
}

Result<CodeRange> PreparedDequantize::code_range(std::int64_t first, std::int64_t count) const noexcept {
  return guarded([&]() -> Result<CodeRange> {
    if (state_ == nullptr) return moved_from("PreparedDequantize");
    return state_->range(first, count);
  });
}

Result<PreparedDequantize> prepare_dequantize(const BlockTensor& tensor, DType to, const CastOptions& options) {
  return guarded([&] { return PreparedDequantizeAccess::make(tensor, to, options); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
