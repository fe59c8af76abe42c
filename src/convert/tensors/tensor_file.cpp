// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/tensor_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>

#include "convert/run/aligned_buffer.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "io/memory_budget.hpp"
#include "io/output_file.hpp"
#include "io/parent_folders.hpp"
#include "quantized/layout/open_input.hpp"

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

// Fails for tensors whose elements this library cannot hold.
Result<void> check_readable(const TensorInfo& info) {
  if (info.problem) return *info.problem;
  if (info.dtype != DType::undefined) return {};
  return of_tensor(info.name, unsupported(fmt::format("elements of type {} are not supported", info.foreign_dtype)));
}

Result<Tensor> read_elements(const OpenedInput& input, std::size_t index) {
  formats::Reader& reader = *input.reader;
  const TensorInfo& info = reader.tensors()[index];
  TRY(check_readable(info));
  if (info.dtype == DType::string) {
    return Tensor::own(info.shape, TRY(formats::read_all_strings(reader, index, io::MemoryBudget(input.file->size()))));
  }
  auto buffer = std::make_shared<file_conversion::AlignedBuffer>(info.bytes);
  TRY(reader.read(index, 0, buffer->span()));
  return Tensor::share({info.dtype, info.shape, buffer->span()}, buffer);
}

Result<Tensor> read_range(const OpenedInput& input, std::size_t index, std::uint64_t first, std::uint64_t count) {
  const TensorInfo& info = input.reader->tensors()[index];
  TRY(check_readable(info));
  const bool whole_bytes = bit_width(info.dtype) >= 8 || first % 8 == 0;
  if (info.dtype == DType::string || !whole_bytes || first > info.count || count > info.count - first) {
    return of_tensor(info.name, invalid(fmt::format("elements {} to {} cannot be read from {} of {}", first,
                                                    first + count, info.count, name(info.dtype))));
  }
  auto buffer = std::make_shared<file_conversion::AlignedBuffer>(storage_bytes(info.dtype, count));
  TRY(input.reader->read(index, storage_bytes(info.dtype, first), buffer->span()));
  return Tensor::share({info.dtype, {static_cast<std::int64_t>(count)}, buffer->span()}, buffer);
}

Result<NamedTensor> read(const std::string& path, const ReadTensorOptions& options) {
  OpenedInput input = TRY(open(path, options));
  const std::size_t index = TRY(in_file(path, choose_tensor(*input.reader, options.tensor)));
  Tensor tensor = TRY(in_file(path, read_elements(input, index)));
  return NamedTensor{.name = input.reader->tensors()[index].name, .tensor = std::move(tensor)};
}

Result<std::vector<TensorInfo>> infos_of(std::span<const NamedTensor> tensors, const Format& format) {
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
  const std::vector<TensorInfo> infos = TRY(infos_of(tensors, format));
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
};

TensorFile::TensorFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TensorFile::TensorFile(TensorFile&&) noexcept = default;
TensorFile& TensorFile::operator=(TensorFile&&) noexcept = default;
TensorFile::~TensorFile() = default;

Result<TensorFile> TensorFile::open(const std::string& path, const OpenTensorFileOptions& options) {
  return guarded(path, [&]() -> Result<TensorFile> {
    OpenedInput input =
        TRY(file_conversion::open_input(path, options.format, {.raw = options.raw, .from = options.from}));
    FileSummary summary = file_conversion::summary_of(input);
    return TensorFile(std::make_unique<State>(State{std::move(input), std::move(summary)}));
  });
}

const FileSummary& TensorFile::summary() const noexcept { return state_->summary; }

template <class Read>
Result<Tensor> TensorFile::read_with(std::size_t index, const Read& read) {
  return guarded([&]() -> Result<Tensor> {
    const std::vector<TensorInfo>& tensors = state_->input.reader->tensors();
    if (index >= tensors.size()) {
      return in_file(state_->input.file->path(),
                     invalid(fmt::format("the file has {} tensors, and so none of index {}", tensors.size(), index)));
    }
    return in_file(state_->input.file->path(), at_tensor(tensors[index].name, read(state_->input)));
  });
}

Result<Tensor> TensorFile::read(std::size_t index) {
  return read_with(index, [&](const OpenedInput& input) { return read_elements(input, index); });
}

Result<Tensor> TensorFile::read(std::size_t index, std::uint64_t first, std::uint64_t count) {
  return read_with(index, [&](const OpenedInput& input) { return read_range(input, index, first, count); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
