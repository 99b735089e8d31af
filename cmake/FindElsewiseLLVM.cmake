# SPDX-License-Identifier: Apache-2.0
# Finds LLVM (-DLLVM_DIR, else the Python package mlc-llvm-static, else the system's) and says which parts are linked and which headers
# are for everyone. It never builds or downloads LLVM.
if(LLVM_DIR AND NOT EXISTS ${LLVM_DIR}/LLVMConfig.cmake)
  unset(LLVM_DIR CACHE) # an isolated Python build leaves a path that is gone by the next one
endif()
if(NOT LLVM_DIR)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import mlc_llvm_static as m, os; print(os.path.join(os.path.dirname(m.__file__), 'static/lib/cmake/llvm'))"
    OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(dir AND EXISTS ${dir}/LLVMConfig.cmake)
    set(LLVM_DIR ${dir} CACHE PATH "Folder of LLVMConfig.cmake" FORCE)
  endif()
endif()
enable_language(C) # LLVM's own find modules check with it
find_package(LLVM CONFIG)
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM not found: pip install mlc-llvm-static, or -DLLVM_DIR=<folder of LLVMConfig.cmake>, 19 or newer")
elseif(LLVM_VERSION_MAJOR LESS 19)
  message(FATAL_ERROR "LLVM ${LLVM_PACKAGE_VERSION} is too old: 19 or newer is needed")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION}: ${LLVM_DIR}")

llvm_map_components_to_libnames(libraries analysis bitreader bitwriter core irreader native orcjit passes support targetparser vectorize)
add_library(elsewise_llvm INTERFACE)
target_link_libraries(elsewise_llvm INTERFACE ${libraries})

# The support library's headers and no others: a component that may not generate code cannot include llvm/IR.
set(root ${PROJECT_BINARY_DIR}/include/llvm-support)
file(REMOVE_RECURSE ${root})
file(MAKE_DIRECTORY ${root}/llvm/Analysis)
foreach(path llvm/ADT llvm/Config llvm/Demangle llvm/Support llvm/TargetParser llvm/Analysis/ConstraintSystem.h llvm-c)
  file(CREATE_LINK ${LLVM_INCLUDE_DIRS}/${path} ${root}/${path} SYMBOLIC)
endforeach()
add_library(elsewise_llvm_support INTERFACE)
target_include_directories(elsewise_llvm_support SYSTEM INTERFACE ${root})
target_compile_definitions(elsewise_llvm_support INTERFACE ${LLVM_DEFINITIONS_LIST})
