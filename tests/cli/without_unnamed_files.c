/* For LD_PRELOAD: a file system that does not know unnamed files, and a signal at the worst moment: SIGNAL_AT_SYNC. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

static int open_at(const char* function, int folder, const char* path, int flags, unsigned mode) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  int (*real)(int, const char*, int, unsigned) = (int (*)(int, const char*, int, unsigned))dlsym(RTLD_NEXT, function);
  return real(folder, path, flags, mode);
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

int fsync(int fd) {
  const char* number = getenv("SIGNAL_AT_SYNC");
  if (number != NULL) raise(atoi(number));
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return real(fd);
}
