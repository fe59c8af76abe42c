# SPDX-License-Identifier: Apache-2.0
# Debian packages of what is installed, a package for each component (scripts/package builds and tries them):
# libtensorcast0.1 has the libraries, libtensorcast-dev what compiling against them needs, tcast the command.
set(TENSORCAST_MANUAL "" CACHE PATH "For Debian packages: a folder of manual pages to install, tcast*.1.gz")
set(TENSORCAST_SBOM "" CACHE FILEPATH "For Debian packages: the software bill of materials, which scripts/make/sbom makes")
if(NOT TENSORCAST_MANUAL OR NOT BUILD_SHARED_LIBS OR NOT TARGET tcast)
  return()
endif()

# One page for each subcommand, which scripts/package makes from --help.
install(DIRECTORY ${TENSORCAST_MANUAL}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools
        FILES_MATCHING PATTERN "*.1.gz")

get_target_property(soversion tensorcast SOVERSION)
set(runtime libtensorcast${soversion})
set(dev libtensorcast-dev)
set(tools tcast)
foreach(component IN ITEMS runtime dev tools)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${${component}})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${${component}}
          RENAME copyright COMPONENT ${component})
  if(TENSORCAST_SBOM)
    install(FILES ${TENSORCAST_SBOM} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${${component}} COMPONENT ${component})
  endif()
endforeach()
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "${PROJECT_DESCRIPTION}: libraries")
set(CPACK_DEBIAN_DEV_DESCRIPTION "${PROJECT_DESCRIPTION}: headers, CMake and pkg-config files")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "${PROJECT_DESCRIPTION}: the command")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
# The interfaces of a version fit that version alone before 1.0.
set(same "${runtime} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${same}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${same}")

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime dev tools)
set(CPACK_PACKAGE_NAME tensorcast)
set(CPACK_PACKAGE_CONTACT "${PROJECT_NAME}" CACHE STRING "Maintainer of the packages: name and address")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # the versions of libraries that it needs
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
