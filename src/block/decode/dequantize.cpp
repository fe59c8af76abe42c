// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "block/decode/row_reader.hpp"
#include "block/decode/transposed_experts.hpp"
#include "block/decode/transposed_tile.hpp"
#include "block/format/code_matrix.hpp"
#include "block/format/codings.hpp"
#include "block/format/description.hpp"
#include "block/format/scale_grid.hpp"
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

bool is_transposed(const BlockCoding& coding) noexcept {
  return coding.transposed || coding.packing == BlockPacking::words_down || coding.packing == BlockPacking::awq;
}

// Zero points, biases and scales that are not in tiles: one for each block.
Result<void> check_grid(const TensorView& view, const GridSize& grid, const char* what) {
  TRY(check_bytes(view, what));
  if (has_dimensions(view.shape, {grid.matrices, grid.rows, grid.columns})) return {};
  return invalid(formatted("{} have other dimensions than the {} x {} blocks", what, grid.rows, grid.columns));
}

// An array that the coding does not read, and whose numbers would be passed over.
Result<void> refuse_unused(const BlockTensor& tensor) {
  const bool is_gguf = tensor.coding.gguf != GgufBlock::none;
  struct Array {
    const TensorView& view;
    const char* name;
    bool is_read;
  };
  for (const Array& array :
       {Array{tensor.scales, "scales", !is_gguf},
        Array{tensor.global_scale, "global_scale", tensor.coding.global != GlobalScale::none},
        Array{tensor.zero_points, "zero_points", !is_gguf}, Array{tensor.biases, "biases", !is_gguf},
        Array{tensor.group_index, "group_index", !is_gguf}}) {
    if (array.is_read || array.view.dtype == DType::undefined) continue;
    return invalid(formatted("`{}` is given, which this format does not have", array.name));
  }
  const bool has_table = !is_gguf && tensor.coding.element == DType::undefined;
  if (has_table || tensor.table.empty()) return {};
  return invalid("`table` is given, which this format does not have");
}

// What a description must say before the sizes of its arrays are asked for.
Result<void> check_fields(const BlockTensor& tensor) {
  TRY(check_coding(tensor.coding));
  const BlockCoding& coding = tensor.coding;
  TRY(refuse_unused(tensor));
  if (coding.gguf != GgufBlock::none) return {};
  if (coding.element == DType::undefined) {
    const std::size_t codes = std::size_t{1} << coding.bits;
    if (tensor.table.size() < codes || tensor.table.data() == nullptr) {
      return invalid(formatted("`table` has {} numbers, but there are {} codes", tensor.table.size(), codes));
    }
  }
  if (tensor.block_rows < 0 || tensor.block_columns < 0) {
    return invalid(formatted("blocks of a negative size: {} x {}", tensor.block_rows, tensor.block_columns));
  }
  return {};
}

// Whether a type may hold the bits of codes of another type: bytes, words of several codes, or one code that has no
// sign where the code has none. Numbers of int4, of two's complement, are not codes from 0 to 15, and an int32 is no
// word of four float8 or int8 numbers.
bool may_contain(DType type, const CodeMatrices& codes) noexcept {
  if (family(type) != Family::integer) return false;
  const int width = bit_width(type);
  const bool is_signed_number = codes.element == DType::int8;
  if (width == 8) return true;
  if (width == codes.bits) return codes.packing != BlockPacking::gguf && is_signed(type) == is_signed_number;
  return width == 32 && (codes.bits < 8 || codes.element == DType::uint8);
}

// The shape of codes, which dequantize() may have a part of alone.
Result<void> check_codes(const TensorView& view, const CodeMatrices& codes) {
  const std::size_t rows = codes.matrix_bytes == 0 ? 0 : codes.count * (codes.matrix_bytes / codes.row_bytes);
  if (view.dtype != codes.element && !may_contain(view.dtype, codes)) {
    return invalid(formatted("the codes have type {}, expected uint8{}", name(view.dtype),
                             codes.element == DType::undefined || codes.element == DType::uint8
                                 ? ""
                                 : formatted(" or {}", name(codes.element))),
                   "where they are the right bits in another type, view them as uint8");
  }
  if (!has_rows(view.shape, rows)) return invalid(formatted("the shape of the codes has no {} rows", rows));
  return {};
}

