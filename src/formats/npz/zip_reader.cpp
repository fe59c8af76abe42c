#include "formats/npz/zip_reader.hpp"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <array>

#include "formats/npy/npy_text.hpp"
#include "formats/npz/zip_stream.hpp"

namespace tensorcast::formats::npz {
namespace {

// An archive beyond these limits is refused, so that its directory always fits into memory.
constexpr std::uint64_t max_entries = 100'000;
constexpr std::uint64_t max_text_bytes = std::uint64_t{32} << 20;
constexpr std::size_t max_field_bytes = 65535;
constexpr std::size_t max_inflate_bytes = std::size_t{16} << 20;  // minizip counts in 32 bits
constexpr std::uint64_t max_deflate_ratio = 1032;                 // no deflate stream holds more a byte
constexpr unsigned long encrypted_flag = 1;

}  // namespace

struct ZipReader::Stream : ZipStream<const io::InputFile> {
  using ZipStream::ZipStream;

  static uLong read(void* self, void*, void* out, uLong size) {
    ZipStream& stream = of(self);
    const std::uint64_t count = std::min<std::uint64_t>(size, stream.file.size() - stream.position);
    if (auto got = stream.file.read(stream.position, {static_cast<std::byte*>(out), count}); !got) {
      if (!stream.error) stream.error = std::move(got).error();
      return 0;
    }
    stream.position += count;
    return count;
  }
};

Error ZipReader::damaged(std::string what) const {
  if (stream_ && stream_->error) return *stream_->error;
  return Error{.code = ErrorCode::parse, .message = "damaged zip archive: " + std::move(what)};
}

Result<std::unique_ptr<ZipReader>> ZipReader::open(const io::InputFile& file) {
  std::unique_ptr<ZipReader> reader(new ZipReader(file));
  const Result<bool> empty = reader->is_empty_archive();
  if (!empty) return empty.error();
  if (*empty) return reader;
  if (auto opened = reader->open_archive(); !opened) return std::move(opened).error();
  if (auto listed = reader->list_entries(); !listed) return std::move(listed).error();
  if (auto apart = reader->check_apart(); !apart) return std::move(apart).error();
  return reader;
}

ZipReader::ZipReader(const io::InputFile& file) : file_(file) {}

ZipReader::~ZipReader() {
  if (archive_ == nullptr) return;
  if (started_) unzCloseCurrentFile(archive_);
  unzClose(archive_);
}

// minizip does not find a directory at the beginning of a file, which is where an archive without entries has it.
Result<bool> ZipReader::is_empty_archive() const {
  constexpr std::array<std::byte, 4> signature = {std::byte{'P'}, std::byte{'K'}, std::byte{5}, std::byte{6}};
  constexpr std::uint64_t directory_end_bytes = 22;
  if (file_.size() != directory_end_bytes) return false;
  std::array<std::byte, 4> head{};
  if (auto got = file_.read(0, head); !got) return std::move(got).error();
  return head == signature;
}

Result<void> ZipReader::open_archive() {
  stream_ = std::make_unique<Stream>(file_);
  zlib_filefunc64_def functions = stream_->functions();
  functions.zread_file = &Stream::read;
  archive_ = unzOpen2_64(nullptr, &functions);
  if (archive_ == nullptr) return damaged("its directory is missing or cut off");
  return {};
}

Result<void> ZipReader::list_entries() {
  unz_global_info64 global{};
  if (unzGetGlobalInfo64(archive_, &global) != UNZ_OK) return damaged("no directory");
  if (global.number_entry > max_entries) {
    return Error{
        .code = ErrorCode::unsupported,
        .message = fmt::format("the archive claims {} entries; {} are allowed", global.number_entry, max_entries)};
  }
  if (global.number_entry == 0) return {};
  int status = unzGoToFirstFile(archive_);
  for (std::uint64_t i = 0; i < global.number_entry; ++i) {
    if (status != UNZ_OK) {
      return damaged(fmt::format("the directory ends after {} of {} entries", i, global.number_entry));
    }
    Result<std::optional<ZipEntry>> entry = describe_entry();
    if (!entry) return std::move(entry).error();
    if (*entry) entries_.push_back(std::move(**entry));
    status = unzGoToNextFile(archive_);
  }
  return {};
}

Result<std::optional<ZipEntry>> ZipReader::describe_entry() {
  unz_file_info64 info{};
  if (unzGetCurrentFileInfo64(archive_, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK ||
      info.size_filename > max_field_bytes || info.size_file_comment > max_field_bytes) {
    return damaged("an entry of the directory is malformed");
  }
  ZipEntry entry;
  entry.deflated = info.compression_method == Z_DEFLATED;
  entry.stored_bytes = info.compressed_size;
  entry.bytes = info.uncompressed_size;
  entry.crc = static_cast<std::uint32_t>(info.crc);
  entry.name.resize(info.size_filename);
  entry.comment.resize(info.size_file_comment);
  text_bytes_ += entry.name.size() + entry.comment.size();
  if (text_bytes_ > max_text_bytes) {
    return Error{.code = ErrorCode::unsupported, .message = "the names in the archive are too long"};
  }
  if (unzGetCurrentFileInfo64(archive_, &info, entry.name.data(), entry.name.size(), nullptr, 0, entry.comment.data(),
                              entry.comment.size()) != UNZ_OK) {
    return damaged("an entry of the directory is malformed");
  }
  const auto in_entry = [&](Error error) {
    error.tensor = entry.name;
    return error;
  };
  if (entry.name.find('\0') != std::string::npos || !npy::count_characters(entry.name)) {
    entry.name.clear();
    return damaged("the name of an entry is no UTF-8");
  }
  if (entry.name.ends_with('/') && entry.bytes == 0) return std::optional<ZipEntry>();
  if ((info.flag & encrypted_flag) != 0) {
    return in_entry(Error{.code = ErrorCode::unsupported, .message = "the entry is encrypted"});
  }
  if (!entry.deflated && info.compression_method != 0) {
    return in_entry(
        Error{.code = ErrorCode::unsupported,
              .message = fmt::format("compression method {} is neither stored nor deflated", info.compression_method)});
  }
  if (!entry.deflated && entry.stored_bytes != entry.bytes) {
    return in_entry(
        damaged(fmt::format("the stored entry claims {} bytes but holds {}", entry.bytes, entry.stored_bytes)));
  }
  if (entry.bytes / max_deflate_ratio > entry.stored_bytes) {
    return in_entry(damaged(fmt::format("{} bytes cannot hold the claimed {}", entry.stored_bytes, entry.bytes)));
  }
  unz64_file_pos position{};
  if (unzGetFilePos64(archive_, &position) != UNZ_OK) return damaged("an entry of the directory is malformed");
  entry.directory_offset = position.pos_in_zip_directory;
  entry.directory_index = position.num_of_file;
  // Compares the entry's own header with the directory's.
  if (unzOpenCurrentFile(archive_) != UNZ_OK)
    return in_entry(damaged("the entry and the directory contradict each other"));
  entry.data_offset = unzGetCurrentFileZStreamPos64(archive_);
  unzCloseCurrentFile(archive_);
  if (entry.data_offset > file_.size() || entry.stored_bytes > file_.size() - entry.data_offset) {
    return in_entry(damaged(fmt::format("the entry claims {} bytes beyond the end of the file", entry.stored_bytes)));
  }
  return std::optional<ZipEntry>(std::move(entry));
}

Result<void> ZipReader::check_apart() const {
  std::vector<const ZipEntry*> sorted;
  sorted.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->data_offset < b->data_offset; });
  const auto overlap = std::adjacent_find(sorted.begin(), sorted.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return a->data_offset + a->stored_bytes > b->data_offset || a->data_offset == b->data_offset;
  });
  if (overlap == sorted.end()) return {};
  Error error = damaged(fmt::format("the entry overlaps \"{}\"", (*overlap)->name));
  error.tensor = (*(overlap + 1))->name;
  return error;
}

Result<void> ZipReader::start(const ZipEntry& entry) {
  if (started_) unzCloseCurrentFile(archive_);
  started_ = false;
  const unz64_file_pos position{.pos_in_zip_directory = entry.directory_offset, .num_of_file = entry.directory_index};
  if (unzGoToFilePos64(archive_, &position) != UNZ_OK || unzOpenCurrentFile(archive_) != UNZ_OK) {
    return damaged("the entry cannot be opened");
  }
  started_ = true;
  return {};
}

Result<void> ZipReader::inflate(std::span<std::byte> out) {
  while (!out.empty()) {
    const auto wanted = static_cast<unsigned>(std::min(out.size(), max_inflate_bytes));
    const int got = unzReadCurrentFile(archive_, out.data(), wanted);
    if (got == 0) return damaged("the entry holds fewer bytes than it claims");
    if (got < 0) return damaged("the entry's deflate stream is broken or cut off");
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<void> ZipReader::finish() {
  started_ = false;
  if (unzCloseCurrentFile(archive_) == UNZ_CRCERROR) return damaged("the entry's checksum differs");
  return {};
}

}  // namespace tensorcast::formats::npz
