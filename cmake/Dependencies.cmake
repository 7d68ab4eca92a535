# What revisit builds on. Everything but fmt, nlohmann-json, zstd and threads is optional; what is
# missing leaves a part out, and `revisit doctor` says which.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(libdw IMPORTED_TARGET libdw)
find_package(ZLIB)
find_package(LibLZMA)
find_path(REVISIT_CLI11_INCLUDE CLI/CLI.hpp HINTS ${CMAKE_SOURCE_DIR}/third-party-headers)
