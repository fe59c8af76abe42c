# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for 64-bit ARM with Debian's compiler and libraries (scripts/bootstrap --arm), and runs what was built
# in an emulator.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
# The host's packages do not fit the target machine, although their headers are in the same folders.
set(CMAKE_SYSTEM_PREFIX_PATH /usr)
set(CMAKE_IGNORE_PREFIX_PATH /usr/local)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
