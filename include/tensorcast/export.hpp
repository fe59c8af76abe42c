// Marks what the shared library exports; all other symbols are hidden.
#pragma once

#if defined(_WIN32)
#define TENSORCAST_API
#else
#define TENSORCAST_API __attribute__((visibility("default")))
#endif
