# SPDX-License-Identifier: Apache-2.0
# Compiler, linker and output settings that hold for every target. Nothing here knows a target's name.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_COMPILE_WARNING_AS_ERROR ${ELSEWISE_WERROR})

# Dev: optimised, since tests compile many kernels; no debug information, since it triples link time; assertions and the IR verifier on.
set(CMAKE_CXX_FLAGS_DEV "-O2 -g0")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "Dev, Release or Debug" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -ffunction-sections -fdata-sections -fdiagnostics-color=auto)
add_link_options(-Wl,--gc-sections -Wl,--no-undefined)
string(APPEND CMAKE_SHARED_LINKER_FLAGS_RELEASE " -s")
string(APPEND CMAKE_MODULE_LINKER_FLAGS_RELEASE " -s")
string(APPEND CMAKE_EXE_LINKER_FLAGS_RELEASE " -s")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Linking LLVM takes most of a core and much memory: one link at a time.
set_property(GLOBAL PROPERTY JOB_POOLS link=1)
set(CMAKE_JOB_POOL_LINK link)

# mold links LLVM in a second or two where ld takes twenty; the result is the same for our purposes, so use it where it is installed.
find_program(MOLD mold)
if(MOLD AND NOT CMAKE_BUILD_TYPE STREQUAL Release)
  add_link_options(-fuse-ld=mold)
endif()
