// `-` as a file name: standard input is kept in a file without a name while it is read, since readers jump; standard
// output is sent when it is complete.
#pragma once

#include <string>

#include "tensorcast/error.hpp"

namespace tcast {

inline constexpr const char* standard_stream = "-";

// The file to read instead of standard input, which is read to its end. It lasts as long as the process. Errors: io;
// unsupported for zip archives.
[[nodiscard]] tensorcast::Result<std::string> standard_input_as_file();

// A folder of one's own for the file that becomes standard output.
class StandardOutput {
 public:
  StandardOutput() = default;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  ~StandardOutput();  // removes the folder

  // The name to write to. Errors: io.
  [[nodiscard]] tensorcast::Result<std::string> create();
  // Sends what was written. Errors: io.
  [[nodiscard]] tensorcast::Result<void> send() const;

 private:
  std::string folder_;
};

}  // namespace tcast
