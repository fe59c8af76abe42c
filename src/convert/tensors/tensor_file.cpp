// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/tensor_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>

#include "convert/plan/tensor_seed.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "convert/tensors/stored_part.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "io/memory_budget.hpp"
#include "io/output_file.hpp"
#include "io/parent_folders.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/layer/part_decoder.hpp"
#include "quantized/layout/open_input.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using file_conversion::OpenedInput;
using formats::Format;
using formats::TensorInfo;

Result<OpenedInput> open(const std::string& path, const ReadTensorOptions& options) {
  Result<OpenedInput> input = file_conversion::open_input(path, options.format, {});
  if (input || options.from == DType::undefined) return input;
  // Retries with the caller's type if the file does not name its own; any other error occurs again.
  if (input.error().code != ErrorCode::invalid_argument) return input;
  return file_conversion::open_input(path, options.format, {.raw = {}, .from = options.from});
}

Result<std::size_t> choose_tensor(const formats::Reader& reader, const std::string& wanted) {
  const std::vector<TensorInfo>& tensors = reader.tensors();
  if (wanted.empty() && tensors.size() == 1) return std::size_t{0};
  if (wanted.empty()) return invalid(fmt::format("the file has {} tensors where one is needed", tensors.size()));
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo& info) { return info.name == wanted; });
  if (found != tensors.end()) return static_cast<std::size_t>(found - tensors.begin());
  return of_tensor(wanted, invalid("the file has no such tensor"));
}

// How a tensor is read. Errors: those of a tensor that is only listed.
Result<TensorInfo> info_of(const OpenedInput& input, std::size_t index) {
  const TensorInfo& info = input.reader->tensors()[index];
  if (info.problem) return *info.problem;
  return file_conversion::readable(info);
}

Result<void> check_range(const TensorInfo& info, std::uint64_t first, std::uint64_t count) {
  const bool whole_bytes = bit_width(info.dtype) >= 8 || first % 8 == 0;
  if (whole_bytes && first <= info.count && count <= info.count - first) return {};
  Error error = invalid(
      fmt::format("{} elements from {} on cannot be read from {} of {}", count, first, info.count, name(info.dtype)));
  if (!whole_bytes) error.hint = "begin at a multiple of 8, or read a slice, which may begin anywhere";
  return of_tensor(info.name, std::move(error));
}

Result<StringBuffer> read_strings(const OpenedInput& input, std::size_t index) {
  return formats::read_all_strings(*input.reader, index, io::MemoryBudget(input.file->size()));
}

Result<Tensor> read_elements(const OpenedInput& input, std::size_t index) {
  const TensorInfo info = TRY(info_of(input, index));
  if (info.dtype == DType::string) return Tensor::own(info.shape, TRY(read_strings(input, index)));
  auto buffer = std::make_shared<file_conversion::AlignedBuffer>(info.bytes);
  TRY(input.reader->read(index, 0, buffer->span()));
  return Tensor::share({info.dtype, info.shape, buffer->span()}, buffer);
}

Result<Tensor> read_range(const OpenedInput& input, std::size_t index, std::uint64_t first, std::uint64_t count) {
  const TensorInfo info = TRY(info_of(input, index));
  if (info.dtype == DType::string) return of_tensor(info.name, invalid("strings are read as a whole tensor"));
  TRY(check_range(info, first, count));
  auto buffer = std::make_shared<file_conversion::AlignedBuffer>(storage_bytes(info.dtype, count));
  TRY(input.reader->read(index, storage_bytes(info.dtype, first), buffer->span()));
  const Shape shape{static_cast<std::int64_t>(count)};
  file_conversion::clear_rest({info.dtype, shape, buffer->span()}, count);
  return Tensor::share({info.dtype, shape, buffer->span()}, buffer);
}

Result<NamedTensor> read(const std::string& path, const ReadTensorOptions& options) {
  OpenedInput input = TRY(open(path, options));
  const std::size_t index = TRY(in_file(path, choose_tensor(*input.reader, options.tensor)));
  const TensorInfo& info = input.reader->tensors()[index];
  if (info.dtype == DType::undefined && !info.problem) {  // as bytes it would look like numbers
    return in_file(
        path,
        of_tensor(info.name, unsupported(fmt::format("elements of type {} are not supported", info.foreign_dtype))));
  }
  Tensor tensor = TRY(in_file(path, read_elements(input, index)));
  return NamedTensor{.name = input.reader->tensors()[index].name, .tensor = std::move(tensor)};
}

