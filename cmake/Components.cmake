# SPDX-License-Identifier: Apache-2.0
# Include roots that hold exactly what a component may see, so that a wrong #include does not compile. They are links in the build
# folder: a root at the top of the source tree would let every component include every other.

# elsewise_include_root(<target> <root> <path in the source tree>...): an INTERFACE target whose only include directory has just these.
function(elsewise_include_root target root)
  set(dir ${PROJECT_BINARY_DIR}/include/${root})
  file(REMOVE_RECURSE ${dir})
  foreach(path IN LISTS ARGN)
    get_filename_component(parent ${dir}/${path} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${path} ${dir}/${path} SYMBOLIC)
  endforeach()
  add_library(${target} INTERFACE)
  target_include_directories(${target} INTERFACE ${dir})
endfunction()

elsewise_include_root(elsewise_grammar grammar grammar)
elsewise_include_root(elsewise_compiler_headers compiler compiler)
elsewise_include_root(elsewise_runtime_headers runtime runtime)
elsewise_include_root(elsewise_tests_headers tests tests)
# What a host of libelsewise sees: the facade and the plain types in it.
elsewise_include_root(elsewise_facade facade runtime/elsewise.h compiler/types/types.h grammar)

# elsewise_llvm_sources(<file>...): these files may include all of LLVM; every other file sees its support library only.
function(elsewise_llvm_sources)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -isystem${LLVM_INCLUDE_DIRS})
endfunction()

# elsewise_no_rtti(<file>...): for files that derive from LLVM's classes, whose typeinfo does not exist.
function(elsewise_no_rtti)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -fno-rtti)
endfunction()
