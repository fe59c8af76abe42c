/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded before the address sanitizer, which ends programs that load a library with RTLD_DEEPBIND, as oneTBB does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

void* dlopen(const char* file, int mode) {
  void* (*next)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  return next(file, mode & ~RTLD_DEEPBIND);
}
