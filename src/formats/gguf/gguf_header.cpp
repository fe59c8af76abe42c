// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/stream_source.hpp"
#include "formats/gguf/gguf_metadata.hpp"
#include "formats/gguf/gguf_types.hpp"
#include "formats/metadata_text.hpp"
#include "formats/npy/npy_text.hpp"
#include "io/memory_budget.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats::gguf {
namespace {

constexpr std::uint32_t oldest_version = 2;
constexpr std::uint32_t newest_version = 3;
constexpr std::uint64_t max_metadata_bytes = std::uint64_t{512} << 20;
constexpr std::size_t max_read_rank = 64;
constexpr std::string_view original_shape_prefix = "comfy.gguf.orig_shape.";

Result<void> check_version(std::uint32_t version) {
  if (version >= oldest_version && version <= newest_version) return {};
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= newest_version) {
    return unsupported("this GGUF file is big-endian",
                       "gguf-convert-endian of the Python package gguf makes it little-endian");
  }
  return unsupported(
      fmt::format("version {} of GGUF is not supported, only {} and {}", version, oldest_version, newest_version));
}

// Reads what the header says about one tensor; `begin` is the offset in the data.
Result<TensorInfo> read_tensor(WindowReader& reader, std::uint64_t& begin) {
  std::string name = TRY(read_text(reader));
  if (!npy::is_utf8(name)) return malformed("the name is not UTF-8", name);
  TensorInfo tensor{.name = std::move(name), .shape = {}};
  const auto fail = [&](std::string what) { return malformed(std::move(what), tensor.name); };
  const std::uint32_t rank = TRY(reader.get<std::uint32_t>());
  if (rank > max_read_rank) return fail(fmt::format("{} dimensions", rank));
  TRY(reader.budget().take_grown<std::int64_t>(rank));
  for (std::uint32_t i = 0; i < rank; ++i) {
    const std::uint64_t extent = TRY(reader.get<std::uint64_t>());
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return fail(fmt::format("a dimension of {}", extent));
    }
    tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const std::uint64_t row_elements = tensor.shape.empty() ? 1 : static_cast<std::uint64_t>(tensor.shape.front());
  std::ranges::reverse(tensor.shape);  // GGUF lists the fastest dimension first

  const std::uint32_t number = TRY(reader.get<std::uint32_t>());
  begin = TRY(reader.get<std::uint64_t>());
  const Result<std::size_t> count = element_count(tensor.shape);
  if (!count) return fail(count.error().message);
  tensor.count = *count;
  const TensorType* type = find_type(number);
  if (type == nullptr) {
    tensor.foreign_dtype = unknown_type_name(number);  // measure_unknown() finds its bytes
    return tensor;
  }
  if (row_elements % type->block_elements != 0) {
    return fail(fmt::format("rows of {} elements are not whole blocks of {}, which have {}", row_elements, type->name,
                            type->block_elements));
  }
  if (__builtin_mul_overflow(tensor.count / type->block_elements, std::uint64_t{type->block_bytes}, &tensor.bytes)) {
    return fail("the shape has more bytes than can be counted");
  }
  tensor.dtype = type->dtype;
  if (type->dtype == DType::undefined) tensor.foreign_dtype = type->name;
  return tensor;
}

void set_problem(TensorInfo& tensor, const io::InputFile& file, Error problem) {
  problem.file = file.path();
  problem.tensor = tensor.name;
  tensor.problem = std::make_shared<const Error>(std::move(problem));
}

// Gives tensors of unknown types the bytes up to where the next one begins, or the file ends: a copy of them is right
// whatever they mean. `offsets` count from the file's start.
void measure_unknown(Header& header, const io::InputFile& file) {
  std::vector<std::uint64_t> begins = header.offsets;
  begins.push_back(file.size());
  std::ranges::sort(begins);
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    TensorInfo& tensor = header.tensors[i];
    if (tensor.count == 0 || find_type(tensor.dtype, tensor.foreign_dtype) != nullptr) continue;
    const auto next = std::ranges::upper_bound(begins, header.offsets[i]);
    if (next != begins.end() && header.offsets[i] < file.size()) {
      tensor.bytes = *next - header.offsets[i];
      continue;
    }
    set_problem(
        tensor, file,
        unsupported(fmt::format("{} of ggml is not known, and the file has no data for it", tensor.foreign_dtype)));
  }
}

