// SPDX-License-Identifier: Apache-2.0
#include "convert/run/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "cast/parallel.hpp"
#include "codec/reference_cast.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "convert/run/element_blocks.hpp"
#include "convert/run/string_blocks.hpp"
#include "dtype/error_places.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::file_conversion {
namespace {

using formats::Reader;

constexpr std::size_t run_elements = 4096;  // per comparison with the reference; a multiple of 8

Error differs(std::string message, std::optional<std::uint64_t> element = {}) {
  return Error{.code = ErrorCode::internal,
               .message = std::move(message),
               .hint = "the memory, the disk or tensorcast is at fault; the output was discarded",
               .element = element};
}

// Clears the bits after the last element of a narrow type, which a format need not keep. `end` is the end of the
// tensor's bytes.
void clear_padding(const PlannedTensor& tensor, std::span<std::byte> end) {
  const std::uint64_t used_bits = tensor.target.count * static_cast<std::uint64_t>(bit_width(tensor.target.dtype)) % 8;
  if (used_bits != 0) end.back() &= static_cast<std::byte>((1u << used_bits) - 1);
}

class Verification {
 public:
  Verification(const ConversionRun& run, std::span<const PlannedTensor* const> tensors, Reader& input, Reader& output,
               ProgressMeter& progress)
      : run_(run),
        tensors_(tensors),
        input_(input),
        output_(output),
        progress_(progress),
        source_(threaded_block_bytes),
        actual_(threaded_block_bytes),
        expected_(threaded_block_bytes) {
    std::uint64_t elements = 0;
    for (const PlannedTensor* tensor : tensors) elements += tensor->casts() ? tensor->target.count : 0;
    reference_stride_ = std::max<std::uint64_t>(1, (elements + max_reference_elements - 1) / max_reference_elements);
  }

  Result<bool> run() {
    if (output_.tensors().size() != tensors_.size()) {
      return differs(fmt::format("the output has {} tensors instead of {}", output_.tensors().size(), tensors_.size()));
    }
    for (std::size_t place = 0; place < tensors_.size() && !cancelled_; ++place) {
      const PlannedTensor& tensor = *tensors_[place];
      TRY(at_tensor(tensor.name(), check_header(tensor, output_.tensors()[place])));
      TRY(at_tensor(tensor.name(), check_data(tensor, place)));
    }
    return !cancelled_;
  }

 private:
  static Result<void> check_header(const PlannedTensor& tensor, const formats::TensorInfo& found) {
    const formats::TensorInfo& wanted = tensor.target;
    if (found.name != wanted.name && !found.name.empty()) {
      return differs(fmt::format("the output has \"{}\" instead", found.name));
    }
    if (found.dtype != wanted.dtype || found.foreign_dtype != wanted.foreign_dtype) {
      return differs(fmt::format("the output has {} instead of {}", name(found.dtype), name(wanted.dtype)));
    }
    if (found.shape != wanted.shape) return differs("the output has another shape");
    return {};
  }

  // `place` is the tensor's index in the output.
  Result<void> check_data(const PlannedTensor& tensor, std::size_t place) {
    if (tensor.target.dtype == DType::string) return check_strings(tensor, place);
    if (tensor.from == DType::string) return check_parsed_strings(tensor, place);
    return tensor.casts() ? check_converted(tensor, place) : check_copied(tensor, place);
  }

  Result<void> check_copied(const PlannedTensor& tensor, std::size_t place) {
    for (std::uint64_t offset = 0; offset < tensor.bytes_in && !cancelled_;) {
      const std::size_t bytes = std::min<std::uint64_t>(threaded_block_bytes, tensor.bytes_in - offset);
      const std::span<std::byte> wanted = source_.span().first(bytes);
      const std::span<std::byte> found = actual_.span().first(bytes);
      TRY(input_.read(tensor.source, offset, wanted));
      TRY(output_.read(place, offset, found));
      if (offset + bytes == tensor.bytes_in) {
        clear_padding(tensor, wanted);
        clear_padding(tensor, found);
      }
      if (std::memcmp(wanted.data(), found.data(), bytes) != 0) return differs("the copied bytes differ");
      offset += bytes;
      advance(2 * bytes, tensor);
    }
    return {};
  }

  Result<void> check_converted(const PlannedTensor& tensor, std::size_t place) {
    const DType from = tensor.from;
    const DType to = tensor.target.dtype;
    const CastOptions options = options_of(run_, tensor);
    const codec::Policy policy = TRY(codec::resolve_policy(options, from, to));
    const std::uint64_t per_block = block_elements(from, to, threaded_block_bytes);
    for (std::uint64_t first = 0; first < tensor.target.count && !cancelled_; first += per_block) {
      const std::size_t count = std::min(per_block, tensor.target.count - first);
      const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
      const std::span<std::byte> source = source_.span().first(storage_bytes(from, count));
      const std::span<std::byte> actual = actual_.span().first(storage_bytes(to, count));
      TRY(input_.read(tensor.source, storage_bytes(from, first), source));
      TRY(output_.read(place, storage_bytes(to, first), actual));
      TRY(compare_with_cast({from, shape, source}, to, actual, options, first));
      TRY(compare_with_reference(from, source, to, actual, count, first, policy));
      // Of a decoded layer, what is read of its parts counts, not the numbers.
      advance(tensor.decodes() ? actual.size() : source.size() + actual.size(), tensor);
    }
    if (tensor.decodes() && !cancelled_) advance(tensor.bytes_in, tensor);
    return {};
  }