Result<std::vector<TensorInfo>> infos_of_tensors(std::span<const NamedTensor> tensors, const Format& format) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const auto& [tensor_name, tensor] : tensors) {
    if (!tensor.defined()) return of_tensor(tensor_name, invalid("the tensor is undefined"));
    if (!format.can_hold(tensor.dtype())) {
      return of_tensor(tensor_name,
                       unsupported(fmt::format("{} cannot hold {}", format.name, name(tensor.dtype())),
                                   fmt::format("{} can", fmt::join(file_formats_for(tensor.dtype()), ", "))));
    }
    TensorInfo& info = infos.emplace_back();
    info.name = tensor_name;
    info.dtype = tensor.dtype();
    info.shape.assign(tensor.shape().begin(), tensor.shape().end());
    info.count = tensor.count();
    info.bytes = tensor.dtype() == DType::string ? tensor.strings().data.size() : tensor.bytes().size();
  }
  return infos;
}

StringBuffer copy_of(StringView strings) {
  StringBuffer copy{.data = {strings.data.begin(), strings.data.end()},
                    .offsets = {strings.offsets.begin(), strings.offsets.end()}};
  if (copy.offsets.empty()) copy.offsets.push_back(0);
  return copy;
}

Result<void> append_strings(formats::Writer& writer, const StringBuffer& strings) {
  if (writer.measures_strings()) TRY(writer.measure_strings(strings));
  return writer.append_strings(strings);
}

Result<void> write(const std::string& path, std::span<const NamedTensor> tensors, const WriteTensorsOptions& options) {
  const Format& format = *TRY(options.format.empty() ? formats::format_for_output(path)
                                                     : file_conversion::output_format(path, options.format));
  const std::vector<TensorInfo> infos = TRY(infos_of_tensors(tensors, format));
  if (format.check != nullptr) TRY(format.check(infos));
  std::vector<std::size_t> order(infos.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (format.layout != nullptr) order = format.layout(infos);
  std::vector<TensorInfo> ordered;
  for (const std::size_t index : order) ordered.push_back(infos[index]);

  io::ParentFolders folders;
  if (options.parents) folders = TRY(io::ParentFolders::create(path));
  Result<io::OutputFile> file = io::OutputFile::create(path, options.overwrite);
  if (!file) {
    if (file.error().system_error == ENOENT) file.error().hint = "create its folder first";
    return std::move(file).error();
  }
  std::unique_ptr<formats::Writer> writer = TRY(format.create(*file, ordered, {.metadata = options.metadata}));
  for (const std::size_t index : order) {
    const Tensor& tensor = tensors[index].tensor;
    if (tensor.count() == 0) continue;
    TRY(tensor.dtype() == DType::string ? append_strings(*writer, copy_of(tensor.strings()))
                                        : writer->append(tensor.bytes()));
  }
  TRY(writer->finish());
  TRY(file->commit());
  folders.keep();
  return {};
}

}  // namespace

Result<NamedTensor> read_tensor(const std::string& path, const ReadTensorOptions& options) {
  return guarded(path, [&] { return read(path, options); });
}

Result<void> write_tensors(const std::string& path, std::span<const NamedTensor> tensors,
                           const WriteTensorsOptions& options) {
  return in_file(path, guarded(path, [&] { return write(path, tensors, options); }));
}

Result<void> write_tensor(const std::string& path, const Tensor& tensor, const WriteTensorOptions& options) {
  return guarded([&] {
    // Formats without names ignore this one.
    const NamedTensor named{.name = options.name.empty() ? "tensor" : options.name, .tensor = tensor};
    return write_tensors(path, {&named, 1}, {.format = options.format, .overwrite = options.overwrite});
  });
}

struct TensorFile::State {
  OpenedInput input;
  FileSummary summary;
  std::unique_ptr<quantized::DecodedReader> decoded = {};  // of ggml's blocks; null: not needed yet
  std::vector<quantized::Layer> layers = {};

  // Finds the decoded tensor of one in blocks, as an index into decoded->tensors(). Errors: unsupported.
  Result<std::size_t> decoded_index(std::size_t index) {
    const TensorInfo& info = input.reader->tensors()[index];
    if (decoded == nullptr) {
      layers = file_conversion::layers_of(input).layers;
      decoded = std::make_unique<quantized::DecodedReader>(*input.reader, layers);
    }
    const auto found = std::ranges::find_if(
        layers, [&](const quantized::Layer& layer) { return layer.parts.size() == 1 && layer.codes() == index; });
    if (found == layers.end()) {
      return unsupported(fmt::format("elements of type {} are not decoded", info.foreign_dtype),
                         "without a type, their bytes are read");
    }
    if (!found->problem.empty()) return unsupported(found->problem);
    return input.reader->tensors().size() + static_cast<std::size_t>(found - layers.begin());
  }

