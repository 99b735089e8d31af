// SPDX-License-Identifier: Apache-2.0
// The module elsewise._elsewise: the facade of libelsewise for Python. It decides nothing about specs, calls or text;
// the package around it does.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "explained.h"
#include "kernel_type.h"

namespace py = pybind11;
using namespace py::literals;

namespace elsewise::python {

static PyTypeObject *kernel_type;

template <class T> static T &check(api::Result<T> &result, std::string_view text) {
  if (!result) {
    raise(result.fault, result.message, result.diagnostics, text);
    throw py::error_already_set();
  }
  return result.value;
}

static const api::SpecRef &spec(py::handle kernel) {
  const api::SpecRef *spec = spec_of(kernel.ptr());
  if (!spec) throw py::error_already_set();
  return *spec;
}

const View *view_of(PyObject *object) {
  return py::isinstance<View>(object) ? &py::handle(object).cast<const View &>() : nullptr;
}

static DType dtype(const std::string &spelling) {
  const auto dtype = parse_dtype(spelling);
  if (!dtype) throw py::value_error("no such dtype: `" + spelling + "`");
  return *dtype;
}

// -1: the CPU.
static api::Device device(int ordinal) {
  return ordinal < 0 ? api::Device{} : api::Device{api::DeviceKind::Cuda, ordinal};
}
static int ordinal(const api::Device &device) { return device.kind == api::DeviceKind::Cpu ? -1 : device.ordinal; }

static py::tuple tuple_of(std::span<const int64_t> values) {
  py::tuple tuple(values.size());
  for (size_t k = 0; k < values.size(); ++k) tuple[k] = values[k];
  return tuple;
}

// The arguments of one call of the slow path; it owns what api::Call borrows.
struct Arguments {
  std::vector<api::Arg> args;
  std::vector<int64_t> domain, whole, offset;
  api::Arg out;
  api::Call call;

