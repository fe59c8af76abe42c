# Install, export, pkg-config; and what the shared library shows.
include(CMakePackageConfigHelpers)

get_target_property(type tensorcast TYPE)
if(type STREQUAL SHARED_LIBRARY AND NOT APPLE)
  # Hidden visibility does not cover instances of the standard library's templates; this list does.
  set(exports ${CMAKE_CURRENT_LIST_DIR}/tensorcast.map)
  target_link_options(tensorcast PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
  set_property(TARGET tensorcast APPEND PROPERTY LINK_DEPENDS ${exports})
endif()

install(TARGETS tensorcast EXPORT tensorcast-targets)
if(TENSORCAST_BUILD_TOOLS)
  file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(tcast PROPERTIES INSTALL_RPATH $ORIGIN/${bin_to_lib})
  install(TARGETS tcast)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tensorcast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tensorcast)
install(EXPORT tensorcast-targets NAMESPACE tensorcast:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tensorcast-config.cmake.in tensorcast-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(tensorcast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tensorcast-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tensorcast-config-version.cmake
        DESTINATION ${package_dir})

# A static library brings its dependencies along to whoever links it; a shared one has them already.
if(type STREQUAL STATIC_LIBRARY)
  set(pkgconfig_requires "fmt, tbb, zlib, re2, pugixml, yaml-cpp")
  set(pkgconfig_libs "-lstdc++ -lm -pthread")
endif()
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tensorcast.pc.in tensorcast.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tensorcast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
