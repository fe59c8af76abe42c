# SPDX-License-Identifier: Apache-2.0
# After CMake's own settings for macOS: zig links no bundles, and what loads modules loads libraries, too.
foreach(language IN ITEMS C CXX)
  string(REPLACE -bundle -dynamiclib CMAKE_SHARED_MODULE_CREATE_${language}_FLAGS
                 "${CMAKE_SHARED_MODULE_CREATE_${language}_FLAGS}")
endforeach()
# Which CMake leaves out where no macOS tells its version.
set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,")
