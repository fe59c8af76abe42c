// SPDX-License-Identifier: Apache-2.0
// `-` as a file name: standard input is copied to a file without a name, since readers need random access; standard
// output is sent when it is complete.
#pragma once

#include <string>

#include "tensorcast/error.hpp"

namespace tcast {

inline constexpr const char* standard_stream = "-";

// Returns the path of a file to read instead of standard input, which is read to its end. The file lasts as long as the
// process. Errors: io; unsupported for zip archives.
[[nodiscard]] tensorcast::Result<std::string> standard_input_as_file();

// A private folder for the file that becomes standard output.
class StandardOutput {
 public:
  StandardOutput() = default;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  ~StandardOutput();  // removes the folder

  // Returns the path to write to. Errors: io.
  [[nodiscard]] tensorcast::Result<std::string> create();
  // Sends the written file. Errors: io.
  [[nodiscard]] tensorcast::Result<void> send() const;

 private:
  std::string folder_;
};

}  // namespace tcast