  // What indices count: of a tensor in blocks, the weight that they are decoded to.
  Result<const TensorInfo*> numbers_of(std::size_t index) {
    const TensorInfo& info = input.reader->tensors()[index];
    if (info.problem) return *info.problem;
    if (info.dtype != DType::undefined) return &info;
    const std::size_t place = TRY(decoded_index(index));
    return &decoded->tensors()[place];
  }

  Result<void> read_numbers(std::size_t index, std::uint64_t first, std::uint64_t count, const MutableTensorView& out,
                            const CastOptions& options, const Execution& execution) {
    const TensorInfo& info = input.reader->tensors()[index];
    if (info.problem) return *info.problem;
    if (info.dtype == DType::undefined) return decode(index, first, count, out, options, execution);
    const DType dtype = out.dtype;
    const Shape shape{static_cast<std::int64_t>(count)};
    if (info.dtype == DType::string) {
      if (first != 0 || count != info.count) return invalid("strings are read as a whole tensor");
      const StringBuffer strings = TRY(read_strings(input, index));
      return cast_from_strings(strings.view(), {dtype, shape, out.bytes},
                               file_conversion::with_seed_of(options, info.name));
    }
    TRY(check_range(info, first, count));
    const std::uint64_t offset = storage_bytes(info.dtype, first);
    if (info.dtype == dtype && options == CastOptions()) {
      TRY(input.reader->read(index, offset, out.bytes));
      file_conversion::clear_rest(out, count);
      return {};
    }
    const file_conversion::AlignedBuffer stored(storage_bytes(info.dtype, count));
    TRY(input.reader->read(index, offset, stored.span()));
    Execution here = execution;
    here.first_element = first;
    return counted_from(first, cast({info.dtype, shape, stored.span()}, {dtype, shape, out.bytes},
                                    file_conversion::with_seed_of(options, info.name), here));
  }

  Result<void> decode(std::size_t index, std::uint64_t first, std::uint64_t count, const MutableTensorView& out,
                      const CastOptions& options, const Execution& execution) {
    const std::size_t from = TRY(decoded_index(index));
    const TensorInfo& info = decoded->tensors()[from];
    TRY(check_range(info, first, count));
    return file_conversion::read_decoded(*decoded, from, first, count, out,
                                         file_conversion::with_seed_of(options, info.name), execution);
  }

  Result<void> read_part(std::size_t index, const formats::ArrayPart& part, const MutableTensorView& out,
                         const CastOptions& options, const Execution& execution) {
    const TensorInfo& info = input.reader->tensors()[index];
    const CastOptions named = file_conversion::with_seed_of(options, info.name);
    if (info.dtype != DType::undefined) {
      return file_conversion::read_part(*input.reader, index, part, out, named, execution);
    }
    if (bit_width(out.dtype) < 8) {
      return unsupported(fmt::format("parts of blocks are not read as {}, which has under 8 bits", name(out.dtype)));
    }
    const quantized::Layer& layer = layers[TRY(decoded_index(index)) - input.reader->tensors().size()];
    return quantized::decode_part(layer, quantized::parts_of(*input.reader, layer), part, out.dtype, out.bytes, named,
                                  execution);
  }
};

TensorFile::TensorFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TensorFile::TensorFile(TensorFile&&) noexcept = default;
TensorFile& TensorFile::operator=(TensorFile&&) noexcept = default;
TensorFile::~TensorFile() = default;

Result<TensorFile> TensorFile::open_any(const std::shared_ptr<ByteSource>& source, const std::string& name,
                                        const OpenTensorFileOptions& options) {
  return guarded(name, [&]() -> Result<TensorFile> {
    OpenedInput input =
        TRY(file_conversion::open_input(name, options.format, {.raw = options.raw, .from = options.from}, source));
    FileSummary summary = file_conversion::summary_of(input);
    return TensorFile(std::make_unique<State>(State{std::move(input), std::move(summary)}));
  });
}

Result<TensorFile> TensorFile::open(const std::string& path, const OpenTensorFileOptions& options) {
  return open_any(nullptr, path, options);
}

