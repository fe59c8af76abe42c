// SPDX-License-Identifier: Apache-2.0
#include "io/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "dtype/try.hpp"
#include "io/system_calls.hpp"
#include "io/system_error.hpp"

namespace tensorcast::io {

Result<FolderLock> FolderLock::take(const Folder& folder, const std::string& name, LockKind kind, const Error& busy) {
  constexpr mode_t usual_mode = 0666;
  constexpr int most_tries = 100;  // whoever removes the state removes the file with it
  const std::string path = folder.path() + "/" + name;
  for (int tries = 0; tries < most_tries; ++tries) {
    FolderLock lock;
    // NFS locks only files that are open for writing.
    lock.fd_ = FileDescriptor(::openat(folder.descriptor(), name.c_str(),
                                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, usual_mode));
    if (!lock.fd_ && errno == ENOENT) return busy;  // the folder was removed meanwhile
    if (!lock.fd_) return system_error("lock", path, errno);
    while (::flock(lock.fd_.get(), (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return busy;
      if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS || errno == EINVAL) return lock;
      return system_error("lock", path, errno);
    }
    struct stat open {};
    if (::fstat(lock.fd_.get(), &open) != 0) return system_error("lock", path, errno);
    const std::optional<Found> named = TRY(folder.find(name));
    if (named.has_value() && named->identity == identity_of(open)) return lock;
  }
  return busy;
}

}  // namespace tensorcast::io
