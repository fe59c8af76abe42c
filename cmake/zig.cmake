# SPDX-License-Identifier: Apache-2.0
# Compiles for an older C library, another CPU or another system, with zig's clang and libc++, linked statically.
# scripts/make/zig-target prepares the folder TENSORCAST_ZIG: the compilers of one target, and its libraries in prefix/.
set(TENSORCAST_ZIG "" CACHE PATH "build/zig/TARGET, as scripts/make/zig-target makes it")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TENSORCAST_ZIG)
get_filename_component(zig_target ${TENSORCAST_ZIG} NAME)

string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR ${zig_target})
if(zig_target MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_SYSTEM_VERSION 20) # of macOS 11
  set(CMAKE_OSX_SYSROOT "")
  set(CMAKE_INSTALL_NAME_DIR @rpath)
  set(CMAKE_BUILD_WITH_INSTALL_NAME_DIR ON) # nothing here could change it afterwards
  set(CMAKE_USER_MAKE_RULES_OVERRIDE ${CMAKE_CURRENT_LIST_DIR}/zig-macos.cmake)
elseif(zig_target MATCHES "-windows")
  set(CMAKE_SYSTEM_NAME Windows)
  set(CMAKE_RC_COMPILER ${TENSORCAST_ZIG}/rc) # which CMake demands
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
foreach(kind IN ITEMS EXE SHARED MODULE)
  # Layers name some libraries without a folder, such as re2.
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-s -L${TENSORCAST_ZIG}/prefix/lib")
endforeach()
set(CMAKE_C_COMPILER ${TENSORCAST_ZIG}/clang)
set(CMAKE_CXX_COMPILER ${TENSORCAST_ZIG}/clang++)
set(CMAKE_AR ${TENSORCAST_ZIG}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${TENSORCAST_ZIG}/ranlib CACHE FILEPATH "")
# Names of sources in the binaries do not depend on the folder.
get_filename_component(project_folder ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-ffile-prefix-map=${project_folder}=.")
endforeach()

# The host's libraries and headers do not fit.
set(CMAKE_FIND_ROOT_PATH ${TENSORCAST_ZIG}/prefix)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# What is not for the machine that compiles.
set(TENSORCAST_WITH_TBB OFF CACHE STRING "")
foreach(part IN ITEMS TESTS BENCHMARKS EXAMPLES)
  set(TENSORCAST_BUILD_${part} OFF CACHE BOOL "")
endforeach()
