// SPDX-License-Identifier: Apache-2.0
// The files of external data of a model that is being written. No file that exists is replaced: where a name is taken,
// the data gets another one. docs/onnx.md has the order of all steps.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/folder.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "io/written_files.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/precision/tensor_conversion.hpp"

namespace tensorcast::models::onnx {

class DataFiles {
 public:
  // `folder`: that of the model. `stage`: null, or the folder where the files are found until place().
  DataFiles(const io::Folder& folder, const io::Folder* stage) : folder_(folder), stage_(stage) {}
  DataFiles(const DataFiles&) = delete;
  DataFiles& operator=(const DataFiles&) = delete;
  ~DataFiles();  // without keep(): removes the files that place() has made, unless another model names them by now

  // Writes a file, and finds its name: File::location, if nothing has this name, or the same data does. Otherwise
  // NAME.HASH.data with the first 8 digits of its SHA-256, or more. Errors: io; invalid_argument: a copy's name is
  // taken.
  [[nodiscard]] Result<void> write(const io::InputFile& file, const ExternalFiles::File& external,
                                   const std::function<bool()>& go_on);
  // Returns the locations of files that got another name.
  [[nodiscard]] const std::map<std::string, std::string>& new_names() const noexcept { return new_names_; }
  // Returns the files that will be beside the model, without copies.
  [[nodiscard]] const std::vector<io::WrittenFile>& written() const noexcept { return written_; }
  // Gives the files their names, and waits until these are on the disk. Errors: io; invalid_argument: another process
  // created a file of this name meanwhile.
  [[nodiscard]] Result<void> place();
  void keep() noexcept { placed_.clear(); }

 private:
  struct Pending {
    std::string location;
    io::OutputFile file;  // that becomes it, unless it is staged
  };
  [[nodiscard]] Result<std::string> find_name(const ExternalFiles::File& external, io::WrittenFile& made, bool& exists);

  // Reports whether the folder has the same data already, which stay then as long as this object lives.
  [[nodiscard]] Result<bool> keep_same(const io::WrittenFile& made);

  const io::Folder& folder_;
  const io::Folder* stage_;
  std::map<std::string, std::string> new_names_;
  std::vector<io::WrittenFile> written_;
  std::vector<Pending> pending_;
  std::vector<std::string> staged_;
  std::vector<std::string> placed_;
  std::vector<io::InputFile> kept_;
};

// Removes the files of `old`, the record of a model that was replaced, that are as it says, that no model of the folder
// names, and that are not `in_use`. Never fails: what cannot be removed, or might be needed, stays.
void remove_old_data(const io::Folder& folder, const std::vector<io::WrittenFile>& old,
                     const std::set<io::InputFile::Identity>& in_use);

}  // namespace tensorcast::models::onnx
