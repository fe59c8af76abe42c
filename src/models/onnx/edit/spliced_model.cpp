// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/spliced_model.hpp"

#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/parent_folders.hpp"
#include "models/onnx/edit/external_locations.hpp"
#include "models/onnx/edit/model_files.hpp"
#include "models/onnx/model_folder.hpp"

namespace tensorcast::models::onnx {

Result<void> write_spliced(const io::InputFile& file, const Model& model, WireRope rope, const std::string& output,
                           bool overwrite) {
  if (rope.size() > formats::onnx::max_message_bytes) {
    return unsupported("the model would be larger than protobuf's limit of 2 GiB");
  }
  const std::filesystem::path folder = folder_of(output);
  BuiltModel built{.rope = std::move(rope),
                   .external = ExternalFiles({.model_name = std::filesystem::path(output).filename().string()}),
                   .counts = {}};
  std::vector<io::ParentFolders> made_folders;
  if (!in_same_folder(file.path(), output)) {
    const std::set<std::string> locations = TRY(external_locations(file, model));
    // The copies have the names of the files.
    TRY(check_apart_from_data(output, locations, output));
    TRY(copy_external_files(file, locations, built.external));
    for (const std::string& location : locations) {
      io::ParentFolders made = TRY(io::ParentFolders::create((folder / location).string()));
      made_folders.push_back(std::move(made));
    }
  }
  const Rebuild never = [](const auto&) -> Result<BuiltModel> {  // copies keep their names
    return Error{.code = ErrorCode::internal, .message = "a copy of external data cannot get another name"};
  };
  Result<void> written = write_model(file, model, std::move(built), output, {.overwrite = overwrite}, never);
  if (!written) {
    while (!made_folders.empty()) made_folders.pop_back();  // inner ones first
    return std::move(written).error();
  }
  for (io::ParentFolders& made : made_folders) made.keep();
  return {};
}

}  // namespace tensorcast::models::onnx