  Arguments(const py::sequence &values, const py::object &given, const py::object &shape, const py::object &as,
            const py::object &on, const py::object &window, const py::object &begin) {
    for (py::handle value : values) {
      api::Arg arg;
      if (py::isinstance<View>(value)) arg = value.cast<const View &>().arg();
      else if (!read_scalar(value.ptr(), arg))
        throw py::type_error("neither a view nor a number of at most 128 bits: " + std::string(py::repr(value)));
      args.push_back(arg);
    }
    call.args = args;
    if (!given.is_none()) out = given.cast<const View &>().arg(), call.out = &out;
    if (!shape.is_none()) domain = shape.cast<std::vector<int64_t>>(), call.has_domain = true, call.domain = domain;
    if (!window.is_none()) whole = window.cast<std::vector<int64_t>>(), call.has_window = true, call.whole = whole;
    if (!begin.is_none()) offset = begin.cast<std::vector<int64_t>>(), call.offset = offset;
    if (!as.is_none()) call.has_dtype = true, call.dtype = dtype(as.cast<std::string>());
    if (!on.is_none()) call.has_device = true, call.device = device(on.cast<int>());
  }
};

/// A plan with the spec that it is of.
struct Plan {
  api::SpecRef spec;
  api::PlanRef plan;
};

static ArgType arg_type(const std::string &kind) {
  if (kind == "int") return {.kind = ArgKind::Int};
  if (kind == "float") return {.kind = ArgKind::Float};
  if (kind == "bool") return {.kind = ArgKind::Bool};
  const size_t bracket = kind.find('[');
  return {.kind = ArgKind::Tensor,
          .dtype = dtype(kind.substr(0, bracket)),
          .zero_dim = bracket != kind.npos && kind.substr(bracket) == "[0]"};
}

// The rank in `f32[2]`; -1: the kind tells none.
static int rank_of(const std::string &kind) {
  const size_t bracket = kind.find('[');
  return bracket == kind.npos ? -1 : std::atoi(kind.c_str() + bracket + 1);
}

static api::Stage stage(const std::string &name) {
  static const char *const names[] = {"tokens", "ast", "ir", "cuda", "ptx", "cubin", "llvm", "asm", "torch"};
  for (int k = 0; k < 9; ++k)
    if (name == names[k]) return api::Stage(k);
  throw py::value_error("no such stage: `" + name + "`: tokens ast ir cuda ptx cubin llvm asm torch");
}

static PyObject *keep(const py::dict &from, const char *name) { return py::object(from[name]).release().ptr(); }

static void register_torch(const py::dict &from) {
  auto *api = static_cast<const DLPackExchangeAPI *>(
      PyCapsule_GetPointer(py::object(from["exchange_api"]).ptr(), "dlpack_exchange_api"));
  if (!api) throw py::error_already_set();
  while (api && api->header.version.major != DLPACK_MAJOR_VERSION)
    api = reinterpret_cast<const DLPackExchangeAPI *>(api->header.prev_api);
  if (!api || !api->dltensor_from_py_object_no_sync) return; // the slow path then serves all
  Torch t;
  t.api = api;
  t.parameter = reinterpret_cast<PyTypeObject *>(keep(from, "Parameter"));
  t.storage = keep(from, "untyped_storage"), t.storage_offset = keep(from, "storage_offset");
  t.nbytes = keep(from, "nbytes"), t.is_neg = keep(from, "is_neg");
  t.requires_grad = keep(from, "requires_grad"), t.cdata = keep(from, "cdata");
  find_fast_functions(t);
  std::vector<std::pair<PyObject *, uint64_t>> samples;
  for (py::handle sample : from["samples"]) {
    const auto pair = py::reinterpret_borrow<py::tuple>(sample);
    samples.push_back({py::handle(pair[0]).ptr(), pair[1].cast<uint64_t>()});
  }
  find_direct(t, samples);
  t.grad_enabled = keep(from, "is_grad_enabled");
  t.dispatch_depth = keep(from, "dispatch_depth"), t.function_depth = keep(from, "function_depth");
  t.forward_ad = keep(from, "forward_ad"), t.tracing = keep(from, "tracing_state");
  t.bump = keep(from, "increment_version"), t.empty_strided = keep(from, "empty_strided"),
  t.threads = keep(from, "get_num_threads");
  for (int k = 0; k < dtype_count; ++k) t.dtypes[k] = keep(from["dtypes"], info(DType(k)).spelling);
  t.cpu_device = keep(from, "cpu");
  for (py::handle device : from["cuda"]) t.cuda_devices.push_back(device.inc_ref().ptr());
  t.tensor = reinterpret_cast<PyTypeObject *>(keep(from, "Tensor"));
  torch = t;
}

PYBIND11_MODULE(_elsewise, m) {
  m.doc() = "The facade of libelsewise. Use the package elsewise.";
  kernel_type = make_kernel_type();
  if (!kernel_type) throw py::error_already_set();
  m.attr("Kernel") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject *>(kernel_type));

  m.def("register_package",
        [](py::object slow_call, py::object fault, py::object allocate_numpy, py::object read, py::object written) {
          package = {slow_call.release().ptr(), fault.release().ptr(), allocate_numpy.release().ptr(),
                     read.release().ptr(), written.release().ptr()};
        });
  m.def("register_torch", register_torch);
  m.def("register_numpy", [](py::object array, py::object empty, const py::dict &dtypes) {
    numpy.array = reinterpret_cast<PyTypeObject *>(array.release().ptr());
    numpy.empty = empty.release().ptr();
    for (int k = 0; k < dtype_count; ++k)
      if (dtypes.contains(info(DType(k)).spelling)) numpy.dtypes[k] = keep(dtypes, info(DType(k)).spelling);
  });

  m.def("compile", [](const std::string &text, const std::string &file) {
    auto result = [&] {
      const py::gil_scoped_release others_may_run; // proofs of a long rule take a while
      return api::compile(text, file);
    }();
    check(result, text);
    auto warnings = py::reinterpret_steal<py::object>(diagnostics_of(api::warnings(*result.value)));
    auto kernel = py::reinterpret_steal<py::object>(make_kernel(kernel_type, result.value));
    if (!warnings || !kernel) throw py::error_already_set();
    return py::make_tuple(kernel, warnings);
  });

  m.def("allowance", [](py::handle kernel) {
    const api::Allowance a = api::allowance(*spec(kernel));
    return py::make_tuple(a.ulp, py::cast(a.functions));
  });

  m.def("format", [](const std::string &text) {
    auto result = api::format(text, "<spec>");
    check(result, text);
    return result.value;
  });

