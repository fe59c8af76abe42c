# SPDX-License-Identifier: Apache-2.0
# Compiler settings shared by every target, and the shape of a layer.

include(GNUInstallDirs) # here, because targets name the installed folders of their headers

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON) # __int128
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# tensorcast_find_beside(TARGET FOLDER): an installed binary finds libraries in FOLDER ("" or such as /../lib), from its own.
function(tensorcast_find_beside target folder)
  if(APPLE)
    target_link_options(${target} PRIVATE LINKER:-rpath,@loader_path${folder})
  else()
    set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN${folder})
  endif()
endfunction()

add_library(tensorcast_settings INTERFACE)
# -ffp-contract=off, as a fused multiply-add that the source does not contain would change results.
# -Wshadow only where a source does not see the names of others (tensorcast_compile_together).
target_compile_options(tensorcast_settings INTERFACE -Wall -Wextra $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>
                                                     -ffp-contract=off)
# All components use the headers; components after core link the library (src/dtype/formatted.hpp).
target_include_directories(tensorcast_settings SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
if(TENSORCAST_PRECOMPILED_HEADERS) # all read the same headers of fmt
  target_compile_definitions(tensorcast_settings INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # A false positive for std::string, https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105329
  target_compile_options(tensorcast_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(WIN32 AND BUILD_SHARED_LIBS)
  target_compile_definitions(tensorcast_settings INTERFACE "TENSORCAST_API=__declspec(dllexport)" "TC_API=__declspec(dllexport)")
endif()
if(TENSORCAST_WARNINGS_AS_ERRORS)
  target_compile_options(tensorcast_settings INTERFACE -Werror)
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
  # A subproject of a project without a build type: kernels are of no use without optimization.
  target_compile_options(tensorcast_settings INTERFACE -O3)
endif()
if(TENSORCAST_SANITIZE)
  target_compile_options(tensorcast_settings INTERFACE -fsanitize=${TENSORCAST_SANITIZE} -fno-sanitize-recover=all
                                                       -fno-omit-frame-pointer)
  target_link_options(tensorcast_settings INTERFACE -fsanitize=${TENSORCAST_SANITIZE})
endif()
if(TENSORCAST_BUILD_FUZZERS)
  # Coverage of all code guides the fuzzer.
  target_compile_options(tensorcast_settings INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(tensorcast_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# For code that only calls the library: full optimization would take a third of its compile time.
function(tensorcast_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# For code that computes little: of the time that sanitizers add to compiling, most is that of optimizing what they
# insert.
function(tensorcast_compile_sanitized)
  foreach(target IN LISTS ARGN)
    if(TENSORCAST_SANITIZE AND TARGET ${target})
      target_compile_options(${target} PRIVATE -O0)
    endif()
  endforeach()
endfunction()

# For what would take minutes without optimization, in a build that has little (preset quick, scripts/demo).
function(tensorcast_compile_optimized name)
  if(name IN_LIST TENSORCAST_OPTIMIZED_LAYERS)
    foreach(target IN LISTS ARGN)
      if(TARGET ${target})
        target_compile_options(${target} PRIVATE $<IF:$<CONFIG:Release>,-O3,-O2>)
      endif()
    endforeach()
  endif()
endfunction()

# tensorcast_precompile(LAYER TARGETS...): the headers of others that most sources include are read once for all layers with
# the same flags, and not for each source, which takes a quarter of its time (preset quick). Presets dev and tidy do without, so
# that a forgotten include is found there.
function(tensorcast_precompile name)
  if(NOT TENSORCAST_PRECOMPILED_HEADERS)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    set(headers tensorcast_headers_${type})
    if(name IN_LIST TENSORCAST_OPTIMIZED_LAYERS)
      string(APPEND headers _optimized)
    endif()
    if(NOT TARGET ${headers})
      file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() { return 0; }\n")
      if(type STREQUAL EXECUTABLE)
        add_executable(${headers} EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cpp)
        target_link_libraries(${headers} PRIVATE GTest::gtest)
        target_precompile_headers(${headers} PRIVATE <gtest/gtest.h> <random>)
      else()
        add_library(${headers} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cpp)
      endif()
      target_link_libraries(${headers} PRIVATE tensorcast_settings)
      target_precompile_headers(${headers} PRIVATE
        <algorithm> <array> <bit> <charconv> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits> <map> <memory>
        <numeric> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
      tensorcast_compile_optimized(${name} ${headers})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endforeach()
endfunction()

# For large code that is rarely hot, such as readers of graphs and documents: full optimization makes it 2.5 times as
# large, and takes longer to compile.
function(tensorcast_compile_small target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()

# tensorcast_compile_together(TARGET SOURCES...): eight sources of a folder are one for the compiler, which needs most of
# its time for the headers that they share; 24 of the target with ACROSS_FOLDERS, if names of anonymous namespaces differ
# between its folders. Not with TENSORCAST_SEPARATE_SOURCES, so that a change compiles one alone.
function(tensorcast_compile_together target)
  cmake_parse_arguments(PARSE_ARGV 1 together "ACROSS_FOLDERS" "" "")
  if(TENSORCAST_SEPARATE_SOURCES)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(last_folder "")
  set(most 8)
  if(together_ACROSS_FOLDERS)
    set(most 24)
  endif()
  foreach(source IN LISTS together_UNPARSED_ARGUMENTS)
    cmake_path(GET source PARENT_PATH folder)
    if(together_ACROSS_FOLDERS)
      set(folder ${CMAKE_CURRENT_SOURCE_DIR})
    endif()
    if(NOT folder STREQUAL last_folder)
      set(last_folder ${folder})
      set(count 0)
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${folder})
      string(REPLACE / _ name ${name})
    endif()
    math(EXPR group "${count} / ${most}")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${group})
  endforeach()
endfunction()

# tensorcast_layer(NAME [ACROSS_FOLDERS] [DEPENDS lower layers] [LINK libraries] [EXCLUDE patterns] [PARTS names])
# An object library of every .cpp of the current folder and below, its *_test.cpp apart as the test program NAME_test.
# A layer's test links only the lower layers that the layer names.
# A part is one more object library of the layer, tensorcast_NAME_PART, whose sources the caller adds.
function(tensorcast_layer name)
  cmake_parse_arguments(layer "ACROSS_FOLDERS" "" "DEPENDS;LINK;TEST_LINK;EXCLUDE;PARTS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz)\\.cpp$")
  foreach(pattern IN LISTS layer_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()

  add_library(tensorcast_${name} OBJECT ${sources})
  target_include_directories(tensorcast_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tensorcast_${name} PRIVATE tensorcast_settings PUBLIC ${layer_LINK})
  if(NOT component STREQUAL core) # whose loops are large, and differ by instruction set
    set(how "")
    if(layer_ACROSS_FOLDERS)
      set(how ACROSS_FOLDERS)
    endif()
    tensorcast_compile_together(tensorcast_${name} ${how} ${sources})
  endif()
  set(objects $<TARGET_OBJECTS:tensorcast_${name}>)
  foreach(part IN LISTS layer_PARTS)
    add_library(tensorcast_${name}_${part} OBJECT)
    target_include_directories(tensorcast_${name}_${part} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(tensorcast_${name}_${part} PRIVATE tensorcast_settings)
    list(APPEND objects $<TARGET_OBJECTS:tensorcast_${name}_${part}>)
  endforeach()
  set(links ${layer_LINK})
  foreach(lower IN LISTS layer_DEPENDS)
    get_property(lower_objects TARGET tensorcast_${lower} PROPERTY TENSORCAST_OBJECTS)
    get_property(lower_links TARGET tensorcast_${lower} PROPERTY TENSORCAST_LINKS)
    list(APPEND objects ${lower_objects})
    list(APPEND links ${lower_links})
  endforeach()
  list(REMOVE_DUPLICATES objects)
  list(REMOVE_DUPLICATES links)
  set_property(TARGET tensorcast_${name} PROPERTY TENSORCAST_OBJECTS "${objects}")
  set_property(TARGET tensorcast_${name} PROPERTY TENSORCAST_LINKS "${links}")

  if(TENSORCAST_BUILD_TESTS AND tests)
    find_package(GTest REQUIRED)
    add_executable(${name}_test ${tests} ${objects})
    target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name}_test PRIVATE tensorcast_settings ${links} ${layer_TEST_LINK} GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE TENSORCAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    tensorcast_compile_quickly(${name}_test)
    tensorcast_compile_together(${name}_test ${tests})
    add_test(NAME ${name} COMMAND ${name}_test)
  endif()
  foreach(part IN LISTS layer_PARTS)
    tensorcast_compile_optimized(${name}_${part} tensorcast_${name}_${part})
  endforeach()
  tensorcast_precompile(${name} tensorcast_${name} ${name}_test) # not the parts, whose flags are those of an instruction set
  list(TRANSFORM layer_PARTS PREPEND tensorcast_${name}_)
  tensorcast_compile_optimized(${name} tensorcast_${name} ${layer_PARTS} ${name}_test)
endfunction()

# tensorcast_component(NAME LIBRARY LAYERS...): adds the folders of the layers, and a library of their objects and of those
# of all components before. So a program links one library, and the shared ones need not export what a later component
# uses of an earlier one.
function(tensorcast_component name library)
  set(component ${name}) # for its layers
  foreach(layer IN LISTS ARGN)
    add_subdirectory(${layer})
    if(NOT name STREQUAL core)
      tensorcast_compile_sanitized(tensorcast_${layer} ${layer}_test)
    endif()
    get_property(layer_objects TARGET tensorcast_${layer} PROPERTY TENSORCAST_OBJECTS)
    get_property(layer_links TARGET tensorcast_${layer} PROPERTY TENSORCAST_LINKS)
    set_property(GLOBAL APPEND PROPERTY TENSORCAST_OBJECTS ${layer_objects})
    set_property(GLOBAL APPEND PROPERTY TENSORCAST_LINKS ${layer_links})
  endforeach()
  get_property(objects GLOBAL PROPERTY TENSORCAST_OBJECTS)
  get_property(links GLOBAL PROPERTY TENSORCAST_LINKS)
  list(REMOVE_DUPLICATES objects)
  list(REMOVE_DUPLICATES links)

  add_library(${library} ${objects})
  add_library(tensorcast::${name} ALIAS ${library})
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_link_libraries(${library} PRIVATE ${links})
  target_link_options(${library} PRIVATE $<$<CONFIG:Release>:LINKER:--gc-sections>)
  # Before 1.0 a minor version may change the C++ interface.
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(soversion 0.${PROJECT_VERSION_MINOR})
  else()
    set(soversion ${PROJECT_VERSION_MAJOR})
  endif()
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX TENSORCAST_COMPONENT ${name} EXPORT_NAME ${name}
                                              VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
  set_property(GLOBAL APPEND PROPERTY TENSORCAST_LIBRARIES ${library})
endfunction()

# tensorcast_fuzzer(NAME SOURCE...): a libFuzzer program linked with the library.
function(tensorcast_fuzzer name)
  if(NOT TENSORCAST_BUILD_FUZZERS)
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE tensorcast_settings tensorcast_objects)
  set_property(GLOBAL APPEND PROPERTY TENSORCAST_FUZZERS ${name})
endfunction()