Result<std::vector<std::int32_t>> read_group_index(const BlockTensor& tensor, std::size_t rows, std::size_t groups) {
  const TensorView& view = tensor.group_index;
  std::vector<std::int32_t> index;
  if (view.dtype == DType::undefined) return index;
  TRY(check_bytes(view, "the index of groups"));
  if (view.dtype != DType::int32 || view.bytes.size() != rows * sizeof(std::int32_t)) {
    return invalid(formatted("the index of groups is not {} int32 numbers", rows));
  }
  index.resize(rows);
  std::memcpy(index.data(), view.bytes.data(), view.bytes.size());
  for (const std::int32_t group : index) {
    if (group < 0 || static_cast<std::size_t>(group) >= groups) {
      return invalid(formatted("group {} of {}", group, groups));
    }
  }
  return index;
}

Error missing_global(GlobalScale kind) {
  const bool divides = kind == GlobalScale::divisor;
  return invalid(divides ? "`global_scale` is missing, which divides all scales"
                         : "`global_scale` is missing, which multiplies all scales",
                 divides ? "pass weight_global_scale of the checkpoint; with another spelling it is a factor"
                         : "pass weight_scale_2 of the checkpoint, or 1 if there is none; a divisor, as "
                           "weight_global_scale is, needs the spelling compressed-tensors");
}

// One factor or divisor, or one for each matrix.
Result<std::vector<float>> read_globals(const TensorView& view, GlobalScale kind, std::size_t matrices) {
  if (view.dtype == DType::undefined) return missing_global(kind);
  const Result<std::size_t> count = element_count(view.shape);
  if (!count || (*count != 1 && *count != matrices)) {
    return invalid(formatted("the global scale is not 1 or {} numbers", matrices));
  }
  TRY(check_bytes(view, "the global scales"));
  const ScaleGrid grid = TRY(scale_grid(view, {*count, 1, 1}, DType::undefined, false, "global scales"));
  std::vector<float> globals(*count);
  for (std::size_t i = 0; i < globals.size(); ++i) grid.read(i, 0, 0, std::span(globals).subspan(i, 1));
  return globals;
}

// Sets everything but the codes' data.
Result<Checked> check(const BlockTensor& tensor) {
  TRY(check_fields(tensor));
  const BlockCoding& coding = tensor.coding;
  Checked made;
  made.tensor = &tensor;
  const std::size_t count = TRY(element_count(tensor.shape));
  // Scales in tiles are up to 512 times as many as blocks.
  if (count > std::numeric_limits<std::size_t>::max() / 4096) return invalid("the weight is too large");
  const std::size_t rank = tensor.shape.size();
  made.columns = rank == 0 ? 1 : static_cast<std::size_t>(tensor.shape.back());
  made.rows = rank < 2 ? 1 : static_cast<std::size_t>(tensor.shape[rank - 2]);
  made.transposed = is_transposed(coding);

  CodeMatrices& codes = made.codes;
  codes.packing = coding.packing;
  codes.element = coding.element;
  codes.bits = coding.bits;
  codes.gguf = coding.gguf;
  codes.rows = made.transposed ? made.columns : made.rows;
  codes.columns = made.transposed ? made.rows : made.columns;
  codes.count = count == 0 ? 0 : count / (made.rows * made.columns);
  if (coding.packing == BlockPacking::flat) {
    codes.count = codes.rows = 1;
    codes.columns = count;
  }
  if (count == 0) return made;

  const std::size_t stored = TRY(element_count(tensor.codes.shape));
  TRY(lay_out(codes, storage_bytes(tensor.codes.dtype, stored), "the codes"));
  TRY(check_codes(tensor.codes, codes));
  if (coding.gguf != GgufBlock::none) return made;

  made.block_rows = tensor.block_rows == 0 ? codes.rows : static_cast<std::size_t>(tensor.block_rows);
  made.block_columns = tensor.block_columns == 0 ? codes.columns : static_cast<std::size_t>(tensor.block_columns);
  const GridSize grid{codes.count, (codes.rows - 1) / made.block_rows + 1,
                      (codes.columns - 1) / made.block_columns + 1};
  made.scales = TRY(scale_grid(tensor.scales, grid, coding.scale, coding.swizzled, "scales"));
  TRY(made.scales.is_swizzled() ? check_bytes(tensor.scales, "the scales")
                                : check_grid(tensor.scales, grid, "the scales"));
  if (tensor.zero_points.dtype != DType::undefined) {
    made.zeros = TRY(zero_grid(tensor.zero_points, grid, coding));
    TRY(made.zeros.is_packed() ? check_bytes(tensor.zero_points, "the zero points")
                               : check_grid(tensor.zero_points, grid, "the zero points"));
  }
  if (tensor.biases.dtype != DType::undefined) {
    made.biases = TRY(scale_grid(tensor.biases, grid, DType::undefined, false, "biases"));
    TRY(check_grid(tensor.biases, grid, "the biases"));
  }
  if (coding.global != GlobalScale::none) {
    made.globals = TRY(read_globals(tensor.global_scale, coding.global, codes.count));
  }
  made.group_of_row = TRY(read_group_index(tensor, codes.rows, grid.rows));
  // Most indices only say that groups follow each other.
  bool is_in_order = true;
  for (std::size_t i = 0; i < made.group_of_row.size(); ++i) {
    is_in_order = is_in_order && static_cast<std::size_t>(made.group_of_row[i]) == i / made.block_rows;
  }
  if (is_in_order) made.group_of_row.clear();
  return made;
}