// Checks that the data of all tensors lie inside the file, aligned and apart. `offsets` count from the file's start.
Result<void> check_offsets(const Header& header, std::uint64_t data_begin, std::uint32_t alignment,
                           std::uint64_t file_bytes) {
  std::vector<std::size_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(header.offsets[a], header.tensors[a].bytes) <
           std::pair(header.offsets[b], header.tensors[b].bytes);
  });
  std::uint64_t end = data_begin;
  for (const std::size_t index : order) {
    const TensorInfo& tensor = header.tensors[index];
    const std::uint64_t begin = header.offsets[index];
    if ((begin - data_begin) % alignment != 0) {
      return malformed(
          fmt::format("the data begin at {}, which is not a multiple of {}", begin - data_begin, alignment),
          tensor.name);
    }
    if (tensor.bytes == 0) continue;
    if (begin < end) return malformed("the data overlap those of another tensor", tensor.name);
    if (begin > file_bytes || tensor.bytes > file_bytes - begin) {
      return malformed(
          fmt::format("the data of {} bytes at {} end beyond the file's {}", tensor.bytes, begin, file_bytes),
          tensor.name);
    }
    end = begin + tensor.bytes;
  }
  return {};
}

// Returns the number of LLAMA_FTYPE for a file that had another, or this one before; nullopt: it has none.
std::optional<std::uint32_t> file_type_of(std::span<const TensorInfo> tensors, std::uint32_t before) {
  std::map<std::string_view, std::uint64_t> elements;  // of matrices, unless there are none
  const bool has_matrices = std::ranges::any_of(tensors, [](const auto& tensor) { return tensor.shape.size() > 1; });
  for (const TensorInfo& tensor : tensors) {
    if (has_matrices && tensor.shape.size() < 2) continue;
    const TensorType* type = find_type(tensor.dtype, tensor.foreign_dtype);
    if (type != nullptr) elements[type->name] += tensor.count;
  }
  const auto most = std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  if (most == elements.end()) return std::nullopt;
  const block::GgufFileTypes& files = find_type(most->first)->files;
  if (files.first > files.last) return std::nullopt;
  return before >= files.first && before <= files.last ? before : files.first;
}

// Parses an array of extents; nullopt: it is none, or its product is not `count`.
std::optional<std::vector<std::int64_t>> parse_shape(const std::string& text, std::uint64_t count) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array() || json.size() > max_read_rank) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (const auto& extent : json) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
      return std::nullopt;
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  const Result<std::size_t> elements = element_count(shape);
  return elements && *elements == count ? std::optional(std::move(shape)) : std::nullopt;
}

// ggml numbers the layouts of its blocks; a file of numbers alone may lack the key.
void check_block_version(Header& header, const io::InputFile& file) {
  const std::string* const version = find_text(header.metadata, quantization_version_key);
  if (version == nullptr || version->empty() || *version == block_version) return;
  for (TensorInfo& tensor : header.tensors) {
    if (tensor.foreign_dtype.empty() || tensor.problem) continue;
    set_problem(tensor, file,
                unsupported(fmt::format("{} is {}, and the blocks of version {} alone are known",
                                        quantization_version_key, *version, block_version)));
  }
}

// A model in several files: this is read alone.
void note_split(Header& header) {
  const std::string* const count = find_text(header.metadata, "split.count");
  if (count == nullptr || count->empty() || *count == "0" || *count == "1") return;
  header.warnings.push_back(fmt::format(
      "this is one of {} files of a model (split.count), and the tensors of the others are not read", *count));
}

}  // namespace

