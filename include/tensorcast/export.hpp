// SPDX-License-Identifier: Apache-2.0
// Component core. What every header needs: the check of the language, the namespace of this version, the marks of
// exported symbols.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "tensorcast needs C++20: compile with -std=c++20 or later. For older standards there is tensorcast/c_api.h."
#endif

// The namespace inside `tensorcast` whose name is part of every symbol, so that a program compiled for another minor
// version does not link by accident. Write `tensorcast::cast`, never this name.
#define TENSORCAST_ABI v0_1

// Marks what the shared library exports; all other symbols are hidden.
#if !defined(_WIN32)
#define TENSORCAST_API __attribute__((visibility("default")))
#elif !defined(TENSORCAST_API)  // the build of a DLL defines it
#define TENSORCAST_API
#endif

// A returned view borrows from the object: compilers that know the attribute warn where it outlives a temporary.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define TENSORCAST_LIFETIMEBOUND [[clang::lifetimebound]]
#elif __has_cpp_attribute(msvc::lifetimebound)
#define TENSORCAST_LIFETIMEBOUND [[msvc::lifetimebound]]
#endif
#endif
#if !defined(TENSORCAST_LIFETIMEBOUND)
#define TENSORCAST_LIFETIMEBOUND
#endif
