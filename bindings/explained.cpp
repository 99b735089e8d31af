// SPDX-License-Identifier: Apache-2.0
// Fields to dicts. Devices are ordinals, -1 the CPU, as everywhere in the module.
#include "explained.h"
#include "kernel_type.h"
#include <pybind11/stl.h>

namespace py = pybind11;
using namespace py::literals;

namespace elsewise::python {

static py::tuple tuple_of(const std::vector<int64_t> &values) {
  py::tuple tuple(values.size());
  for (size_t k = 0; k < values.size(); ++k) tuple[k] = values[k];
  return tuple;
}

static py::object end_of(const api::PositionRange::End &end) {
  if (end.known) return py::int_(end.at);
  return py::str(end.text);
}

static py::dict piece_of(const api::PieceUse &piece) {
  py::list boxes;
  for (const auto &box : piece.boxes) {
    py::list ranges;
    for (const api::PositionRange &r : box) ranges.append(py::make_tuple(r.axis, end_of(r.begin), end_of(r.end)));
    boxes.append(py::tuple(ranges));
  }
  return py::dict("text"_a = piece.text, "line"_a = piece.line, "column"_a = piece.column,
                  "ranges"_a = py::tuple(boxes), "guard"_a = piece.guard, "place"_a = piece.where,
                  "never"_a = piece.never, "least"_a = piece.least, "most"_a = piece.most,
                  "segments"_a = piece.has_segments ? py::object(py::tuple(py::cast(piece.segments))) : py::none(),
                  "reads"_a = py::tuple(py::cast(piece.reads)), "read"_a = piece.read, "written"_a = piece.written,
                  "does"_a = piece.does);
}

py::dict explained(const api::Explained &e) {
  py::list operands, pieces, loop;
  for (const api::OperandUse &o : e.operands)
    operands.append(py::dict("name"_a = o.name, "kind"_a = o.kind, "access"_a = o.access, "why"_a = o.why,
                             "cure"_a = o.cure, "bytes"_a = o.bytes));
  for (const api::PieceUse &p : e.pieces) pieces.append(piece_of(p));
  for (const api::LoopAxis &a : e.loop) loop.append(py::make_tuple(py::tuple(py::cast(a.axes)), a.length));
  py::object facts = py::none();
  if (e.has_facts)
    facts = py::dict("registers"_a = e.registers, "local_bytes"_a = e.local_bytes, "shared_bytes"_a = e.shared_bytes,
                     "binary"_a = e.binary);
  return py::dict(
      "dtype"_a = info(e.dtype).spelling, "device"_a = e.device.kind == api::DeviceKind::Cpu ? -1 : e.device.ordinal,
      "shape"_a = tuple_of(e.shape), "strides"_a = tuple_of(e.stride), "positions"_a = e.positions,
      "window"_a = e.window, "domain"_a = tuple_of(e.domain), "offset"_a = tuple_of(e.offset),
      "works_in_doubles"_a = e.works_in_doubles, "loop"_a = loop, "rows"_a = e.rows, "extent"_a = e.extent,
      "vector"_a = e.vector, "vectors"_a = e.vectors, "head"_a = e.head, "tail"_a = e.tail, "choice"_a = e.choice,
      "segments"_a = e.segments, "table_bytes"_a = e.table_bytes, "checks"_a = py::tuple(py::cast(e.checks)),
      "operands"_a = operands, "pieces"_a = pieces, "walked"_a = e.walked, "read"_a = e.read, "written"_a = e.written,
      "copy"_a = e.copy, "at_most"_a = e.at_most, "untouched"_a = e.untouched, "not_launched"_a = e.not_launched,
      "form"_a = e.form, "plan_cached"_a = e.plan_cached, "compiled"_a = e.compiled, "made"_a = e.made,
      "target"_a = e.target, "grid"_a = e.grid, "block"_a = py::make_tuple(e.block_x, e.block_y), "facts"_a = facts,
      "code_bytes"_a = e.code_bytes);
}

} // namespace elsewise::python
