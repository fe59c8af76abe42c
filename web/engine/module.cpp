// SPDX-License-Identifier: Apache-2.0
// What a module of WebAssembly needs besides the library.

// Destructors of thread_local objects: the module's one thread never ends.
extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }
