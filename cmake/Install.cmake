# make install: program, library, headers, CMake package, pkg-config file. `make package` makes packages of three
# parts: what programs are built with (dev), the Python module (python), and the rest (runtime).
include(CMakePackageConfigHelpers)

install(TARGETS revisit_library EXPORT revisit-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/revisit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(EXPORT revisit-targets NAMESPACE revisit:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/revisit COMPONENT dev)

# What a program that links the archive must find too. Parts that other rooms link by pkg-config belong
# in this list, under the name Dependencies.cmake gave their target.
set(REVISIT_PKG_TARGETS "zstd=libzstd")
set(REVISIT_PKG_REQUIRES "fmt libzstd")
if(libdw_FOUND)
  list(APPEND REVISIT_PKG_TARGETS "libdw=libdw")
  string(APPEND REVISIT_PKG_REQUIRES " libdw")
endif()
if(capstone_FOUND)
  list(APPEND REVISIT_PKG_TARGETS "capstone=capstone")
  string(APPEND REVISIT_PKG_REQUIRES " capstone")
endif()
if(ZLIB_FOUND)
  string(APPEND REVISIT_PKG_REQUIRES " zlib")
endif()
if(LibLZMA_FOUND)
  string(APPEND REVISIT_PKG_REQUIRES " liblzma")
endif()

configure_package_config_file(cmake/revisit-config.cmake.in ${CMAKE_BINARY_DIR}/revisit-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/revisit)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/revisit-config-version.cmake
                                 COMPATIBILITY SameMajorVersion)
# From the file's own folder to the prefix, so that the installed tree can be moved.
file(RELATIVE_PATH REVISIT_PKG_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/revisit.pc.in ${CMAKE_BINARY_DIR}/revisit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/revisit-config.cmake ${CMAKE_BINARY_DIR}/revisit-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/revisit COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/revisit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

if(TARGET revisit_program)
  install(TARGETS revisit_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Man pages and completions come out of the program itself, so they say what --help says.
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/share/man/man1/revisit.1
                     COMMAND revisit_program --generate-manuals ${CMAKE_BINARY_DIR}/share
                     DEPENDS revisit_program COMMENT "Writing man pages and completions")
  add_custom_target(manuals ALL DEPENDS ${CMAKE_BINARY_DIR}/share/man/man1/revisit.1)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()
