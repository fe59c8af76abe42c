# SPDX-License-Identifier: Apache-2.0
# After CMake's own settings for macOS: zig links no bundles, and what loads modules loads libraries, too.
foreach(language IN ITEMS C CXX)
  string(REPLACE -bundle -dynamiclib CMAKE_SHARED_MODULE_CREATE_${language}_FLAGS
                 "${CMAKE_SHARED_MODULE_CREATE_${language}_FLAGS}")
endforeach()
