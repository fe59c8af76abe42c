// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz: a zip archive of .npy files, stored (numpy.savez) or deflated (numpy.savez_compressed).

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/distinct_names.hpp"
#include "formats/format_list.hpp"
#include "formats/npy/npy_array.hpp"
#include "formats/npy/npy_dtypes.hpp"
#include "formats/npy/npy_encoder.hpp"
#include "formats/npy/npy_header.hpp"
#include "formats/npy/npy_text.hpp"
#include "formats/npz/entry_source.hpp"
#include "formats/npz/zip_reader.hpp"
#include "formats/npz/zip_writer.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats {
namespace {

constexpr std::array<std::string_view, 1> extensions = {".npz"};
constexpr std::string_view suffix = ".npy";

// The entry's comment names a type that NumPy lacks, as the .npy header cannot; other readers ignore it.
constexpr std::string_view dtype_comment = "dtype=";

std::string tensor_name(const npz::ZipEntry& entry) {
  std::string name = entry.name;
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

// Returns the type of an opaque descriptor: `from` if given, else the comment's.
DType opaque_dtype(const npz::ZipEntry& entry, DType from) {
  if (from != DType::undefined || !entry.comment.starts_with(dtype_comment)) return from;
  const Result<DType> dtype = parse_dtype(std::string_view(entry.comment).substr(dtype_comment.size()));
  return dtype ? *dtype : DType::undefined;
}

class NpzReader final : public Reader {
 public:
  NpzReader(const io::InputFile& file, std::vector<npz::ZipEntry> entries, SourceTypes from)
      : file_(file), entries_(std::move(entries)), from_(std::move(from)) {}

  Result<void> open() {
    leave_out_files();
    std::vector<npz::ZipEntry> arrays;
    for (std::size_t index = 0; index < entries_.size(); ++index) {
      Result<void> opened = open_entry(index);
      if (!opened && is_no_weight()) {
        leave_out(entries_[index], opened.error().message);
        continue;
      }
      TensorInfo info = TRY(located(opened ? array_->info() : info_of_unknown_type(std::move(opened).error()), index));
      info.name = tensor_name(entries_[index]);
      tensors_.push_back(std::move(info));
      compressed_ = compressed_ || entries_[index].deflated;
      arrays.push_back(entries_[index]);
    }
    source_.reset();
    array_.reset();
    current_ = SIZE_MAX;
    entries_ = std::move(arrays);
    const auto twice = find_repeated(tensors_, &TensorInfo::name);
    if (!twice) return {};
    return in_file(file_.path(), of_tensor(std::string(*twice), parse_error("two entries have this name")));
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Metadata& metadata() const override { return metadata_; }
  bool compressed() const override { return compressed_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

  Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    if (index != current_ || offset == 0) {
      TRY(open_entry(index));
    }
    return located(array_->read(offset, out), index);
  }
  Result<StringBuffer> read_strings(std::size_t index, std::uint64_t first, std::size_t block_bytes) override {
    if (index != current_ || first == 0) {
      TRY(open_entry(index));
    }
    return located(array_->read_strings(first, block_bytes), index);
  }

 private:
  // A file beside the arrays, such as a readme, is no array; macOS packs what its files have besides their content.
  void leave_out_files() {
    std::erase_if(entries_, [this](const npz::ZipEntry& entry) {
      const bool is_of_macos = entry.name.starts_with("__MACOSX/");
      if (!is_of_macos && (entry.name.ends_with(suffix) || is_npy(entry))) return false;
      leave_out(entry, "it is no array");
      return true;
    });
  }

  [[nodiscard]] bool is_npy(const npz::ZipEntry& entry) const {
    std::array<std::byte, 6> magic{};
    npz::EntrySource source(file_, entry);
    if (source.size() < magic.size()) return false;
    return !source.read(0, magic) || npy::has_magic(magic);  // of what cannot be read, an error says why
  }

  // Reports whether the current entry, which cannot be opened, is an array of objects, of dates or of records.
  [[nodiscard]] bool is_no_weight() {
    source_.emplace(file_, entries_[current_]);
    const Result<npy::Header> header = npy::read_header(*source_);
    if (!header || header->descr.empty()) return false;
    if (header->descr.front() == '[') return true;
    const std::size_t kind = std::string_view("<>|=").find(header->descr.front()) == std::string_view::npos ? 0 : 1;
    return header->descr.size() > kind && std::string_view("OMm").find(header->descr[kind]) != std::string_view::npos;
  }

  void leave_out(const npz::ZipEntry& entry, const std::string& reason) {
    constexpr std::size_t most = 8;
    if (++left_out_ > most) {
      warnings_.resize(most);
      warnings_.push_back(fmt::format("{} more entries are left out", left_out_ - most));
      return;
    }
    warnings_.push_back(fmt::format("entry \"{}\" is left out: {}", entry.name, reason));
  }

  // Opens an entry at its beginning.
  Result<void> open_entry(std::size_t index) {
    const npz::ZipEntry& entry = entries_[index];
    current_ = index;
    array_.reset();
    source_.emplace(file_, entry);
    npy::Array array = TRY(located(npy::Array::open(*source_, opaque_dtype(entry, from_of(index))), index));
    array_.emplace(std::move(array));
    return {};
  }

  // Returns the header's information on the current entry if only its type is unsupported. Errors: `problem`.
  Result<TensorInfo> info_of_unknown_type(Error problem) {
    source_.emplace(file_, entries_[current_]);
    Result<npy::Header> header = npy::read_header(*source_);
    if (!header || npy::parse_descr(header->descr, opaque_dtype(entries_[current_], from_of(current_)))) {
      return problem;
    }
    const Result<std::size_t> count = element_count(header->shape);
    if (!count) return problem;
    return TensorInfo{.name = {},
                      .shape = std::move(header->shape),
                      .count = *count,
                      .bytes = source_->size() - header->data_offset,
                      .foreign_dtype = std::move(header->descr),
                      .problem = std::make_shared<const Error>(std::move(problem))};
  }

  [[nodiscard]] DType from_of(std::size_t index) const { return from_.of(tensor_name(entries_[index])); }

  template <class T>
  Result<T> located(Result<T> result, std::size_t index) const {
    if (result) return result;
    return in_file(file_.path(), of_tensor(tensor_name(entries_[index]), std::move(result)));
  }

  const io::InputFile& file_;
  std::vector<npz::ZipEntry> entries_;
  SourceTypes from_;
  std::optional<npz::EntrySource> source_;  // reads the entry `current_`
  std::optional<npy::Array> array_;
  std::size_t current_ = 0;
  bool compressed_ = false;
  std::size_t left_out_ = 0;  // entries that are no arrays of numbers or texts
  std::vector<std::string> warnings_;
  std::vector<TensorInfo> tensors_;
  Metadata metadata_;  // npz has none
};

class NpzWriter final : public Writer {
 public:
  NpzWriter(io::OutputFile& file, std::span<const TensorInfo> tensors, bool deflate)
      : zip_(file), tensors_(tensors.begin(), tensors.end()), deflate_(deflate) {}

  // Begins the next tensor that has data; empty ones have none.
  Result<void> advance() {
    for (; next_ < tensors_.size(); ++next_) {
      const TensorInfo& tensor = tensors_[next_];
      encoder_.emplace(tensor, [this](std::span<const std::byte> bytes) { return zip_.append(bytes); });
      left_ = tensor.bytes;
      if (tensor.dtype == DType::string && tensor.count > 0) return {};  // begins when its strings are measured
      TRY(begin_entry());
      if (tensor.count > 0) return {};
      TRY(zip_.end());
    }
    return {};
  }

  Result<void> append(std::span<const std::byte> bytes) override {
    if (next_ == tensors_.size() || bytes.size() > left_) return out_of_step();
    TRY(encoder_->append(bytes));
    left_ -= bytes.size();
    return left_ == 0 ? end_entry() : Result<void>();
  }

  bool measures_strings() const override { return true; }
  Result<void> measure_strings(const StringBuffer& strings) override {
    if (next_ == tensors_.size() || tensors_[next_].dtype != DType::string) return out_of_step();
    return of_tensor(tensors_[next_].name, encoder_->measure_strings(strings));
  }

  Result<void> append_strings(const StringBuffer& strings) override {
    if (next_ == tensors_.size() || tensors_[next_].dtype != DType::string) return out_of_step();
    if (encoder_->elements() == 0) {
      TRY(of_tensor(tensors_[next_].name, begin_entry()));
    }
    TRY(of_tensor(tensors_[next_].name, encoder_->append_strings(strings)));
    return encoder_->elements() == tensors_[next_].count ? end_entry() : Result<void>();
  }

  Result<void> finish() override { return next_ == tensors_.size() ? zip_.finish() : out_of_step(); }

 private:
  Result<void> begin_entry() {
    const TensorInfo& tensor = tensors_[next_];
    constexpr std::uint64_t small_bytes = std::uint64_t{0xF0000000};  // deflate may enlarge data
    npz::ZipWriter::EntryOptions options{.deflate = deflate_, .large = encoder_->file_bytes() >= small_bytes};
    if (npy::is_opaque(tensor.dtype)) options.comment = fmt::format("{}{}", dtype_comment, name(tensor.dtype));
    TRY(zip_.begin(tensor.name + std::string(suffix), options));
    return encoder_->write_header();
  }

  Result<void> end_entry() {
    TRY(zip_.end());
    ++next_;
    return advance();
  }

  static Error out_of_step() {
    return Error{.code = ErrorCode::internal, .message = "tensors and their data are out of step"};
  }

  npz::ZipWriter zip_;
  std::vector<TensorInfo> tensors_;
  bool deflate_;
  std::size_t next_ = 0;
  std::uint64_t left_ = 0;  // bytes of the tensor `next_` still to come
  std::optional<npy::Encoder> encoder_;
};

bool sniff(std::span<const std::byte> head, std::uint64_t) {
  const auto begins_with = [&](std::array<unsigned char, 4> signature) {
    return head.size() >= signature.size() &&
           std::equal(signature.begin(), signature.end(), head.begin(),
                      [](unsigned char c, std::byte b) { return std::byte(c) == b; });
  };
  return begins_with({'P', 'K', 3, 4}) || begins_with({'P', 'K', 5, 6});
}

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions& options) {
  std::vector<npz::ZipEntry> entries = TRY(in_file(file.path(), npz::read_zip_directory(file)));
  auto reader = std::make_unique<NpzReader>(file, std::move(entries), options.from);
  TRY(reader->open());
  return std::unique_ptr<Reader>(std::move(reader));
}

// Reports whether unpacking an entry of this name could write outside the folder, or fail.
bool is_unsafe_name(std::string_view name) {
  if (name.find('\0') != std::string_view::npos || !npy::is_utf8(name)) return true;
  if (name.starts_with('/')) return true;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("/\\", begin), name.size());
    if (name.substr(begin, end - begin) == "..") return true;
    begin = end + 1;
  }
  return false;
}

Result<void> check(std::span<const TensorInfo> tensors) {
  constexpr std::size_t max_name_bytes = 65535 - suffix.size();
  for (const TensorInfo& tensor : tensors) {
    const auto fail = [&](std::string message) { return of_tensor(tensor.name, unsupported(std::move(message))); };
    TRY(npy::check_shape(tensor));
    if (tensor.name.size() > max_name_bytes) return fail("npz cannot hold a name of so many bytes");
    if (is_unsafe_name(tensor.name)) return fail("names in npz are those of files, and this one is unsafe to unpack");
  }
  return check_distinct_names(tensors, "npz finds arrays by name");
}

Result<std::unique_ptr<Writer>> create(io::OutputFile& file, std::span<const TensorInfo> tensors,
                                       const WriteOptions& options) {
  auto writer = std::make_unique<NpzWriter>(file, tensors, options.compressed);
  TRY(writer->advance());
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace

constexpr Format npz_format = {
    .name = "npz",
    .description = "NumPy, many arrays in a zip archive",
    .extensions = extensions,
    .many_tensors = true,
    .named_tensors = true,
    .sniff = sniff,
    .can_hold = is_castable,
    .open = open,
    .create = create,
    .check = check,
};

}  // namespace tensorcast::formats
