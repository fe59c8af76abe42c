// SPDX-License-Identifier: Apache-2.0
#include "io/file_descriptor.hpp"

#include <unistd.h>

namespace tensorcast::io {

void FileDescriptor::reset() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace tensorcast::io
