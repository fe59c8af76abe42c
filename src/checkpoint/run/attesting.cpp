// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/attesting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "checkpoint/compare/statement.hpp"
#include "checkpoint/source/source.hpp"
#include "checkpoint/store/file_name.hpp"
#include "checkpoint/store/folder.hpp"
#include "convert/plan/conversion_record.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/output_file.hpp"
#include "io/sha256.hpp"
#include "io/written_files.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/version.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::uint64_t digest_bytes = 64;

std::string folder_of_path(const std::string& path) {
  std::string folder = folder_of(path);
  if (folder.empty()) return ".";
  if (folder.size() > 1) folder.pop_back();
  return folder;
}

// The file that keeps the hash of an input.
std::string kept_digest(const std::string& name, const StoredFile& file) {
  return ".tcast/shards/input-" + io::sha256_of(fmt::format("{}\n{}\n{}", name, file.size(), file.version()));
}

}  // namespace

Result<AttestedFolder> attested_files(const std::string& path, const std::vector<std::string>& skip_files) {
  if (!is_checkpoint(path)) return AttestedFolder{.folder = folder_of_path(path), .names = {last_component(path)}};
  const SourceCheckpoint checkpoint = TRY(read_source(path, skip_files));
  return AttestedFolder{.folder = checkpoint.folder, .names = file_names(checkpoint)};
}

Result<StoredFile> open_at(const std::string& path) { return open_source(folder_of_path(path), last_component(path)); }

Result<DigestedFile> digest_of(const std::string& path) {
  std::string sha256 = TRY(sha256_of_file(TRY(open_at(path))));
  return DigestedFile{.name = last_component(path), .sha256 = std::move(sha256)};
}

Result<void> Attesting::check() const {
  const auto fail = [&](std::string message) { return in_file(path_, unsupported(std::move(message))); };
  if (request_.raw || !request_.from.empty() || request_.source) {
    return fail("a statement is about files that say their types themselves");
  }
  if (request_.dry_run) return fail("a dry run writes nothing that a statement could be about");
  if (is_inside()) return {};
  const PathUse others[] = {{.path = is_checkpoint(request_.input) ? source_folder(request_.input) : request_.input,
                             .noun = "input",
                             .folder = is_checkpoint(request_.input)},
                            {.path = request_.output, .noun = "output", .folder = true}};
  Result<void> apart = check_apart({.path = path_, .noun = "statement"}, others);
  if (!apart) apart.error().hint = fmt::format("in the output folder, its name is {}", attestation_name);
  return apart;
}

bool Attesting::is_inside() const {
  std::error_code ignored;
  const std::filesystem::path folder = WorkFolder::folder_of_output(request_.output);
  const std::filesystem::path inside = std::filesystem::absolute(folder / attestation_name, ignored);
  return std::filesystem::absolute(path_, ignored).lexically_normal() == inside.lexically_normal();
}

Result<void> Attesting::hash_inputs(const WorkFolder* folder) {
  const AttestedFolder files = TRY(attested_files(request_.input, request_.filter.skip_files));
  for (const std::string& name : files.names) {
    const StoredFile file = TRY(open_source(files.folder, name));
    DigestedFile& input = inputs_.emplace_back(DigestedFile{.name = name, .sha256 = {}});
    const std::string kept = folder == nullptr ? std::string() : kept_digest(name, file);
    if (folder != nullptr && TRY(folder->files().find(kept)).has_value()) {
      input.sha256 = TRY(folder->files().read_text(kept, digest_bytes));
    }
    if (io::is_sha256(input.sha256)) continue;
    input.sha256 = TRY(sha256_of_file(file));
    if (folder != nullptr) TRY(folder->files().write_text(kept, input.sha256));
  }
  if (!request_.importance.empty()) importance_ = TRY(digest_of(request_.importance));
  return {};
}

void Attesting::add_recipes(const formats::Metadata& metadata) {
  std::optional<file_conversion::ConversionRecord> record;
  file_conversion::add_record(metadata, record);
  if (!record) return;
  recipes_.insert(record->recipes.begin(), record->recipes.end());
  layouts_.insert(record->layouts.begin(), record->layouts.end());
}

std::string Attesting::text(std::vector<DigestedFile> outputs, const std::string& output_format) const {
  Statement statement{.outputs = std::move(outputs),
                      .inputs = inputs_,
                      .importance = importance_,
                      .version = std::string(version()),
                      .request = request_,
                      .recipes = {recipes_.begin(), recipes_.end()},
                      .layouts = {layouts_.begin(), layouts_.end()}};
  std::ranges::sort(statement.outputs, {}, &DigestedFile::name);
  std::ranges::sort(statement.inputs, {}, &DigestedFile::name);
  statement.request.output_format = output_format;
  return statement_text(statement);
}

Result<void> Attesting::write(const std::string& text) const {
  Result<io::OutputFile> file = io::OutputFile::create(path_, request_.overwrite);
  if (!file && file_bytes(path_) == text.size()) {
    // An earlier run of the same conversion may have written it.
    const Result<DigestedFile> old = digest_of(path_);
    if (old && old->sha256 == io::sha256_of(text)) return {};
  }
  if (!file) return std::move(file).error();
  TRY(file->append(std::as_bytes(std::span(text))));
  return file->commit();
}

}  // namespace tensorcast::checkpoint
