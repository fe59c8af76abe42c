// SPDX-License-Identifier: Apache-2.0
#include "convert/run/transfer.hpp"

#include <algorithm>

#include "convert/run/aligned_buffer.hpp"
#include "convert/run/block_writer.hpp"
#include "convert/run/element_blocks.hpp"
#include "convert/run/string_blocks.hpp"
#include "dtype/error_places.hpp"
#include "dtype/try.hpp"
#include "quantized/rewrite/damage.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::file_conversion {
namespace {

using formats::Reader;
using formats::Writer;

constexpr std::size_t blocks_in_flight = 4;  // one being filled, one being written, two waiting

bool is_scaled(const PlannedTensor* tensor) { return tensor->scale() != 1.0; }

class Transfer {
 public:
  Transfer(const ConversionRun& run, std::span<const PlannedTensor* const> tensors, Reader& reader, Writer& writer,
           ProgressMeter& progress, TensorNotes& notes, io::Sha256* hash)
      : run_(run),
        tensors_(tensors),
        reader_(reader),
        writer_(writer),
        progress_(progress),
        notes_(notes),
        block_bytes_(block_bytes_for(run, std::ranges::any_of(tensors, &is_scaled))),
        source_(block_bytes_),
        blocks_(writer, hash, blocks_in_flight, block_bytes_) {}

  Result<bool> run() {
    for (std::size_t index = 0; index < tensors_.size(); ++index) {
      const PlannedTensor& tensor = *tensors_[index];
      TRY(at_tensor(tensor.name(), move(index, tensor)));
      if (is_cancelled_) return false;
    }
    TRY(blocks_.drain());
    return true;
  }

 private:
  Result<void> move(std::size_t index, const PlannedTensor& tensor) {
    if (tensor.target.dtype == DType::string) return move_strings(tensor);
    if (tensor.from == DType::string) return move_parsed_strings(tensor);
    if (!tensor.casts()) return copy(tensor, tensor.source, tensor.bytes_in);
    return is_read_rounded(tensor) ? copy_rounded(index, tensor) : convert(index, tensor, true);
  }

  Result<void> copy(const PlannedTensor& tensor, std::size_t source, std::uint64_t all_bytes) {
    for (std::uint64_t offset = 0; offset < all_bytes && !is_cancelled_;) {
      std::span<std::byte> block = TRY(blocks_.acquire());
      const std::size_t bytes = std::min<std::uint64_t>({block.size(), block_bytes, all_bytes - offset});
      TRY(reader_.read(source, offset, block.first(bytes)));
      blocks_.push(bytes);
      const std::uint64_t before = share(tensor, offset, all_bytes);
      offset += bytes;
      advance(share(tensor, offset, all_bytes) - before, tensor);
    }
    return {};
  }

  [[nodiscard]] bool measures_decoded() const { return run_.report && !run_.report_casts_only; }

  // Reports whether nothing but the numbers of a decoded layer is asked for. If their type has fewer exponents than
  // float32, they are compared while they are rounded.
  [[nodiscard]] bool is_read_rounded(const PlannedTensor& tensor) const {
    if (!tensor.decodes() || !tensor.decoded()->rounded || measures_decoded()) return false;
    const CastOptions options = options_for(tensor);
    if (!(options == CastOptions{})) return false;
    return tensor.target.dtype != DType::float16 || !is_judged(tensor, options);
  }

  [[nodiscard]] bool is_judged(const PlannedTensor& tensor, const CastOptions& options) const {
    return (run_.on_loss != OnLoss::ignore || run_.refuse_zeroed) &&
           may_damage(tensor.from, tensor.target.dtype, options);
  }

  Result<void> copy_rounded(std::size_t index, const PlannedTensor& tensor) {
    const std::size_t rounded = *tensor.decoded()->rounded;
    TRY(copy(tensor, rounded, tensor.target.bytes));
    if (is_cancelled_ || !is_judged(tensor, options_for(tensor))) return {};
    const std::optional<formats::Magnitudes> numbers = reader_.magnitudes(rounded);
    if (numbers && !may_damage(*numbers, tensor.target.dtype)) return {};
    return convert(index, tensor, false);
  }

  // Casts a tensor block by block, and notes its report and its damage if they are asked for. `writes`: false: the
  // results are there already, and are made again for these alone.
  Result<void> convert(std::size_t index, const PlannedTensor& tensor, bool writes) {
    const DType from = tensor.from;
    const DType to = tensor.target.dtype;
    const std::uint64_t per_block = block_elements(from, to, block_bytes_);
    const CastOptions options = options_for(tensor);
    const bool judged = is_judged(tensor, options);
    std::optional<CastReport> report;
    const bool reported = tensor.decodes() ? measures_decoded() : run_.report;
    if (reported || judged) report.emplace();
    NonzeroCounts nonzero;
    const AlignedBuffer unwritten(writes ? 0 : block_bytes_);
    for (std::uint64_t first = 0; first < tensor.target.count && !is_cancelled_; first += per_block) {
      const std::size_t count = std::min(per_block, tensor.target.count - first);
      const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
      const std::span<std::byte> source = source_.span().first(storage_bytes(from, count));
      TRY(reader_.read(tensor.source, storage_bytes(from, first), source));
      const std::span<std::byte> block = writes ? TRY(blocks_.acquire()) : unwritten.span();
      const MutableTensorView target{to, shape, block.first(storage_bytes(to, count))};
      Execution execution = run_.execution;
      execution.first_element = first;
      Result<void> done = report ? cast({from, shape, source}, target, options, *report, execution)
                                 : cast({from, shape, source}, target, options, execution);
      if (!done) return located(std::move(done).error(), first, from);
      if (judged) {
        nonzero.before += count_nonzero(from, source, count);
        nonzero.after += count_nonzero(to, target.bytes, count);
      }
      if (writes) blocks_.push(target.bytes.size());
      const std::uint64_t moved =
          tensor.decodes() ? share(tensor, first + count) - share(tensor, first) : source.size() + target.bytes.size();
      advance(writes ? moved : 0, tensor);
    }
    if (reported) notes_[index].report = report;
    return judged && !is_cancelled_ ? judge(index, *report, nonzero, from, to) : Result<void>();
  }

