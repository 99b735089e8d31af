// SPDX-License-Identifier: Apache-2.0
// The Python type of a compiled spec: an object called from C (vectorcall), so that a repeated call costs about a
// microsecond. Everything about it that may be slow is written in Python and attached by elsewise/_kernel.py.
#pragma once
#include "tensor_view.h"

namespace elsewise::python {

struct KernelObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *weakrefs;
  struct State *state;
};

/// Callables of the Python package, handed over when it is imported.
struct Package {
  PyObject *slow_call = nullptr;      // _call.call(kernel, args, kwargs)
  PyObject *fault = nullptr;          // _errors.fault(kind, message, diagnostics, text) -> exception
  PyObject *allocate_numpy = nullptr; // _numpy.allocate(shape, strides, dtype) -> array
  PyObject *read = nullptr;           // _foreach.read(name, value, writable) -> View or number
  PyObject *written = nullptr;        // _foreach.written(outs) -> None
};
extern Package package;

/// Creates the type; null with an error set on failure.
PyTypeObject *make_kernel_type();
PyObject *make_kernel(PyTypeObject *, api::SpecRef);
/// Null and TypeError if `object` is not a kernel.
const api::SpecRef *spec_of(PyObject *object);

/// Names of the arguments, interned, of what is a kernel.
const std::vector<PyObject *> &names_of(PyObject *kernel);
/// Which of them goes without its name beside others: `x`; -1: there is none.
int main_of(PyObject *kernel);

/// Makes an array or tensor for a plan's output, which it describes in `arg`; that borrows of the plan. New reference;
/// null with an error set on failure.
PyObject *allocate_out(const api::Plan &, Owner, api::Arg &arg);
/// The CPU's pool gets as many threads as torch has, where `threads_of_torch`, else its own number.
void follow_threads(bool threads_of_torch);

/// The view that a Python object holds, or null. (module.cpp, which knows how.)
const View *view_of(PyObject *);

/// One call an element of the lists among `arguments`, a tuple by argument; what is no list goes to every call. `outs`:
/// a list as long, or None: then a new list of results comes back. New reference; null with an error set, and then
/// nothing was written. `alone`: NotImplemented, and nothing was done, where something is not for C alone.
PyObject *call_each(PyObject *kernel, PyObject *arguments, PyObject *outs, PyObject *stream, bool alone = false);
/// The same of a call as it was written, on torch's current stream: NotImplemented where the package has to look at it.
PyObject *call_each_at_once(PyObject *kernel, PyObject *args, PyObject *outs, PyObject *kwargs);

/// Calls that stayed in C, and calls that went to Python.
struct PathCounts {
  uint64_t fast = 0, slow = 0;
};
extern PathCounts path_counts;

/// Sets the Python exception of a fault.
void raise(api::Fault, const std::string &message, const std::vector<api::Diagnostic> &, std::string_view text);
template <class T> void raise(const api::Result<T> &result, const api::Spec &spec) {
  raise(result.fault, result.message, result.diagnostics, api::text(spec));
}
/// Diagnostics as a list of dicts. New reference.
PyObject *diagnostics_of(std::span<const api::Diagnostic>);

/// api::run with the GIL released where the work is worth it. `threads_of_torch`: a torch tensor is involved.
api::Result<bool> run_released(const api::Plan &, const api::Call &, bool threads_of_torch);

} // namespace elsewise::python