  Result<void> compare_with_cast(const TensorView& source, DType to, std::span<const std::byte> actual,
                                 const CastOptions& options, std::uint64_t first) {
    const std::span<std::byte> expected = expected_.span().first(actual.size());
    Execution execution = run_.execution;
    execution.first_element = first;
    TRY(cast(source, {to, source.shape, expected}, options, execution));
    if (std::memcmp(actual.data(), expected.data(), actual.size()) == 0) return {};
    return first_difference(to, actual.data(), expected.data(), static_cast<std::size_t>(source.shape[0]), first);
  }

  Result<void> compare_with_reference(DType from, std::span<const std::byte> source, DType to,
                                      std::span<const std::byte> actual, std::size_t count, std::uint64_t first,
                                      const codec::Policy& policy) {
    std::mutex mutex;
    Result<void> outcome;
    const std::size_t runs = (count + run_elements - 1) / run_elements;
    run_tasks(runs, run_.execution, [&](std::size_t run) {
      if ((first / run_elements + run) % reference_stride_ != 0) return;
      const std::size_t begin = run * run_elements;
      const std::size_t length = std::min(run_elements, count - begin);
      std::byte expected[run_elements * sizeof(double)];
      const std::byte* found = actual.data() + storage_bytes(to, begin);
      Result<void> compared = codec::reference_cast(source.data() + storage_bytes(from, begin), from, expected, to,
                                                    length, policy, first + begin);
      if (compared && std::memcmp(found, expected, storage_bytes(to, length)) != 0) {
        compared = first_difference(to, found, expected, length, first + begin);
      }
      if (compared) return;
      const std::scoped_lock lock(mutex);
      if (outcome) outcome = std::move(compared);
    });
    return outcome;
  }

  static Error first_difference(DType to, const std::byte* actual, const std::byte* expected, std::size_t count,
                                std::uint64_t first) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t found = codec::load_code(to, actual, i);
      const std::uint64_t wanted = codec::load_code(to, expected, i);
      if (found != wanted) {
        return differs(fmt::format("the output has code {:#x} where {:#x} belongs", found, wanted), first + i);
      }
    }
    return differs("unused bits of the last byte are not zero");
  }

  Result<void> check_strings(const PlannedTensor& tensor, std::size_t place) {
    StringComparison found(output_, place, threaded_block_bytes);
    for (StringBlocks wanted(options_of(run_, tensor), tensor, input_, threaded_block_bytes);
         !wanted.at_end() && !cancelled_;) {
      const std::uint64_t first = wanted.done();
      const std::size_t equal = TRY(found.count_equal(TRY(wanted.next())));
      if (first + equal != wanted.done()) return differs("the strings differ", first + equal);
      advance(0, tensor);
    }
    advance(tensor.bytes_in + tensor.target.bytes, tensor);
    return {};
  }

  Result<void> check_parsed_strings(const PlannedTensor& tensor, std::size_t place) {
    const DType to = tensor.target.dtype;
    for (NumberBlocks wanted(options_of(run_, tensor), tensor, input_, threaded_block_bytes);
         !wanted.at_end() && !cancelled_;) {
      const std::uint64_t first = wanted.done();
      const std::span<std::byte> numbers = TRY(wanted.next(expected_.span()));
      const std::span<std::byte> actual = actual_.span().first(numbers.size());
      TRY(output_.read(place, storage_bytes(to, first), actual));
      if (std::memcmp(numbers.data(), actual.data(), actual.size()) != 0) {
        return first_difference(to, actual.data(), numbers.data(), wanted.done() - first, first);
      }
      advance(0, tensor);
    }
    advance(tensor.bytes_in + tensor.target.bytes, tensor);
    return {};
  }

  void advance(std::uint64_t bytes, const PlannedTensor& tensor) {
    if (!progress_.advance(bytes, tensor.name())) cancelled_ = true;
  }

  const ConversionRun& run_;
  std::span<const PlannedTensor* const> tensors_;
  Reader& input_;
  Reader& output_;
  ProgressMeter& progress_;
  AlignedBuffer source_;
  AlignedBuffer actual_;
  AlignedBuffer expected_;
  std::uint64_t reference_stride_ = 1;
  bool cancelled_ = false;
};

}  // namespace

Result<bool> verify(const ConversionRun& run, std::span<const PlannedTensor* const> tensors, Reader& input,
                    Reader& output, ProgressMeter& progress) {
  return Verification(run, tensors, input, output, progress).run();
}

}  // namespace tensorcast::file_conversion