  py::class_<View>(m, "View", "Memory that an argument of a call stands for.")
      .def(py::init([](uintptr_t data, const std::string &as, std::vector<int64_t> shape, std::vector<int64_t> strides,
                       int on, bool readonly) {
             if (shape.size() != strides.size()) throw py::value_error("as many strides as lengths are needed");
             auto view = std::make_unique<View>();
             view->dtype = dtype(as), view->device = device(on), view->data = reinterpret_cast<void *>(data);
             view->shape = std::move(shape), view->stride = std::move(strides), view->readonly = readonly;
             return view;
           }),
           "data"_a, "dtype"_a, "shape"_a, "strides"_a, "device"_a = -1, "readonly"_a = false)
      .def_static("from_dlpack",
                  [](py::handle capsule) {
                    std::string error;
                    auto view = view_of_capsule(capsule.ptr(), error);
                    if (!view) throw py::type_error(error);
                    return view;
                  })
      .def_property_readonly("data", [](const View &v) { return reinterpret_cast<uintptr_t>(v.data); })
      .def_property_readonly("dtype", [](const View &v) { return info(v.dtype).spelling; })
      .def_property_readonly("device", [](const View &v) { return ordinal(v.device); })
      .def_property_readonly("shape", [](const View &v) { return tuple_of(v.shape); })
      .def_property_readonly("strides", [](const View &v) { return tuple_of(v.stride); })
      .def_readonly("readonly", &View::readonly);

  py::class_<Plan>(m, "Plan", "Everything about a call but values and pointers.")
      .def_property_readonly("dtype", [](const Plan &p) { return info(api::output(*p.plan).dtype).spelling; })
      .def_property_readonly("device", [](const Plan &p) { return ordinal(api::output(*p.plan).device); })
      .def_property_readonly("shape", [](const Plan &p) { return tuple_of(api::output(*p.plan).shape); })
      .def_property_readonly("strides", [](const Plan &p) { return tuple_of(api::output(*p.plan).stride); });

  m.def(
      "plan",
      [](py::handle kernel, const py::sequence &args, const py::object &out, const py::object &shape,
         const py::object &as, const py::object &on, const py::object &domain, const py::object &offset) {
        const api::SpecRef &of = spec(kernel);
        Arguments arguments(args, out, shape, as, on, domain, offset);
        api::Result<api::PlanRef> result;
        {
          py::gil_scoped_release released; // it may compile
          result = api::plan(of, arguments.call);
        }
        return Plan{of, check(result, api::text(*of))};
      },
      "kernel"_a, "args"_a, "out"_a = py::none(), "shape"_a = py::none(), "dtype"_a = py::none(),
      "device"_a = py::none(), "domain"_a = py::none(), "offset"_a = py::none());
  m.def(
      "run",
      [](const Plan &plan, const py::sequence &args, const py::object &out, const py::object &shape,
         const py::object &as, const py::object &on, uintptr_t stream, bool threads_of_torch, bool raw_pointers,
         const py::object &domain, const py::object &offset) {
        Arguments arguments(args, out, shape, as, on, domain, offset);
        arguments.call.stream = reinterpret_cast<void *>(stream);
        arguments.call.raw_pointers = raw_pointers;
        auto result = run_released(*plan.plan, arguments.call, threads_of_torch);
        check(result, api::text(*plan.spec));
      },
      "plan"_a, "args"_a, "out"_a, "shape"_a = py::none(), "dtype"_a = py::none(), "device"_a = py::none(),
      "stream"_a = 0, "threads_of_torch"_a = false, "raw_pointers"_a = false, "domain"_a = py::none(),
      "offset"_a = py::none());

  m.def(
      "foreach",
      [](py::handle kernel, const py::tuple &args, const py::object &outs, const py::object &stream) {
        spec(kernel);
        if (args.size() != names_of(kernel.ptr()).size()) throw py::type_error("one value an argument is needed");
        auto results = py::reinterpret_steal<py::object>(call_each(kernel.ptr(), args.ptr(), outs.ptr(), stream.ptr()));
        if (!results) throw py::error_already_set();
        return results;
      },
      "kernel"_a, "args"_a, "outs"_a = py::none(), "stream"_a = py::none());

