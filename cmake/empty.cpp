// SPDX-License-Identifier: Apache-2.0
// CMake wants a source for libelsewise, which is made of static libraries alone. Nothing may ever stand here.
