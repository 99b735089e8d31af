// SPDX-License-Identifier: Apache-2.0
// What api::explain says, as plain Python objects. It puts nothing into words.
#pragma once
#include "runtime/elsewise.h"
#include <pybind11/pybind11.h>

namespace elsewise::python {

/// Dicts, lists and tuples, by the fields' names.
pybind11::dict explained(const api::Explained &);

} // namespace elsewise::python
