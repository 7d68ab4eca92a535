# What revisit builds on. Everything but fmt, nlohmann-json, zstd and threads is optional; what is
# missing leaves a part out, and `revisit doctor` says which.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
set(REVISIT_FMT fmt::fmt)

# With libc++ (-stdlib=libc++) libraries in C++ that the system's packages have cannot be linked: they were built with
# libstdc++. fmt is taken as headers, GoogleTest from its sources, and what links LLVM is compiled with libstdc++.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <version>\n#ifndef _LIBCPP_VERSION\n#error\n#endif\nint main() {}" REVISIT_LIBCXX)
set(REVISIT_LLVM_STDLIB "")
if(REVISIT_LIBCXX)
  set(REVISIT_FMT fmt::fmt-header-only)
  set(REVISIT_LLVM_STDLIB -stdlib=libstdc++)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fexperimental-library>)  # std::jthread, until 20
  add_link_options(-fexperimental-library)
endif()
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(libdw IMPORTED_TARGET libdw)
pkg_check_modules(capstone IMPORTED_TARGET capstone)
find_package(ZLIB)
find_package(LibLZMA)
find_path(REVISIT_CLI11_INCLUDE CLI/CLI.hpp HINTS ${CMAKE_SOURCE_DIR}/third-party-headers)

# LLVM, for predict and the clang plug-in: the newest of those that work, with the clang of the same version.
# REVISIT_LLVM_VERSION=20 takes that one.
set(REVISIT_LLVM_VERSION "" CACHE STRING "the LLVM to build with: 19, 20 or 21 (default: the newest there is)")
set(llvm_versions 21 20 19)
if(REVISIT_LLVM_VERSION)
  set(llvm_versions ${REVISIT_LLVM_VERSION})
endif()
foreach(version ${llvm_versions})
  find_path(REVISIT_LLVM_INCLUDE llvm/Passes/PassPlugin.h PATHS /usr/lib/llvm-${version}/include NO_DEFAULT_PATH)
  if(REVISIT_LLVM_INCLUDE)
    find_library(REVISIT_LLVM NAMES LLVM-${version} LLVM PATHS /usr/lib/llvm-${version}/lib NO_DEFAULT_PATH)
    find_program(REVISIT_CLANG NAMES clang-${version} clang HINTS /usr/lib/llvm-${version}/bin)
    find_program(REVISIT_CLANGXX NAMES clang++-${version} clang++ HINTS /usr/lib/llvm-${version}/bin)
    break()
  endif()
endforeach()
set(REVISIT_HAVE_LLVM OFF)
if(REVISIT_LLVM_INCLUDE AND REVISIT_LLVM)
  set(REVISIT_HAVE_LLVM ON)
endif()

# A CUDA compiler, where its toolkit usually lies. Only src/gpu uses it. REVISIT_CUDA=OFF leaves it out.
option(REVISIT_CUDA "build the GPU engine where a CUDA compiler is found" ON)
set(REVISIT_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures to build for (machine code and PTX)")
if(REVISIT_CUDA AND NOT REVISIT_LIBCXX)  # nvcc compiles for its host with libstdc++
  find_program(REVISIT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda/bin)
  if(REVISIT_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${REVISIT_NVCC})
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${REVISIT_CUDA_ARCHITECTURES})
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(REVISIT_HAVE_CUDA ON)
    set(REVISIT_PKG_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
  endif()
endif()

# MPI, for src/cluster alone.
option(REVISIT_MPI "build the cluster engine where MPI is found" ON)
if(REVISIT_MPI)
  find_package(MPI COMPONENTS CXX)
endif()
