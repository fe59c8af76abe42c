#include "convert/transfer.hpp"

#include <algorithm>

#include "convert/aligned_buffer.hpp"
#include "convert/block_writer.hpp"
#include "convert/element_blocks.hpp"

namespace tensorcast::convert {
namespace {

using formats::Reader;
using formats::Writer;

constexpr std::size_t blocks_in_flight = 4;  // one being filled, one being written, two waiting

class Transfer {
 public:
  Transfer(const ConvertRequest& request, const Plan& plan, Reader& reader, Writer& writer, ProgressMeter& progress)
      : request_(request),
        plan_(plan),
        reader_(reader),
        writer_(writer),
        progress_(progress),
        block_bytes_(block_bytes_for(request)),
        source_(block_bytes_),
        blocks_(writer, blocks_in_flight, block_bytes_) {
    outcome_.reports.resize(plan.tensors.size());
  }

  Result<TransferOutcome> run() {
    for (const std::size_t index : plan_.layout) {
      const PlannedTensor& tensor = plan_.tensors[index];
      if (Result<void> moved = move(index, tensor); !moved) {
        if (moved.error().tensor.empty()) moved.error().tensor = tensor.target.name;
        return std::move(moved).error();
      }
      if (outcome_.cancelled) return std::move(outcome_);
    }
    if (Result<void> drained = blocks_.drain(); !drained) return std::move(drained).error();
    return std::move(outcome_);
  }

 private:
  Result<void> move(std::size_t index, const PlannedTensor& tensor) {
    if (tensor.target.dtype == DType::string) return move_strings(index, tensor);
    if (tensor.from == DType::string) return move_parsed_strings(index, tensor);
    return tensor.converts ? convert(index, tensor) : copy(index, tensor);
  }

  Result<void> copy(std::size_t index, const PlannedTensor& tensor) {
    for (std::uint64_t offset = 0; offset < tensor.bytes_in && !outcome_.cancelled;) {
      Result<std::span<std::byte>> block = blocks_.acquire();
      if (!block) return std::move(block).error();
      const std::size_t bytes = std::min<std::uint64_t>(block->size(), tensor.bytes_in - offset);
      if (auto got = reader_.read(index, offset, block->first(bytes)); !got) return got;
      blocks_.push(bytes);
      offset += bytes;
      advance(2 * bytes, tensor);
    }
    return {};
  }

  Result<void> convert(std::size_t index, const PlannedTensor& tensor) {
    const DType from = tensor.from;
    const DType to = tensor.target.dtype;
    const std::uint64_t per_block = block_elements(from, to, block_bytes_);
    std::optional<CastReport>& report = outcome_.reports[index];
    if (request_.report) report.emplace();
    for (std::uint64_t first = 0; first < tensor.target.count && !outcome_.cancelled; first += per_block) {
      const std::size_t count = std::min(per_block, tensor.target.count - first);
      const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
      const std::span<std::byte> source = source_.span().first(storage_bytes(from, count));
      if (auto got = reader_.read(index, storage_bytes(from, first), source); !got) return got;
      Result<std::span<std::byte>> block = blocks_.acquire();
      if (!block) return std::move(block).error();
      const MutableTensorView target{to, shape, block->first(storage_bytes(to, count))};
      Result<void> done = report ? cast({from, shape, source}, target, request_.options, *report)
                                 : cast({from, shape, source}, target, request_.options);
      if (!done) {
        if (done.error().element) *done.error().element += first;
        return done;
      }
      blocks_.push(target.bytes.size());
      advance(source.size() + target.bytes.size(), tensor);
    }
    return {};
  }

  Result<void> move_strings(std::size_t index, const PlannedTensor& tensor) {
    if (Result<void> drained = blocks_.drain(); !drained) return drained;
    Result<StringBuffer> strings = convert_to_strings(request_.options, tensor, index, reader_);
    if (!strings) return std::move(strings).error();
    if (Result<void> appended = writer_.append_strings(*strings); !appended) return appended;
    advance(tensor.bytes_in + tensor.target.bytes, tensor);
    return {};
  }

  Result<void> move_parsed_strings(std::size_t index, const PlannedTensor& tensor) {
    Result<std::vector<std::byte>> numbers = convert_from_strings(request_.options, tensor, index, reader_);
    if (!numbers) return std::move(numbers).error();
    if (Result<void> drained = blocks_.drain(); !drained) return drained;
    if (numbers->empty()) return {};  // writers expect no bytes for tensors that have none
    if (Result<void> appended = writer_.append(*numbers); !appended) return appended;
    advance(tensor.bytes_in + tensor.target.bytes, tensor);
    return {};
  }

  void advance(std::uint64_t bytes, const PlannedTensor& tensor) {
    if (!progress_.advance(bytes, tensor.target.name)) outcome_.cancelled = true;
  }

  const ConvertRequest& request_;
  const Plan& plan_;
  Reader& reader_;
  Writer& writer_;
  ProgressMeter& progress_;
  std::size_t block_bytes_;
  AlignedBuffer source_;
  BlockWriter blocks_;
  TransferOutcome outcome_;
};

StringView view(const StringBuffer& strings) { return {.data = strings.data, .offsets = strings.offsets}; }

}  // namespace

Result<TransferOutcome> transfer(const ConvertRequest& request, const Plan& plan, Reader& reader, Writer& writer,
                                 ProgressMeter& progress) {
  return Transfer(request, plan, reader, writer, progress).run();
}

Result<StringBuffer> convert_to_strings(const CastOptions& options, const PlannedTensor& tensor, std::size_t index,
                                        Reader& reader) {
  if (tensor.from == DType::string) return reader.read_strings(index);
  std::vector<std::byte> numbers(tensor.bytes_in);
  if (auto got = reader.read(index, 0, numbers); !got) return std::move(got).error();
  return cast_to_strings({tensor.from, tensor.target.shape, numbers}, options);
}

Result<std::vector<std::byte>> convert_from_strings(const CastOptions& options, const PlannedTensor& tensor,
                                                    std::size_t index, Reader& reader) {
  const Result<StringBuffer> strings = reader.read_strings(index);
  if (!strings) return strings.error();
  std::vector<std::byte> numbers(tensor.target.bytes);
  const MutableTensorView target{tensor.target.dtype, tensor.target.shape, numbers};
  if (auto done = cast_from_strings(view(*strings), target, options); !done) return std::move(done).error();
  return numbers;
}

}  // namespace tensorcast::convert
