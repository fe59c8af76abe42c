/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a file system that does not know unnamed files, and a signal at the worst moments: when the hidden
   file exists (SIGNAL_AT_CREATE), when it has some bytes (SIGNAL_AT_WRITE), when it is complete (SIGNAL_AT_SYNC). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/types.h>

static void signal_at(const char* moment) {
  const char* number = getenv(moment);
  if (number != NULL) raise(atoi(number));
}

static int open_at(const char* function, int folder, const char* path, int flags, unsigned mode) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  int (*real)(int, const char*, int, unsigned) = (int (*)(int, const char*, int, unsigned))dlsym(RTLD_NEXT, function);
  int fd = real(folder, path, flags, mode);
  if (fd >= 0 && (flags & O_CREAT) != 0) signal_at("SIGNAL_AT_CREATE");
  return fd;
}

#define OPEN_AT(name)                                      \
  int name(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                     \
    va_start(arguments, flags);                            \
    unsigned mode = va_arg(arguments, unsigned);           \
    va_end(arguments);                                     \
    return open_at(#name, folder, path, flags, mode);      \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

#define PWRITE(name)                                                          \
  ssize_t name(int fd, const void* bytes, size_t count, off_t offset) {       \
    ssize_t (*real)(int, const void*, size_t, off_t) =                        \
        (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, #name); \
    ssize_t put = real(fd, bytes, count, offset);                             \
    signal_at("SIGNAL_AT_WRITE");                                             \
    return put;                                                               \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int fd) {
  signal_at("SIGNAL_AT_SYNC");
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return real(fd);
}