  m.def(
      "foreach_at_once",
      [](py::handle kernel, const py::tuple &args, py::handle outs, const py::dict &kwargs) {
        auto results =
            py::reinterpret_steal<py::object>(call_each_at_once(kernel.ptr(), args.ptr(), outs.ptr(), kwargs.ptr()));
        if (!results) throw py::error_already_set();
        return results;
      },
      "kernel"_a, "args"_a, "outs"_a, "kwargs"_a);

  m.def(
      "explain",
      [](py::handle kernel, const py::sequence &args, const py::object &out, const py::object &shape,
         const py::object &as, const py::object &on, const py::object &domain, const py::object &offset,
         const std::vector<int64_t> &positions) {
        const api::SpecRef &of = spec(kernel);
        Arguments arguments(args, out, shape, as, on, domain, offset);
        api::Result<api::Explained> result;
        {
          py::gil_scoped_release released; // rows are walked
          result = api::explain(of, arguments.call, positions);
        }
        return explained(check(result, api::text(*of)));
      },
      "kernel"_a, "args"_a, "out"_a = py::none(), "shape"_a = py::none(), "dtype"_a = py::none(),
      "device"_a = py::none(), "domain"_a = py::none(), "offset"_a = py::none(),
      "positions"_a = std::vector<int64_t>());
  m.def("numbered", [](py::handle kernel) { return api::numbered(*spec(kernel)); });

  m.def(
      "emit",
      [](py::handle kernel, const std::string &at, const std::map<std::string, std::string> &kinds,
         const std::string &arch, bool in_place, const py::object &as, int rank, bool window) -> py::object {
        const api::SpecRef &of = spec(kernel);
        api::EmitRequest request{
            .stage = stage(at), .arch = arch, .in_place = in_place, .window = window, .rank = rank};
        for (const std::string &name : api::arguments(*of)) {
          const auto kind = kinds.find(name);
          request.signature.args.push_back(kind == kinds.end() ? ArgType{} : arg_type(kind->second));
          request.ranks.push_back(kind == kinds.end() ? -1 : rank_of(kind->second));
        }
        if (!as.is_none()) request.signature.out = dtype(as.cast<std::string>());
        api::Result<std::string> result;
        {
          py::gil_scoped_release released;
          result = api::emit(*of, request);
        }
        const std::string &text = check(result, api::text(*of));
        if (request.stage == api::Stage::Cubin) return py::bytes(text);
        return py::str(text);
      },
      "kernel"_a, "stage"_a, "kinds"_a, "arch"_a = "", "in_place"_a = false, "dtype"_a = py::none(), "rank"_a = -1,
      "window"_a = false);

  m.def("counters", [] {
    const api::Counters c = api::counters();
    return py::dict("nvrtc"_a = c.nvrtc, "orc"_a = c.orc, "variants"_a = c.variants, "plans"_a = c.plans,
                    "variant_hits"_a = c.variant_hits, "plan_hits"_a = c.plan_hits, "launches"_a = c.launches);
  });
  m.def(
      "path_counts", [] { return py::make_tuple(path_counts.fast, path_counts.slow); },
      "Calls answered in C, calls answered in Python.");
  m.def("clear_cache", api::clear_cache, py::call_guard<py::gil_scoped_release>());
  m.def("set_threads", api::set_threads);
  m.def("current_stream", [](int ordinal) { return reinterpret_cast<uintptr_t>(current_stream(ordinal)); });
  m.def("environment", [] {
    py::list facts;
    for (const api::Fact &f : api::environment()) facts.append(py::make_tuple(f.name, f.value, f.remedy));
    return facts;
  });
  m.def("cuda_available", [] {
    std::string why;
    const bool available = api::cuda_available(&why);
    return py::make_tuple(available, why);
  });
  m.def("set_nvrtc_paths", api::set_nvrtc_paths);
  m.def("nvrtc_places", [] {
    py::list places;
    for (const api::Fact &f : api::nvrtc_places()) places.append(py::make_tuple(f.name, f.value));
    return places;
  });
  m.def("version", [] { return std::string(api::version()); });
  py::list dtypes;
  for (int k = 0; k < dtype_count; ++k)
    dtypes.append(py::make_tuple(info(DType(k)).spelling, info(DType(k)).torch_name, info(DType(k)).bytes));
  m.attr("dtypes") = py::tuple(dtypes);
}

} // namespace elsewise::python
