// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/data_record.hpp"

#include <string_view>
#include <utility>

#include "dtype/try.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/model_schema.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::string_view record_key = "tensorcast.external_data";
constexpr std::uint64_t max_record_bytes = std::uint64_t{64} << 20;

namespace entry_field {
enum : std::uint32_t { key = 1, value = 2 };
}

struct Entry {
  bool is_record = false;
  std::string value = {};
};

Result<Entry> read_entry(const io::InputFile& file, const WireField& field, bool with_value) {
  TRY(expect(field, protozero::pbf_wire_type::length_delimited));
  Entry entry;
  WireReader wire(file, field.offset, field.offset + field.length);
  TRY(each_field(wire, [&](const WireField& part) -> Result<void> {
    const bool is_key = part.number == entry_field::key && part.length == record_key.size();
    const bool is_value = part.number == entry_field::value && with_value && part.length <= max_record_bytes;
    if (part.type != protozero::pbf_wire_type::length_delimited || (!is_key && !is_value)) return {};
    std::string text = TRY(wire.text(part.length));
    if (is_key) entry.is_record = text == record_key;
    if (is_value) entry.value = std::move(text);
    return {};
  }));
  return entry;
}

}  // namespace

std::string encode_data_record(const std::vector<io::WrittenFile>& files) {
  const std::string entry = encode_field(entry_field::key, record_key) +
                            encode_field(entry_field::value, io::written_files_text({.identity = {}, .files = files}));
  return encode_field(model_field::metadata_props, entry);
}

Result<bool> is_data_record(const io::InputFile& file, const WireField& field) {
  const Entry entry = TRY(read_entry(file, field, false));
  return entry.is_record;
}

std::vector<io::WrittenFile> read_data_record(const std::string& path) {
  const Result<io::InputFile> file = io::InputFile::open(path);
  if (!file) return {};
  std::vector<io::WrittenFile> files;
  WireReader wire(*file, 0, file->size());
  const Result<void> done = each_field(wire, [&](const WireField& field) -> Result<void> {
    if (field.number != model_field::metadata_props) return {};
    Entry entry = TRY(read_entry(*file, field, true));
    if (!entry.is_record) return {};
    Result<io::WrittenFiles> written = io::parse_written_files(entry.value, path);
    if (written) files = std::move(written->files);
    return {};
  });
  if (!done) files.clear();
  return files;
}

}  // namespace tensorcast::models::onnx
