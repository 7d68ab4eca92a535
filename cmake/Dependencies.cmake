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

# A CUDA compiler, where its toolkit usually lies. Only src/gpu uses it. REVISIT_CUDA=OFF leaves it out.
option(REVISIT_CUDA "build the GPU engine where a CUDA compiler is found" ON)
set(REVISIT_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures to build for (machine code and PTX)")
if(REVISIT_CUDA)
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