  Result<void> judge(std::size_t index, const CastReport& report, const NonzeroCounts& nonzero, DType from, DType to) {
    const bool strict = run_.on_loss == OnLoss::fail;
    return note_damage(
        run_, strict ? find_loss(report, nonzero, from, to, run_.zero_limit) : find_damage(report, nonzero, from, to),
        index, notes_);
  }

  Result<void> move_strings(const PlannedTensor& tensor) {
    TRY(blocks_.drain());
    if (writer_.measures_strings()) {
      const auto measure = [&](const StringBuffer& block) { return writer_.measure_strings(block); };
      TRY(each_block(tensor, measure));
    }
    std::uint64_t appended = 0;
    return each_block(tensor, [&](const StringBuffer& block) {
      const std::uint64_t count = block.offsets.size() - 1;
      advance(share(tensor, appended + count) - share(tensor, appended), tensor);
      appended += count;
      return writer_.append_strings(block);
    });
  }

  // Calls take(strings) for each block of a tensor that becomes strings, until the conversion is cancelled.
  template <class Take>
  Result<void> each_block(const PlannedTensor& tensor, const Take& take) {
    for (StringBlocks blocks(options_of(run_, tensor), tensor, reader_, block_bytes_);
         !blocks.at_end() && !is_cancelled_;) {
      TRY(take(TRY(blocks.next())));
      advance(0, tensor);
    }
    return {};
  }

  Result<void> move_parsed_strings(const PlannedTensor& tensor) {
    for (NumberBlocks numbers(options_for(tensor), tensor, reader_, block_bytes_);
         !numbers.at_end() && !is_cancelled_;) {
      const std::uint64_t before = share(tensor, numbers.done());
      const Result<std::span<std::byte>> parsed = numbers.next(TRY(blocks_.acquire()));
      if (!parsed) return located(parsed.error(), 0, tensor.from);
      blocks_.push(parsed->size());
      advance(share(tensor, numbers.done()) - before, tensor);
    }
    return {};
  }

  // The part of the tensor's bytes, in and out, that its first `elements` have.
  static std::uint64_t share(const PlannedTensor& tensor, std::uint64_t elements) {
    return share(tensor, elements, tensor.target.count);
  }

  // That of the first `done` of `total` equal parts.
  static std::uint64_t share(const PlannedTensor& tensor, std::uint64_t done, std::uint64_t total) {
    const double all = static_cast<double>(tensor.bytes_in) + static_cast<double>(tensor.target.bytes);
    if (done == total) return tensor.bytes_in + tensor.target.bytes;
    return static_cast<std::uint64_t>(all * static_cast<double>(done) / static_cast<double>(total));
  }

  // With `refuse_wrap`, a number out of an integer type's range is an error unless the options say more.
  [[nodiscard]] CastOptions options_for(const PlannedTensor& tensor) const {
    CastOptions options = options_of(run_, tensor);
    const bool is_default = options.out_of_range == OutOfRange::automatic;
    const bool is_integer = family(tensor.target.dtype) == Family::integer;
    if (run_.refuse_wrap && is_default && is_integer) options.out_of_range = OutOfRange::error;
    return options;
  }

  // The error of a block that begins at element `first`.
  [[nodiscard]] Error located(Error error, std::uint64_t first, DType from) const {
    error = counted_from(first, std::move(error));
    if (error.code != ErrorCode::out_of_range || !error.hint.empty()) return error;
    if (run_.options.inexact == Inexact::error) {
      error.hint = "`inexact` auto converts it all the same";
    } else if (run_.refuse_wrap && run_.options.out_of_range == OutOfRange::automatic) {
      error.hint = family(from) == Family::floating
                       ? "`out_of_range` wrap or saturate converts it all the same; `scale` may make it fit"
                       : "`out_of_range` wrap or saturate converts it all the same; a wider type holds it";
    }
    return error;
  }

  void advance(std::uint64_t bytes, const PlannedTensor& tensor) {
    if (!progress_.advance(bytes, tensor.name())) is_cancelled_ = true;
  }

  const ConversionRun& run_;
  std::span<const PlannedTensor* const> tensors_;
  Reader& reader_;
  Writer& writer_;
  ProgressMeter& progress_;
  TensorNotes& notes_;
  std::size_t block_bytes_;
  AlignedBuffer source_;
  BlockWriter blocks_;
  bool is_cancelled_ = false;
};

}  // namespace

Result<bool> transfer(const ConversionRun& run, std::span<const PlannedTensor* const> tensors, Reader& reader,
                      Writer& writer, ProgressMeter& progress, TensorNotes& notes, io::Sha256* hash) {
  return Transfer(run, tensors, reader, writer, progress, notes, hash).run();
}

}  // namespace tensorcast::file_conversion
