// SPDX-License-Identifier: Apache-2.0
// What the platform lacks, and what a build leaves out. Each is 1 natively. scripts/web compiles for WebAssembly, which
// has no threads and, as compiled there, no exceptions.
#pragma once

// Without exceptions, memory that runs out ends the program, or the instance of a module.
#if defined(__cpp_exceptions)
#define TENSORCAST_HAS_EXCEPTIONS 1
#else
#define TENSORCAST_HAS_EXCEPTIONS 0
#endif

// Without threads, the standard library has no mutexes either.
#if defined(__wasm__) && !defined(_REENTRANT)
#define TENSORCAST_HAS_THREADS 0
#else
#define TENSORCAST_HAS_THREADS 1
#endif

// Without kernels, the reference converts and there are no reports: a tenth of the code, for programs that explain.
#if !defined(TENSORCAST_HAS_KERNELS)
#define TENSORCAST_HAS_KERNELS 1
#endif

// Kernels that do what others do, too, and faster: 14 kB of a page's module, which reads it before it begins.
#if defined(__wasm__)
#define TENSORCAST_HAS_SHORTCUTS 0
#else
#define TENSORCAST_HAS_SHORTCUTS 1
#endif
