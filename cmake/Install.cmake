# make install: program, library, headers, CMake package, pkg-config file. `make package` makes packages of three
# parts: what programs are built with (dev), the Python module (python), and the rest (runtime).
include(CMakePackageConfigHelpers)

if(REVISIT_FUZZ)
  return()
endif()
# The archive (component core of find_package) and the shared library (component shared).
install(TARGETS revisit_static EXPORT revisit-core-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(TARGETS revisit_shared EXPORT revisit-shared-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
foreach(part core shared)
  install(EXPORT revisit-${part}-targets NAMESPACE revisit:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/revisit COMPONENT dev)
endforeach()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

# What a program that links the archive must find too.
set(REVISIT_PKG_REQUIRES "fmt libzstd")
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
# revisit.pc names the prefix it is installed to, which is known only then. In packages, which can be unpacked
# anywhere, it is the way from the file's own folder.
configure_file(cmake/revisit.pc.in ${CMAKE_BINARY_DIR}/revisit.pc.in @ONLY)
file(RELATIVE_PATH way_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
install(CODE "
  set(REVISIT_PKG_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
  if(REVISIT_PKG_PREFIX MATCHES _CPack_Packages)
    set(REVISIT_PKG_PREFIX \"\\\${pcfiledir}/${way_to_prefix}\")
  endif()
  file(READ \"${CMAKE_BINARY_DIR}/revisit.pc.in\" text)
  string(REPLACE \"INSTALL_PREFIX\" \"\${REVISIT_PKG_PREFIX}\" text \"\${text}\")
  file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/revisit.pc\" \"\${text}\")
" COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/revisit-config.cmake ${CMAKE_BINARY_DIR}/revisit-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/revisit COMPONENT dev)

if(TARGET revisit_program)
  install(TARGETS revisit_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Man pages and completions come out of the program itself, so they say what --help says.
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/share/man/man1/revisit.1
                     COMMAND revisit_program --generate-manuals ${CMAKE_BINARY_DIR}/share
                     DEPENDS revisit_program COMMENT "Writing man pages and completions")
  add_custom_target(manuals ALL DEPENDS ${CMAKE_BINARY_DIR}/share/man/man1/revisit.1)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()
