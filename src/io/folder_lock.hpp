// SPDX-License-Identifier: Apache-2.0
// A lock of a folder's state: one file in it, locked for as long as a run works there.
#pragma once

#include <string>

#include "io/file_descriptor.hpp"
#include "io/folder.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::io {

enum class LockKind { shared, exclusive };

class FolderLock {
 public:
  FolderLock() noexcept = default;
  // Locks the file `name` of `folder`, which is created, and does not wait. Without locks in the file system it holds
  // none and succeeds. The system releases the lock when the process ends, however it ends. Errors: io; `busy`, if
  // another run has a lock that excludes this one.
  [[nodiscard]] static Result<FolderLock> take(const Folder& folder, const std::string& name, LockKind kind,
                                               const Error& busy);

 private:
  FileDescriptor fd_;
};

}  // namespace tensorcast::io
