# SPDX-License-Identifier: Apache-2.0
# The symbols that the shared libraries export; and, with TENSORCAST_INSTALL, install, export and pkg-config.
# What is installed has a component: runtime, dev or tools; python and openvino are those of wheels. TensorcastPackage.cmake makes
# packages of the first three.
get_property(libraries GLOBAL PROPERTY TENSORCAST_LIBRARIES)
foreach(library IN LISTS libraries)
  get_target_property(type ${library} TYPE)
  if(type STREQUAL SHARED_LIBRARY AND NOT APPLE)
    # Hidden visibility does not cover instances of the standard library's templates; this list does.
    set(exports ${CMAKE_CURRENT_LIST_DIR}/tensorcast.map)
    target_link_options(${library} PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
    set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${exports})
  endif()
endforeach()
if(NOT TENSORCAST_INSTALL)
  return()
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tensorcast)
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

# tensorcast_pkg_config(NAME LIBRARY DESCRIPTION): NAME.pc. Users of a static library also link the libraries
# that it needs; a shared library contains them already.
function(tensorcast_pkg_config name library description)
  if(type STREQUAL STATIC_LIBRARY)
    list(JOIN requires ", " pkgconfig_requires)
    set(pkgconfig_libs "-lstdc++ -lm -pthread")
  endif()
  configure_file(cmake/tensorcast.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()

# For pkg-config: the libraries that each component's static library needs, besides those of earlier components.
set(requires_core)
if(TENSORCAST_TBB)
  list(APPEND requires_core tbb)
endif()
set(requires_files fmt zlib re2)
set(requires_models pugixml yaml-cpp)

set(components)
set(requires)
foreach(library IN LISTS libraries)
  get_target_property(type ${library} TYPE)
  get_target_property(component ${library} TENSORCAST_COMPONENT)
  list(APPEND components ${component})
  list(APPEND requires ${requires_${component}})
  install(TARGETS ${library} EXPORT tensorcast-${component}-targets
          LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev ARCHIVE COMPONENT dev RUNTIME COMPONENT runtime)
  install(EXPORT tensorcast-${component}-targets NAMESPACE tensorcast:: DESTINATION ${package_dir} COMPONENT dev)
  tensorcast_pkg_config(tensorcast-${component} ${library} "${PROJECT_DESCRIPTION} (${component})")
endforeach()
if(TARGET tensorcast)
  tensorcast_pkg_config(tensorcast tensorcast "${PROJECT_DESCRIPTION}")
endif()

if(TARGET tcast)
  file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  tensorcast_find_beside(tcast /${bin_to_lib})
  install(TARGETS tcast COMPONENT tools)
  set(zsh_folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL /usr AND EXISTS /etc/debian_version)
    set(zsh_folder vendor-completions) # where Debian's zsh looks for those of packages
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/tools/tcast/commands/completion.bash RENAME tcast
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/tcast/commands/completion.zsh RENAME _tcast
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_folder} COMPONENT tools)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/tcast/commands/completion.fish RENAME tcast.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
  if(NOT TENSORCAST_MANUAL) # those of Debian's packages
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  endif()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tensorcast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
if(NOT TENSORCAST_MANUAL) # Debian's packages have it under another name
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tensorcast COMPONENT dev)
endif()

# What a program in C links besides a static library.
set(cpp_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER cpp_libraries INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|c\\+\\+abi|m)$")
list(REMOVE_DUPLICATES cpp_libraries)

configure_package_config_file(cmake/tensorcast-config.cmake.in tensorcast-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(tensorcast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tensorcast-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tensorcast-config-version.cmake
        DESTINATION ${package_dir} COMPONENT dev)

include(TensorcastPackage)
