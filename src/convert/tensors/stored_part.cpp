// SPDX-License-Identifier: Apache-2.0
#include "convert/tensors/stored_part.hpp"

#include <algorithm>
#include <vector>

#include "codec/packing.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::file_conversion {
namespace {

constexpr std::uint64_t most_elements = std::uint64_t{1} << 17;
constexpr std::uint64_t most_decoded = std::uint64_t{1} << 16;  // stay in the cache while they are rounded

class PartReads {
 public:
  PartReads(formats::Reader& reader, std::size_t index, const MutableTensorView& out, const CastOptions& options,
            const Execution& execution, std::uint64_t piece, bool may_copy)
      : reader_(reader), index_(index), out_(out), options_(options), execution_(execution), piece_(piece) {
    const formats::TensorInfo& info = reader.tensors()[index];
    stored_ = info.dtype == DType::undefined ? DType::uint8 : info.dtype;
    is_copy_ = may_copy && stored_ == out.dtype && options == CastOptions();
  }

  // Elements of the tensor from `from` on become those of the part from `to` on.
  Result<void> read(std::uint64_t from, std::uint64_t to, std::uint64_t count) {
    const bool whole_bytes = bit_width(stored_) >= 8, whole_results = bit_width(out_.dtype) >= 8;
    if (is_copy_ && whole_bytes) {
      const std::span<std::byte> bytes = out_.bytes.subspan(storage_bytes(stored_, to), storage_bytes(stored_, count));
      return reader_.read(index_, storage_bytes(stored_, from), bytes);
    }
    for (std::uint64_t done = 0; done < count; done += piece_) {
      const std::uint64_t n = std::min(piece_, count - done);
      TRY(load(from + done, n));
      if (!whole_results) cast_.resize(storage_bytes(out_.dtype, n));
      const std::span<std::byte> target =
          whole_results ? out_.bytes.subspan(storage_bytes(out_.dtype, to + done), storage_bytes(out_.dtype, n))
                        : std::span(cast_);
      TRY(round(from + done, n, target));
      if (!whole_results) {
        formats::copy_packed(bit_width(out_.dtype), cast_.data(), 0, out_.bytes.data(), to + done, n);
      }
    }
    return {};
  }

 private:
  // Reads elements to the begin of elements_, whatever bits they begin at.
  Result<void> load(std::uint64_t from, std::uint64_t count) {
    elements_.resize(storage_bytes(stored_, count));
    if (bit_width(stored_) >= 8) return reader_.read(index_, storage_bytes(stored_, from), elements_);
    const std::uint64_t before = from % 8;
    packed_.resize(storage_bytes(stored_, count + before));
    TRY(reader_.read(index_, storage_bytes(stored_, from - before), packed_));
    formats::copy_packed(bit_width(stored_), packed_.data(), before, elements_.data(), 0, count);
    return {};
  }

  Result<void> round(std::uint64_t from, std::uint64_t count, std::span<std::byte> target) const {
    const Shape shape{static_cast<std::int64_t>(count)};
    Execution execution = execution_;
    execution.first_element = from;
    return counted_from(from, cast({stored_, shape, elements_}, {out_.dtype, shape, target}, options_, execution));
  }

  formats::Reader& reader_;
  const std::size_t index_;
  const MutableTensorView& out_;
  const CastOptions& options_;
  const Execution& execution_;
  const std::uint64_t piece_;  // elements at once
  DType stored_ = DType::undefined;
  bool is_copy_ = false;
  std::vector<std::byte> elements_, packed_, cast_;
};

}  // namespace

void clear_rest(const MutableTensorView& out, std::uint64_t count) noexcept {
  if (count != 0) codec::clear_tail(out.dtype, out.bytes.data(), count);
}

Result<void> read_part(formats::Reader& reader, std::size_t index, const formats::ArrayPart& part,
                       const MutableTensorView& out, const CastOptions& options, const Execution& execution) {
  if (reader.tensors()[index].dtype == DType::string) return invalid("strings are read as a whole tensor");
  PartReads reads(reader, index, out, options, execution, most_elements, true);
  TRY(part.visit(
      [&](std::uint64_t from, std::uint64_t to, std::uint64_t count) { return reads.read(from, to, count); }));
  clear_rest(out, part.count());
  return {};
}

Result<void> read_decoded(formats::Reader& reader, std::size_t index, std::uint64_t first, std::uint64_t count,
                          const MutableTensorView& out, const CastOptions& options, const Execution& execution) {
  TRY(PartReads(reader, index, out, options, execution, most_decoded, false).read(first, 0, count));
  clear_rest(out, count);
  return {};
}

}  // namespace tensorcast::file_conversion
