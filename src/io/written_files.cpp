// SPDX-License-Identifier: Apache-2.0
#include "io/written_files.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dtype/try.hpp"
#include "io/sha256.hpp"

namespace tensorcast::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "tensorcast files";
constexpr int format_version = 1;

}  // namespace

bool is_sha256(const std::string& text) noexcept {
  constexpr std::size_t digits = 64;
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Json written_file_json(const WrittenFile& file) {
  return {{"file", file.name}, {"bytes", file.bytes}, {"version", file.version}, {"sha256", file.sha256}};
}

WrittenFile read_written_file(const Json& json) {
  return {.name = json.at("file").get<std::string>(),
          .bytes = json.at("bytes").get<std::uint64_t>(),
          .version = json.at("version").get<std::string>(),
          .sha256 = json.at("sha256").get<std::string>()};
}

std::string written_files_text(const WrittenFiles& written) {
  // One file a line.
  const auto line = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  std::string text = "{\n \"format\": " + line(format_name) + ",\n \"version\": " + line(format_version) +
                     ",\n \"identity\": " + line(written.identity) + ",\n \"files\": [";
  const char* comma = "\n  ";
  for (const WrittenFile& file : written.files) {
    text += comma + line(written_file_json(file));
    comma = ",\n  ";
  }
  return text + "\n ]\n}\n";
}

Result<WrittenFiles> parse_written_files(const std::string& text, const std::string& path) {
  const Error damaged{.code = ErrorCode::parse,
                      .message = "the record of the files that tensorcast wrote is damaged",
                      .hint = "if you remove it, all files of the folder count as somebody else's",
                      .file = path};
  try {
    const Json document = Json::parse(text);
    if (document.at("format") != format_name || document.at("version") != format_version) return damaged;
    WrittenFiles written{.identity = document.at("identity").get<std::string>(), .files = {}};
    for (const Json& entry : document.at("files")) {
      written.files.push_back(read_written_file(entry));
      if (!is_sha256(written.files.back().sha256)) return damaged;
    }
    return written;
  } catch (const Json::exception&) {
    return damaged;
  }
}

Result<std::string> sha256_of_file(const InputFile& file) {
  constexpr std::uint64_t block = std::uint64_t{1} << 20;
  std::vector<std::byte> buffer(std::min(block, file.size()));
  Sha256 hash;
  for (std::uint64_t offset = 0; offset < file.size();) {
    const auto bytes = std::span(buffer).first(std::min<std::uint64_t>(block, file.size() - offset));
    TRY(file.read(offset, bytes));
    hash.update(bytes);
    offset += bytes.size();
  }
  return hash.digest();
}

Result<bool> is_as_written(const Folder& folder, const WrittenFile& file) {
  const std::optional<Found> found = TRY(folder.find(file.name));
  if (!found.has_value() || found->kind != Found::Kind::file || found->bytes != file.bytes) return false;
  if (!file.version.empty() && file.version == std::to_string(found->modified_ns)) return true;
  const InputFile open = TRY(folder.open_file(file.name));
  const std::string sha256 = TRY(sha256_of_file(open));
  return sha256 == file.sha256;
}

}  // namespace tensorcast::io