Result<TensorFile> TensorFile::open(std::shared_ptr<ByteSource> source, const std::string& name,
                                    const OpenTensorFileOptions& options) {
  if (source == nullptr) return in_file(name, invalid("the source is null"));
  return open_any(source, name, options);
}

const std::string& TensorFile::path() const noexcept {
  static const std::string none;
  return state_ == nullptr ? none : state_->input.file->path();
}
const FileSummary& TensorFile::summary() const noexcept {
  static const FileSummary none;
  return state_ == nullptr ? none : state_->summary;
}

template <class Read>
auto TensorFile::read_with(std::size_t index, const Read& read) -> decltype(read()) {
  if (state_ == nullptr) return moved_from("TensorFile");
  return guarded(state_->input.file->path(), [&]() -> decltype(read()) {
    const std::vector<TensorInfo>& tensors = state_->input.reader->tensors();
    if (index >= tensors.size()) {
      return in_file(state_->input.file->path(),
                     invalid(fmt::format("the file has {} tensors, and so none of index {}", tensors.size(), index)));
    }
    return in_file(state_->input.file->path(), at_tensor(tensors[index].name, read()));
  });
}

Result<Tensor> TensorFile::read(std::size_t index) {
  return read_with(index, [&] { return read_elements(state_->input, index); });
}

Result<Tensor> TensorFile::read(std::size_t index, std::uint64_t first, std::uint64_t count) {
  return read_with(index, [&] { return read_range(state_->input, index, first, count); });
}

Result<Tensor> TensorFile::read(std::size_t index, DType dtype, const CastOptions& options,
                                const Execution& execution) {
  return read_with(index, [&]() -> Result<Tensor> {
    if (!is_castable(dtype)) return invalid(fmt::format("elements are not read as {}", name(dtype)));
    const std::uint64_t count = TRY(state_->numbers_of(index))->count;
    auto buffer = std::make_shared<file_conversion::AlignedBuffer>(storage_bytes(dtype, count));
    const std::vector<std::int64_t>& shape = state_->input.reader->tensors()[index].shape;
    TRY(state_->read_numbers(index, 0, count, {dtype, shape, buffer->span()}, options, execution));
    return Tensor::share({dtype, shape, buffer->span()}, buffer);
  });
}

Result<void> TensorFile::read(std::size_t index, std::uint64_t first, const MutableTensorView& out,
                              const CastOptions& options, const Execution& execution) {
  return read_with(index, [&]() -> Result<void> {
    if (!is_castable(out.dtype)) return invalid(fmt::format("elements are not read as {}", name(out.dtype)));
    const std::size_t count = TRY(element_count(out.shape));
    if (storage_bytes(out.dtype, count) != out.bytes.size()) {
      return invalid(fmt::format("{} elements of {} take {} bytes, not {}", count, name(out.dtype),
                                 storage_bytes(out.dtype, count), out.bytes.size()));
    }
    return state_->read_numbers(index, first, count, out, options, execution);
  });
}

Result<Tensor> TensorFile::read_slice(std::size_t index, std::span<const IndexRange> slice) {
  return read_with(index, [&]() -> Result<Tensor> {
    const TensorInfo info = TRY(info_of(state_->input, index));
    const formats::ArrayPart part = TRY(formats::ArrayPart::create(info.shape, slice));
    auto buffer = std::make_shared<file_conversion::AlignedBuffer>(storage_bytes(info.dtype, part.count()));
    const Shape shape = part.shape();
    TRY(file_conversion::read_part(*state_->input.reader, index, part, {info.dtype, shape, buffer->span()}, {}, {}));
    return Tensor::share({info.dtype, shape, buffer->span()}, buffer);
  });
}

Result<void> TensorFile::read_slice(std::size_t index, std::span<const IndexRange> slice, const MutableTensorView& out,
                                    const CastOptions& options, const Execution& execution) {
  return read_with(index, [&]() -> Result<void> {
    if (!is_castable(out.dtype)) return invalid(fmt::format("elements are not read as {}", name(out.dtype)));
    const std::vector<std::int64_t>& shape = TRY(state_->numbers_of(index))->shape;
    const formats::ArrayPart part = TRY(formats::ArrayPart::create(shape, slice));
    if (storage_bytes(out.dtype, part.count()) != out.bytes.size()) {
      return invalid(fmt::format("{} elements of {} take {} bytes, not {}", part.count(), name(out.dtype),
                                 storage_bytes(out.dtype, part.count()), out.bytes.size()));
    }
    return state_->read_part(index, part, out, options, execution);
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
