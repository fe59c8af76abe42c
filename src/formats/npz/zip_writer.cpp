// SPDX-License-Identifier: Apache-2.0
#include "formats/npz/zip_writer.hpp"

#include <algorithm>

#include "dtype/try.hpp"

namespace tensorcast::formats::npz {
namespace {

constexpr std::uint16_t made_by = (3u << 8) | 45;  // Unix, version 4.5 of the specification, as Python writes
constexpr std::uint16_t zip64_version = 45;
constexpr std::uint16_t plain_version = 20;
constexpr std::uint16_t zip64_sizes_bytes = 20;  // an extra field of two sizes
constexpr std::uint32_t first_day = 33u << 16;   // 1980-01-01, midnight: equal tensors give equal files
constexpr std::uint32_t owner_may_read_and_write = 0600u << 16;

std::uint16_t flags_of(std::string_view name) {
  const bool ascii = std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return ascii ? 0 : utf8_flag;
}

std::uint32_t low_or_elsewhere(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, elsewhere));
}

std::uint16_t method_of(const ZipWriter::EntryOptions& options) {
  return options.deflate ? deflated_method : stored_method;
}

}  // namespace

RecordWriter ZipWriter::local_header(std::uint64_t stored_bytes) const {
  const bool large = entry_.options.large;
  RecordWriter header;
  header.put(local_header_signature)
      .put(large ? zip64_version : plain_version)
      .put(flags_of(entry_.name))
      .put(method_of(entry_.options))
      .put(first_day)
      .put(entry_.crc)
      .put(large ? elsewhere : low_or_elsewhere(stored_bytes))
      .put(large ? elsewhere : low_or_elsewhere(entry_.bytes))
      .put(static_cast<std::uint16_t>(entry_.name.size()))
      .put(large ? zip64_sizes_bytes : std::uint16_t{0})
      .text(entry_.name);
  if (large) header.put(zip64_extra_id).put(std::uint16_t{16}).put(entry_.bytes).put(stored_bytes);
  return header;
}

Result<void> ZipWriter::begin(const std::string& name, const EntryOptions& options) {
  entry_ = Entry{.name = name, .options = options, .offset = file_.size()};
  TRY(file_.append(local_header(0).bytes()));
  entry_.data_offset = file_.size();
  if (options.deflate) {
    deflate_.emplace([this](std::span<const std::byte> bytes) { return file_.append(bytes); });
  }
  return {};
}

Result<void> ZipWriter::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};  // zlib restarts the checksum on a null pointer
  entry_.crc =
      static_cast<std::uint32_t>(::crc32_z(entry_.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  entry_.bytes += bytes.size();
  return deflate_ ? deflate_->append(bytes) : file_.append(bytes);
}

Result<void> ZipWriter::end() {
  if (deflate_) {
    TRY(deflate_->finish());
    deflate_.reset();
  }
  const std::uint64_t stored_bytes = file_.size() - entry_.data_offset;
  if (!entry_.options.large && std::max(stored_bytes, entry_.bytes) >= elsewhere) {
    return Error{.code = ErrorCode::internal, .message = "an entry of the zip archive is larger than it was to be"};
  }
  TRY(file_.patch(entry_.offset, local_header(stored_bytes).bytes()));
  add_to_directory(stored_bytes);
  return {};
}

void ZipWriter::add_to_directory(std::uint64_t stored_bytes) {
  RecordWriter extra;
  for (const std::uint64_t value : {entry_.bytes, stored_bytes, entry_.offset}) {
    if (value >= elsewhere) extra.put(value);
  }
  const auto extra_bytes = static_cast<std::uint16_t>(extra.bytes().size());
  const bool large = entry_.options.large || extra_bytes > 0;
  directory_.put(directory_entry_signature)
      .put(made_by)
      .put(large ? zip64_version : plain_version)
      .put(flags_of(entry_.name))
      .put(method_of(entry_.options))
      .put(first_day)
      .put(entry_.crc)
      .put(low_or_elsewhere(stored_bytes))
      .put(low_or_elsewhere(entry_.bytes))
      .put(static_cast<std::uint16_t>(entry_.name.size()))
      .put(static_cast<std::uint16_t>(extra_bytes > 0 ? extra_bytes + 4 : 0))
      .put(static_cast<std::uint16_t>(entry_.options.comment.size()))
      .put(std::uint16_t{0})  // disk
      .put(std::uint16_t{0})  // not text
      .put(owner_may_read_and_write)
      .put(low_or_elsewhere(entry_.offset))
      .text(entry_.name);
  if (extra_bytes > 0) {
    directory_.put(zip64_extra_id).put(extra_bytes).text(extra.text());
  }
  directory_.text(entry_.options.comment);
  ++entries_;
}

Result<void> ZipWriter::finish() {
  const std::uint64_t offset = file_.size();
  const std::uint64_t bytes = directory_.bytes().size();
  TRY(file_.append(directory_.bytes()));
  RecordWriter end;
  if (entries_ >= elsewhere_16 || bytes >= elsewhere || offset >= elsewhere) {
    const std::uint64_t zip64_end = file_.size();
    end.put(zip64_directory_end_signature)
        .put(std::uint64_t{zip64_directory_end_bytes - 12})  // size of the rest of the record
        .put(made_by)
        .put(zip64_version)
        .put(std::uint32_t{0})  // this disk
        .put(std::uint32_t{0})  // the directory's
        .put(entries_)
        .put(entries_)
        .put(bytes)
        .put(offset);
    end.put(zip64_locator_signature).put(std::uint32_t{0}).put(zip64_end).put(std::uint32_t{1});
  }
  const auto entries_16 = static_cast<std::uint16_t>(std::min<std::uint64_t>(entries_, elsewhere_16));
  end.put(directory_end_signature)
      .put(std::uint16_t{0})
      .put(std::uint16_t{0})
      .put(entries_16)
      .put(entries_16)
      .put(low_or_elsewhere(bytes))
      .put(low_or_elsewhere(offset))
      .put(std::uint16_t{0});  // no comment
  return file_.append(end.bytes());
}

}  // namespace tensorcast::formats::npz