Result<CodeRange> range_of(const Checked& checked, std::int64_t first, std::int64_t count) {
  const CodeMatrices& codes = checked.codes;
  const Result<std::size_t> total = element_count(checked.tensor->shape);
  const std::size_t all_rows = checked.columns == 0 ? 0 : *total / checked.columns;
  if (first < 0 || count < 0 || static_cast<std::uint64_t>(first) > all_rows ||
      static_cast<std::uint64_t>(count) > all_rows - static_cast<std::uint64_t>(first)) {
    return invalid(formatted("{} rows from row {} on, but the weight has {}", count, first, all_rows));
  }
  if (count == 0 || codes.count == 0) return CodeRange{};
  const auto begin = static_cast<std::uint64_t>(first);
  const std::uint64_t end = begin + static_cast<std::uint64_t>(count);
  if (codes.packing == BlockPacking::flat) {
    constexpr std::uint64_t aligned = CodeMatrices::alignment / 2;  // bytes; the reader begins at whole ones
    return CodeRange{begin * checked.columns / 2 / aligned * aligned, (end * checked.columns + 1) / 2};
  }
  if (checked.transposed || codes.packing == BlockPacking::row_pairs) {
    return CodeRange{begin / checked.rows * codes.matrix_bytes, ((end - 1) / checked.rows + 1) * codes.matrix_bytes};
  }
  return CodeRange{begin * codes.row_bytes, end * codes.row_bytes};
}

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

// Sets where all codes would begin. `given`: all of them, or those of the rows, which alone are read.
Result<void> take_codes(Checked& checked, std::span<const std::byte> given, const CodeRange& range) {
  const std::size_t all = checked.codes.count * checked.codes.matrix_bytes;
  if (!given.empty() && given.data() == nullptr) return invalid("the codes are null");
  if (given.size() != all && given.size() != range.end - range.begin) {
    return invalid(
        formatted("{} bytes of codes, where {} to {} of {} are needed", given.size(), range.begin, range.end, all));
  }
  const auto data = reinterpret_cast<std::uintptr_t>(given.data());
  checked.codes.data = reinterpret_cast<const std::byte*>(given.size() == all ? data : data - range.begin);
  return {};
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
  TRY(take_codes(checked, tensor.codes.bytes, range));
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
    TRY(take_codes(checked_, codes, range));
    const auto begin = static_cast<std::size_t>(first), rows = static_cast<std::size_t>(count);
    reader_.restart();
    writer_.aim(begin, out,
                static_cast<std::size_t>(range.end - range.begin) + storage_bytes(row(to_), rows * checked_.columns));
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
