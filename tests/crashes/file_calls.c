/* SPDX-License-Identifier: Apache-2.0 */
// Loaded before libc: counts the file system calls of a program below one folder, and lets one of them fail, kill the
// program, or wait; records what a simulated power failure needs. The environment says what:
//   FILE_CALLS_ROOT      the folder, a real path; calls elsewhere are not seen
//   FILE_CALLS_AT        number of the call that something happens before, from 1
//   FILE_CALLS_ERROR     it fails with this errno
//   FILE_CALLS_KILL      it is the end of the process: SIGKILL
//   FILE_CALLS_PAUSE     "READY GO", two descriptors: it writes a byte to the first and reads one from the second
//   FILE_CALLS_BLOCKED   a descriptor: gets a byte before a lock is waited for
//   FILE_CALLS_LOG       a folder that exists: gets "log", a line for each call, and the bytes of each file that is
//   synced FILE_CALLS_NO_TMPFILE  the file system has no unnamed files
// Without AT and LOG, the number of calls is written to descriptor FILE_CALLS_COUNT when the process exits.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))next_of(#name))

enum { most_descriptors = 4096, path_bytes = 8192 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char seen[most_descriptors];  // descriptors below the root
static const char* root;
static const char* log_folder;
static int log_fd = -1;
static long count, at, snapshots;

static void* next_of(const char* name) { return dlsym(RTLD_NEXT, name); }

static long number_of(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? -1 : atol(text);
}

__attribute__((constructor)) static void begin(void) {
  root = getenv("FILE_CALLS_ROOT");
  at = number_of("FILE_CALLS_AT");
  log_folder = getenv("FILE_CALLS_LOG");
  if (log_folder == NULL) return;
  char path[path_bytes];
  snprintf(path, sizeof path, "%s/log", log_folder);
  log_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

__attribute__((destructor)) static void end(void) {
  const long fd = number_of("FILE_CALLS_COUNT");
  char text[32];
  if (fd >= 0 && write((int)fd, text, (size_t)snprintf(text, sizeof text, "%ld", count)) < 0) abort();
}

static int is_below_root(const char* path) {
  const size_t length = strlen(root);
  return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int sees_fd(int fd) { return root != NULL && fd >= 0 && fd < most_descriptors && seen[fd]; }

static int sees(int folder, const char* path) {
  if (root == NULL || path == NULL) return 0;
  int fd = -1;
  if (sscanf(path, "/proc/self/fd/%d", &fd) == 1) return sees_fd(fd);
  if (path[0] == '/') return is_below_root(path);
  if (folder != AT_FDCWD) return sees_fd(folder);
  char here[path_bytes];
  return syscall(SYS_getcwd, here, sizeof here) > 0 && is_below_root(here);
}

static void note_fd(int fd, int is_seen) {
  if (fd >= 0 && fd < most_descriptors) seen[fd] = (char)is_seen;
}

static void record(const char* format, ...) {
  if (log_fd < 0) return;
  char line[2 * path_bytes];
  va_list values;
  va_start(values, format);
  int length = snprintf(line, sizeof line, "%ld ", count);
  length += vsnprintf(line + length, sizeof line - (size_t)length, format, values);
  va_end(values);
  line[length++] = '\n';
  if (syscall(SYS_write, log_fd, line, (size_t)length) != length) abort();
}

// Counts a call. Returns 0 if it is to run, else -1 with errno. Afterwards the lock is held until done().
static int enter(const char* name) {
  pthread_mutex_lock(&mutex);
  ++count;
  record("call %s", name);
  if (count != at) return 0;
  if (getenv("FILE_CALLS_KILL") != NULL) kill(getpid(), SIGKILL);
  int ready = -1;
  int go = -1;
  const char* pause_at = getenv("FILE_CALLS_PAUSE");
  if (pause_at != NULL && sscanf(pause_at, "%d %d", &ready, &go) == 2) {
    char byte = 'x';
    if (syscall(SYS_write, ready, &byte, 1) != 1 || syscall(SYS_read, go, &byte, 1) < 0) abort();
  }
  const long error = number_of("FILE_CALLS_ERROR");
  if (error <= 0) return 0;
  errno = (int)error;
  return -1;
}

static void done(void) {
  const int kept = errno;
  pthread_mutex_unlock(&mutex);
  errno = kept;
}

// A name in a folder, and the inode that it has.
struct place {
  unsigned long folder, inode;
  char name[2 * 256 + 1];  // in hexadecimal digits: names may have line breaks
};

static struct place place_of(int folder, const char* path) {
  struct place found = {0, 0, ""};
  if (log_fd < 0) return found;
  char above[path_bytes];
  snprintf(above, sizeof above, "%s", path);
  size_t length = strlen(above);
  while (length > 1 && above[length - 1] == '/') above[--length] = '\0';
  char* slash = strrchr(above, '/');
  const char* name = slash == NULL ? above : slash + 1;
  for (size_t i = 0; name[i] != '\0' && i < 256; ++i) sprintf(found.name + 2 * i, "%02x", (unsigned char)name[i]);
  struct stat status;
  if (syscall(SYS_newfstatat, folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0) found.inode = status.st_ino;
  if (slash != NULL) slash[slash == above ? 1 : 0] = '\0';
  if (syscall(SYS_newfstatat, folder, slash == NULL ? "." : above, &status, 0) == 0) found.folder = status.st_ino;
  return found;
}

static unsigned long inode_of(int fd, long* bytes, int* is_folder) {
  struct stat status;
  if (syscall(SYS_newfstatat, fd, "", &status, AT_EMPTY_PATH) != 0) return 0;
  if (bytes != NULL) *bytes = status.st_size;
  if (is_folder != NULL) *is_folder = S_ISDIR(status.st_mode);
  return status.st_ino;
}

static void record_data(int fd) {
  if (log_fd < 0) return;
  const int kept = errno;
  long bytes = 0;
  const unsigned long inode = inode_of(fd, &bytes, NULL);
  record("data %lu %ld", inode, bytes);
  errno = kept;
}

// Copies what the file has now: that much survives.
static void record_sync(int fd) {
  if (log_fd < 0) return;
  const int kept = errno;
  int is_folder = 0;
  const unsigned long inode = inode_of(fd, NULL, &is_folder);
  if (is_folder) {
    record("syncdir %lu", inode);
  } else {
    char path[path_bytes];
    snprintf(path, sizeof path, "%s/%ld", log_folder, ++snapshots);
    const int copy = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    char block[65536];
    long offset = 0;
    for (long got; (got = syscall(SYS_pread64, fd, block, sizeof block, offset)) > 0; offset += got) {
      if (syscall(SYS_write, copy, block, got) != got) abort();
    }
    syscall(SYS_close, copy);
    record("sync %lu %ld", inode, snapshots);
  }
  errno = kept;
}

// A call on a path or a descriptor that changes nothing, or nothing that is simulated.
#define PLAIN(is_seen, name, failed, result_type, ...)       \
  do {                                                       \
    if (!(is_seen)) return REAL(name)(__VA_ARGS__);          \
    result_type result = failed;                             \
    if (enter(#name) == 0) result = REAL(name)(__VA_ARGS__); \
    done();                                                  \
    return result;                                           \
  } while (0)

static int open_at(int folder, const char* path, int flags, mode_t mode) {
  static int (*real)(int, const char*, int, ...);
  if (real == NULL) real = (int (*)(int, const char*, int, ...))next_of("openat");
  const int unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  if (unnamed && getenv("FILE_CALLS_NO_TMPFILE") != NULL) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (!sees(folder, path)) {
    const int fd = real(folder, path, flags, mode);
    note_fd(fd, 0);
    return fd;
  }
  int fd = -1;
  if (enter("open") == 0) {
    const struct place before = (flags & O_CREAT) != 0 ? place_of(folder, path) : (struct place){0, 0, ""};
    fd = real(folder, path, flags, mode);
    note_fd(fd, 1);
    if (fd >= 0 && unnamed) {
      record("unnamed %lu", inode_of(fd, NULL, NULL));
    } else if (fd >= 0 && (flags & O_CREAT) != 0 && before.inode == 0) {
      record("create %lu %s %lu", before.folder, before.name, inode_of(fd, NULL, NULL));
    } else if (fd >= 0 && (flags & O_TRUNC) != 0) {
      record_data(fd);
    }
  }
  done();
  return fd;
}

static mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

#define OPEN(name, parameters, folder)         \
  int name parameters {                        \
    va_list more;                              \
    va_start(more, flags);                     \
    const mode_t mode = mode_of(flags, more);  \
    va_end(more);                              \
    return open_at(folder, path, flags, mode); \
  }
OPEN(open, (const char* path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char* path, int flags, ...), AT_FDCWD)
OPEN(openat, (int folder, const char* path, int flags, ...), folder)
OPEN(openat64, (int folder, const char* path, int flags, ...), folder)

int close(int fd) {
  note_fd(fd, 0);
  return REAL(close)(fd);
}

ssize_t read(int fd, void* to, size_t bytes) { PLAIN(sees_fd(fd), read, -1, ssize_t, fd, to, bytes); }
ssize_t pread(int fd, void* to, size_t bytes, off_t from) {
  PLAIN(sees_fd(fd), pread, -1, ssize_t, fd, to, bytes, from);
}
ssize_t pread64(int fd, void* to, size_t bytes, off64_t from) {
  PLAIN(sees_fd(fd), pread64, -1, ssize_t, fd, to, bytes, from);
}

// A call on a descriptor that changes the file's bytes.
#define DATA(name, failed, result_type, ...)          \
  do {                                                \
    if (!sees_fd(fd)) return REAL(name)(__VA_ARGS__); \
    result_type result = failed;                      \
    if (enter(#name) == 0) {                          \
      result = REAL(name)(__VA_ARGS__);               \
      record_data(fd);                                \
    }                                                 \
    done();                                           \
    return result;                                    \
  } while (0)
ssize_t write(int fd, const void* from, size_t bytes) { DATA(write, -1, ssize_t, fd, from, bytes); }
ssize_t pwrite(int fd, const void* from, size_t bytes, off_t to) { DATA(pwrite, -1, ssize_t, fd, from, bytes, to); }
ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t to) {
  DATA(pwrite64, -1, ssize_t, fd, from, bytes, to);
}
int ftruncate(int fd, off_t bytes) { DATA(ftruncate, -1, int, fd, bytes); }
int ftruncate64(int fd, off64_t bytes) { DATA(ftruncate64, -1, int, fd, bytes); }
int fallocate(int fd, int mode, off_t from, off_t bytes) { DATA(fallocate, -1, int, fd, mode, from, bytes); }
int fallocate64(int fd, int mode, off64_t from, off64_t bytes) { DATA(fallocate64, -1, int, fd, mode, from, bytes); }

#define SYNC(name)                           \
  int name(int fd) {                         \
    if (!sees_fd(fd)) return REAL(name)(fd); \
    int result = -1;                         \
    if (enter(#name) == 0) {                 \
      result = REAL(name)(fd);               \
      if (result == 0) record_sync(fd);      \
    }                                        \
    done();                                  \
    return result;                           \
  }
SYNC(fsync)
SYNC(fdatasync)

static int rename_at(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (!sees(from_folder, from) && !sees(to_folder, to)) {
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
  }
  int result = -1;
  if (enter("rename") == 0) {
    const struct place old = place_of(from_folder, from);
    const struct place new = place_of(to_folder, to);
    result = (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    if (result == 0) {
      record("rename %lu %s %lu %s %lu %lu %u", old.folder, old.name, new.folder, new.name, old.inode, new.inode,
             flags);
    }
  }
  done();
  return result;
}
int rename(const char* from, const char* to) { return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return rename_at(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return rename_at(from_folder, from, to_folder, to, flags);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  if (!sees(to_folder, to)) return REAL(linkat)(from_folder, from, to_folder, to, flags);
  int result = -1;
  if (enter("link") == 0) {
    result = REAL(linkat)(from_folder, from, to_folder, to, flags);
    const struct place new = place_of(to_folder, to);
    if (result == 0) record("link %lu %s %lu", new.folder, new.name, new.inode);
  }
  done();
  return result;
}
int link(const char* from, const char* to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char* path, int flags) {
  if (!sees(folder, path)) return REAL(unlinkat)(folder, path, flags);
  int result = -1;
  if (enter("unlink") == 0) {
    const struct place old = place_of(folder, path);
    result = REAL(unlinkat)(folder, path, flags);
    if (result == 0) record("unlink %lu %s %lu", old.folder, old.name, old.inode);
  }
  done();
  return result;
}
int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) {
  const int result = unlinkat(AT_FDCWD, path, 0);
  return result != 0 && (errno == EISDIR || errno == EPERM) ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

int mkdirat(int folder, const char* path, mode_t mode) {
  if (!sees(folder, path)) return REAL(mkdirat)(folder, path, mode);
  int result = -1;
  if (enter("mkdir") == 0) {
    result = REAL(mkdirat)(folder, path, mode);
    const struct place new = place_of(folder, path);
    if (result == 0) record("mkdir %lu %s %lu", new.folder, new.name, new.inode);
  }
  done();
  return result;
}
int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int fstatat(int folder, const char* path, struct stat* status, int flags) {
  PLAIN(sees(folder, path), fstatat, -1, int, folder, path, status, flags);
}
int stat(const char* path, struct stat* status) { PLAIN(sees(AT_FDCWD, path), stat, -1, int, path, status); }
int lstat(const char* path, struct stat* status) { PLAIN(sees(AT_FDCWD, path), lstat, -1, int, path, status); }
int fstat(int fd, struct stat* status) { PLAIN(sees_fd(fd), fstat, -1, int, fd, status); }
int access(const char* path, int mode) { PLAIN(sees(AT_FDCWD, path), access, -1, int, path, mode); }
int faccessat(int folder, const char* path, int mode, int flags) {
  PLAIN(sees(folder, path), faccessat, -1, int, folder, path, mode, flags);
}
int statvfs(const char* path, struct statvfs* space) { PLAIN(sees(AT_FDCWD, path), statvfs, -1, int, path, space); }
int fstatvfs(int fd, struct statvfs* space) { PLAIN(sees_fd(fd), fstatvfs, -1, int, fd, space); }
int fchmod(int fd, mode_t mode) { PLAIN(sees_fd(fd), fchmod, -1, int, fd, mode); }
int fchown(int fd, uid_t user, gid_t group) { PLAIN(sees_fd(fd), fchown, -1, int, fd, user, group); }
char* realpath(const char* path, char* to) { PLAIN(sees(AT_FDCWD, path), realpath, NULL, char*, path, to); }
ssize_t readlink(const char* path, char* to, size_t bytes) {
  PLAIN(sees(AT_FDCWD, path), readlink, -1, ssize_t, path, to, bytes);
}
struct dirent* readdir(DIR* folder) { PLAIN(sees_fd(dirfd(folder)), readdir, NULL, struct dirent*, folder); }
struct dirent64* readdir64(DIR* folder) { PLAIN(sees_fd(dirfd(folder)), readdir64, NULL, struct dirent64*, folder); }

DIR* opendir(const char* path) {
  if (!sees(AT_FDCWD, path)) return REAL(opendir)(path);
  DIR* folder = NULL;
  if (enter("opendir") == 0) folder = REAL(opendir)(path);
  if (folder != NULL) note_fd(dirfd(folder), 1);
  done();
  return folder;
}

int flock(int fd, int operation) {
  if (!sees_fd(fd)) return REAL(flock)(fd, operation);
  const int failed = enter("flock") != 0;
  done();  // others go on while this one waits
  if (failed) return -1;
  const long blocked = number_of("FILE_CALLS_BLOCKED");
  if (blocked >= 0 && (operation & (LOCK_NB | LOCK_UN)) == 0) {
    if (REAL(flock)(fd, operation | LOCK_NB) == 0) return 0;
    if (errno != EWOULDBLOCK) return -1;
    if (syscall(SYS_write, (int)blocked, "x", 1) != 1) abort();
  }
  return REAL(flock)(fd, operation);
}
