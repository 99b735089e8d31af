# SPDX-License-Identifier: Apache-2.0
# Finds SLEEF's shared library (-DSLEEF_LIBRARY, else the system's) and gives the path of the file itself. It is opened at run time and
# never linked: other libraries in a process carry a SLEEF of their own.
find_library(SLEEF_LIBRARY NAMES libsleef.so.3 sleef)
if(NOT SLEEF_LIBRARY)
  message(FATAL_ERROR "SLEEF not found: apt install libsleef-dev, or -DSLEEF_LIBRARY=<path of libsleef.so.3>")
endif()
file(REAL_PATH ${SLEEF_LIBRARY} ELSEWISE_SLEEF)
message(STATUS "SLEEF: ${ELSEWISE_SLEEF}")

# elsewise_bundle_sleef(<folder>): puts a copy beside libelsewise, in the build folder and in what is installed.
function(elsewise_bundle_sleef folder)
  configure_file(${ELSEWISE_SLEEF} ${folder}/libsleef.so.3 COPYONLY)
  install(FILES ${ELSEWISE_SLEEF} DESTINATION elsewise RENAME libsleef.so.3)
endfunction()