Result<Header> read_header(const io::InputFile& file) {
  io::MemoryBudget budget(file.size());
  FileSource source(file);
  WindowReader reader(source, magic.size(), budget, [](std::string what) { return malformed(std::move(what)); });
  const std::uint32_t version = TRY(reader.get<std::uint32_t>());
  TRY(check_version(version));
  const std::uint64_t tensor_count = TRY(reader.get<std::uint64_t>());

  const std::uint64_t native_begin = reader.position();
  const std::uint64_t key_count = TRY(reader.get<std::uint64_t>());
  HeaderMetadata metadata = TRY(read_metadata(reader, key_count));
  const std::uint64_t native_bytes = reader.position() - native_begin;
  if (native_bytes > max_metadata_bytes) {
    return unsupported(fmt::format("the metadata have {} bytes; {} are allowed", native_bytes, max_metadata_bytes));
  }
  TRY(budget.take(3 * native_bytes));
  std::string native(native_bytes, '\0');
  TRY(file.read(native_begin, std::as_writable_bytes(std::span(native))));

  constexpr std::uint64_t least_bytes = 8 + 4 + 4 + 8;  // of what the header says about a tensor
  if (tensor_count > reader.left() / least_bytes) {
    return malformed(fmt::format("{} tensors do not fit into the file", tensor_count));
  }
  Header header{.tensors = {},
                .offsets = {},
                .metadata = std::move(metadata.texts),
                .native_metadata =
                    pack_native({.alignment = metadata.alignment,
                                 .file_type_at = metadata.file_type_at == 0
                                                     ? 0
                                                     : static_cast<std::uint32_t>(metadata.file_type_at - native_begin),
                                 .bytes = native}),
                .warnings = {}};
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    TRY(budget.take_grown<TensorInfo>());
    std::uint64_t begin = 0;
    TensorInfo tensor = TRY(read_tensor(reader, begin));
    header.tensors.push_back(std::move(tensor));
    header.offsets.push_back(begin);
  }
  if (const auto twice = find_repeated(header.tensors, &TensorInfo::name)) {
    return malformed("the name occurs twice", std::string(*twice));
  }

  const std::uint64_t data_begin = reader.position() + padding(reader.position(), metadata.alignment);
  for (std::size_t i = 0; i < header.offsets.size(); ++i) {
    if (__builtin_add_overflow(header.offsets[i], data_begin, &header.offsets[i])) {
      return malformed("the data begin beyond the end of the file", header.tensors[i].name);
    }
  }
  TRY(budget.take((header.offsets.size() + 1) * sizeof header.offsets[0]));
  measure_unknown(header, file);
  TRY(check_offsets(header, data_begin, metadata.alignment, file.size()));
  check_block_version(header, file);
  note_split(header);
  return header;
}

void apply_original_shapes(Header& header, const io::InputFile& file) {
  std::unordered_map<std::string_view, TensorInfo*> tensors;
  for (TensorInfo& tensor : header.tensors) tensors.emplace(tensor.name, &tensor);
  std::erase_if(header.metadata, [&](const auto& entry) {
    const auto& [key, text] = entry;
    if (!key.starts_with(original_shape_prefix)) return false;
    const auto found = tensors.find(std::string_view(key).substr(original_shape_prefix.size()));
    if (found == tensors.end()) return false;
    TensorInfo& tensor = *found->second;
    if (std::optional<std::vector<std::int64_t>> shape = parse_shape(text, tensor.count)) {
      tensor.shape = std::move(*shape);
      return true;
    }
    set_problem(tensor, file,
                parse_error(fmt::format("{} is {}, which is no shape of its {} elements", key, text, tensor.count)));
    return false;
  });
}

std::string pack_native(const NativeMetadata& native) {
  std::string packed;
  packed.reserve(sizeof native.alignment + sizeof native.file_type_at + native.bytes.size());
  put(packed, native.alignment);
  put(packed, native.file_type_at);
  packed += native.bytes;
  return packed;
}

NativeMetadata unpack_native(std::string_view packed) {
  NativeMetadata native;
  std::memcpy(&native.alignment, packed.data(), sizeof native.alignment);
  packed.remove_prefix(sizeof native.alignment);
  std::memcpy(&native.file_type_at, packed.data(), sizeof native.file_type_at);
  native.bytes = packed.substr(sizeof native.file_type_at);
  return native;
}

std::string format_header(std::span<const TensorInfo> tensors, const NativeMetadata& native, std::uint32_t file_type) {
  std::string bytes(magic);
  put(bytes, newest_version);
  put(bytes, std::uint64_t{tensors.size()});
  bytes += native.bytes;
  if (native.file_type_at != 0) {
    const std::size_t at = bytes.size() - native.bytes.size() + native.file_type_at;
    std::uint32_t before = 0;
    std::memcpy(&before, bytes.data() + at, sizeof before);
    const std::optional<std::uint32_t> type = file_type != 0 ? file_type : file_type_of(tensors, before);
    if (type) std::memcpy(bytes.data() + at, &*type, sizeof *type);
  }
  std::uint64_t begin = 0;
  for (const TensorInfo& tensor : tensors) {
    put(bytes, std::uint64_t{tensor.name.size()});
    bytes += tensor.name;
    put(bytes, static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i-- > 0;) put(bytes, static_cast<std::uint64_t>(tensor.shape[i]));
    put(bytes, *type_number(tensor.dtype, tensor.foreign_dtype));
    put(bytes, begin);
    begin += tensor.bytes + padding(tensor.bytes, native.alignment);
  }
  bytes.append(padding(bytes.size(), native.alignment), '\0');
  return bytes;
}

}  // namespace tensorcast::formats::gguf
