# SPDX-License-Identifier: Apache-2.0
"""`k.explain(...)`: what one call would do, as the run time tells it, set as text. It decides nothing, and unless it is
asked to count exactly, runs nothing."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _call, _elsewise, _options, _torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._elsewise import Kernel

_SHOWN, _RULE_LINES = 20, 6  # pieces and lines of the rule in a text
_CHECKS = 6
_WIDTH = 130  # columns of a text
_TITLES = "piece, where, positions, share, reads, bytes read, written, does"
_COLUMNS = tuple(_TITLES.split(", "))
_RIGHT = (2, 3, 5, 6)  # columns of numbers


@dataclass(frozen=True)
class OperandUse:
    """How one argument, or `out`, is reached: `access` in words; where that is slow `why`, and what to do (`cure`)."""

    name: str
    kind: str
    access: str
    why: str
    cure: str
    bytes: int


@dataclass(frozen=True)
class PieceUse:
    """One piece in a call.

    where: where it holds, in words; ranges: the same as boxes of (axis, begin, end), an end in words where each row
    has its own. guard: what elements are tested for. positions: how many it gives the value of, None where elements
    decide; it is then between `at_least` and `at_most`. share: of all. segments: where it is the first that holds, as
    pairs, if the rule has one line of positions. reads: arguments. bytes_read, bytes_written: of its positions, at
    most. does: in words.
    """

    text: str
    line: int
    column: int
    where: str
    ranges: tuple[tuple[tuple[str, int | str, int | str], ...], ...]
    guard: str
    positions: int | None
    at_least: int
    at_most: int
    share: float | None
    segments: tuple[tuple[int, int], ...] | None
    reads: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    does: str


@dataclass(frozen=True)
class LoopUse:
    """The loop: `rows` of `extent` positions. axes: by axis of the loop, the inner one first, the domain's axes that it
    walks as one and its length. vector: positions that a GPU thread takes; vectors: in words, and why. head, tail:
    positions of a row that a GPU takes one by one, before the first whole vector and behind the last; None where each
    row has its own. choice: how a position comes to its piece, in words."""

    rows: int
    extent: int
    axes: tuple[tuple[tuple[str, ...], int], ...]
    vector: int
    vectors: str
    head: int | None
    tail: int | None
    choice: str


@dataclass(frozen=True)
class CodeUse:
    """The code: its form in words, the CPU or GPU that it is made for, whether it is compiled (and loaded there)
    already, or only made, for another GPU of that kind, and whether a call like this one was planned before. segments,
    table_bytes: of the table that tells pieces apart, which is a launch argument; None without one. grid, block: of a
    CUDA launch. registers (a thread's), local_bytes (a thread's memory, where registers do not do), shared_bytes (a
    block's), binary (90: sm_90): of a function that a GPU has loaded, else None. code_bytes: of compiled CPU code, else
    None."""

    form: str
    target: str
    compiled: bool
    made: bool
    plan_cached: bool
    segments: int | None
    table_bytes: int | None
    grid: int | None
    block: tuple[int, int] | None
    registers: int | None
    local_bytes: int | None
    shared_bytes: int | None
    binary: int | None
    code_bytes: int | None


@dataclass(frozen=True)
class Explanation:
    """What one call would do; printed, it is a text.

    rule, signature, device, dtype, shape, strides: what is computed, where, and what the result is.
    domain, offset: the domain's shape, and where a window begins in it (None: it is the whole).
    loop: `rows` of `extent` positions; `axes` of the domain that it walks as one; `vector` and `vectors`, `head` and
    `tail`; `choice`, how a position comes to its piece.
    operands: by argument and `out`: `access` in words, `why` it is slow and the `cure`, the `bytes` of it.
    pieces: in order, each with `text`, `where` it holds in words, `ranges`, `guard`, `positions` (None where elements
    decide: `at_least`, `at_most`), `share`, `segments`, what it `reads` and `does`, its `bytes_read`, `bytes_written`.
    checks: in words, what keeps reads in bounds, and what the host looked at for this call.
    bytes_read, bytes_written: by a model in which each element that a piece reads is read once, and what is read at
    indices at most once a read. bytes_at_most: these are bounds. bytes_copied: what a copy of the result moves.
    untouched: positions of a call in place that keep their element and are neither read nor written; not_launched:
    those of them for which a GPU starts no thread.
    code: its `form`, `target`, whether `compiled`, `made` and `plan_cached`; on a GPU `segments`, `table_bytes`,
    `grid`, `block`, and once it is loaded `registers`, `local_bytes`, `shared_bytes`, `binary`; on a CPU `code_bytes`.
    """

    rule: str
    signature: str
    device: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    domain: tuple[int, ...]
    offset: tuple[int, ...] | None
    loop: LoopUse
    operands: tuple[OperandUse, ...]
    pieces: tuple[PieceUse, ...]
    checks: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    bytes_at_most: bool
    bytes_copied: int
    untouched: int
    not_launched: int
    code: CodeUse

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for line in (*_head(self), "", *_pieces(self), "", *_facts(self)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(self: Kernel, /, *args: Any, **kwargs: Any) -> Explanation:
    """What exactly this call would do: pieces and their positions, the loop, how each operand is reached, bytes, code.

    Takes what a call takes, and `exact=True`, which runs the rule's guards to count what elements decide. Otherwise it
    runs, compiles, allocates and writes nothing, and raises what the call would raise before it ran.

        >>> print(ew.kernel("i < edge: 0; else x").explain(np.ones(8, np.float32), edge=2).pieces[0].where)
        i in [0, 2)

    Returns an :class:`Explanation`. An argument of the rule that is called `exact` is the argument.
    """
    exact = False if "exact" in self.arguments else _options.flag("exact", kwargs.pop("exact", False))
    with _call.naming(self):
        return _explain(self, args, dict(kwargs), exact)


def _explain(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any], exact: bool) -> Explanation:
    values, options, torch = _call.by_name(kernel, args, kwargs)
    with _torch.plain_if(torch):
        call = _call.prepare(values, options, torch)
        found = _elsewise.explain(kernel, call.args, *call.options)
    if exact and found["positions"]:
        counts = _counted(kernel, values, options, found)
        found = _elsewise.explain(kernel, call.args, *call.options, positions=counts)
    return _explanation(kernel, found)


def _counted(kernel: Kernel, values: dict[str, Any], options: dict[str, Any], found: dict[str, Any]) -> list[int]:
    """Positions of each piece: the same rule is run with the pieces' numbers for values."""
    counter, _ = _elsewise.compile(_elsewise.numbered(kernel), "<spec>")
    where = {"domain": options["domain"], "offset": options["offset"], "stream": options["stream"]}
    device = _place(found["device"]) if found["device"] >= 0 else None
    # What a value alone brings in, an f64 above all, may decide how guards are worked.
    dtype = "f64" if found["works_in_doubles"] else "i32"
    given = {name: values[name] for name in counter.arguments}
    numbers = counter(shape=found["shape"], dtype=dtype, device=device, **where, **given)
    pieces = range(len(found["pieces"]))
    return [int((numbers == p).sum()) for p in pieces]


def _place(ordinal: int) -> str:
    return "cpu" if ordinal < 0 else f"cuda:{ordinal}"


def _explanation(kernel: Kernel, found: dict[str, Any]) -> Explanation:
    total = found["positions"]
    pieces = []
    for piece in found["pieces"]:
        least, most = piece["least"], piece["most"]
        exactly = least if least == most else None
        pieces.append(
            PieceUse(
                text=piece["text"],
                line=piece["line"],
                column=piece["column"],
                where=piece["place"],
                ranges=piece["ranges"],
                guard=piece["guard"],
                positions=exactly,
                at_least=least,
                at_most=most,
                share=None if exactly is None or not total else exactly / total,
                segments=piece["segments"],
                reads=piece["reads"],
                bytes_read=piece["read"],
                bytes_written=piece["written"],
                does=piece["does"],
            )
        )
    operands = tuple(OperandUse(**operand) for operand in found["operands"])
    facts = found["facts"] or dict.fromkeys(("registers", "local_bytes", "shared_bytes", "binary"))
    cuda = found["device"] >= 0
    code = CodeUse(
        form=found["form"],
        target=found["target"],
        compiled=found["compiled"],
        made=found["made"],
        segments=found["segments"] or None,
        table_bytes=found["table_bytes"] or None,
        plan_cached=found["plan_cached"],
        grid=found["grid"] if cuda else None,
        block=found["block"] if cuda else None,
        code_bytes=found["code_bytes"] or None,
        **facts,
    )
    return Explanation(
        rule=kernel.spec,
        signature=", ".join(f"{o.name} {o.kind}" for o in operands[:-1])
        + (" -> " if operands[1:] else "-> ")
        + found["dtype"],
        device=_place(found["device"]),
        dtype=found["dtype"],
        shape=found["shape"],
        strides=found["strides"],
        domain=found["domain"],
        offset=found["offset"] if found["window"] else None,
        loop=LoopUse(
            rows=found["rows"],
            extent=found["extent"],
            axes=tuple(found["loop"]),
            vector=found["vector"],
            vectors=found["vectors"],
            head=None if found["head"] < 0 else found["head"],
            tail=None if found["tail"] < 0 else found["tail"],
            choice=found["choice"],
        ),
        operands=operands,
        pieces=tuple(pieces),
        checks=found["checks"],
        bytes_read=found["read"],
        bytes_written=found["written"],
        bytes_at_most=found["at_most"],
        bytes_copied=found["copy"],
        untouched=found["untouched"],
        not_launched=found["not_launched"],
        code=code,
    )


# ---- text


def shortened(rule: str) -> list[str]:
    """The rule's lines, the long ones broken, and no more than fit above a table."""
    lines = [part for line in rule.strip().splitlines() for part in textwrap.wrap(line, _WIDTH) or [""]]
    if len(lines) <= _RULE_LINES:
        return lines
    return [*lines[: _RULE_LINES - 1], f"… and {len(lines) - _RULE_LINES + 1} more lines"]


def _head(e: Explanation) -> list[str]:
    what = f"{e.signature}, shape {e.shape}"
    if e.offset is not None:
        what += f" at {e.offset} of {e.domain}"
    if e.strides != _contiguous(e.shape):
        what += f", strides {e.strides}"
    return [*shortened(e.rule), f"{what}, on {e.device}"]


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, pitch = [], 1
    for length in reversed(shape):
        strides.append(pitch)
        pitch *= length
    return tuple(reversed(strides))


def _pieces(e: Explanation) -> list[str]:
    rows: list[tuple[str, ...]] = [_COLUMNS]
    listed = e.pieces if len(e.pieces) <= _SHOWN else e.pieces[: _SHOWN - 2]
    for piece in listed:
        exactly = f"{piece.positions:,}" if piece.positions is not None else _between(piece)
        share = "" if piece.share is None else f"{100 * piece.share:.1f} %"
        moved = ("", "") if piece.does == "never reached" else (f"{piece.bytes_read:,}", f"{piece.bytes_written:,}")
        names = cut(" ".join(piece.reads), 20)
        rows.append((cut(piece.text, 48), cut(_where(piece), 56), exactly, share, names, *moved, piece.does))
    columns = [c for c in range(len(_COLUMNS)) if any(row[c] for row in rows[1:])]
    widths = {c: max(len(row[c]) for row in rows) for c in columns}
    beyond = sum(widths.values()) + 2 * (len(widths) - 1) - _WIDTH
    for c, least in ((0, 24), (1, 24)):  # what is long gives way to numbers
        give = max(0, min(beyond, widths[c] - least))
        widths[c], beyond = widths[c] - give, beyond - give
    lines = [
        "  ".join(
            cut(row[c], width).rjust(width) if c in _RIGHT else cut(row[c], width).ljust(width)
            for c, width in widths.items()
        )
        for row in rows
    ]
    if len(listed) < len(e.pieces):
        lines.append(f"… and {len(e.pieces) - len(listed)} more pieces")
    return lines


def _between(piece: PieceUse) -> str:
    return f"{piece.at_least:,} to {piece.at_most:,}" if piece.at_least else f"at most {piece.at_most:,}"


def _where(piece: PieceUse) -> str:
    """Where it holds; where the rule has one line of positions, what is left of that by the pieces before."""
    plain = piece.guard or not piece.segments or len(piece.segments) > 2 or piece.where == "everywhere"
    if plain or not piece.segments:
        return piece.where
    axis = f"{piece.ranges[0][0][0]} in" if piece.ranges else "else"
    return f"{axis} " + " or ".join(f"[{begin}, {end})" for begin, end in piece.segments)


def cut(text: str, width: int) -> str:
    """Text of at most `width` characters."""
    return text if len(text) <= width else text[: width - 2] + " …"


def _facts(e: Explanation) -> list[str]:
    rows: list[tuple[str, str]] = [("loop", _loop(e))]
    for o in e.operands:
        text = o.access + (f", {o.bytes:,} bytes" if o.bytes else "")
        rows.append((f"  {o.name}", text + (f": {o.why}" if o.why else "")))
        if o.cure:
            rows.append(("", o.cure))
    if e.loop.choice:
        rows.append(("choice", e.loop.choice))
    rows += [("" if place else "checks", check) for place, check in enumerate(e.checks[:_CHECKS])]
    if len(e.checks) > _CHECKS:
        rows.append(("", f"… and {len(e.checks) - _CHECKS} more"))
    up_to = "at most " if e.bytes_at_most else ""
    moved = f"{up_to}{e.bytes_read:,} read, {e.bytes_written:,} written"
    if e.bytes_copied:
        moved += f"; {(e.bytes_read + e.bytes_written) / e.bytes_copied:.2f} of what a copy of the result moves"
    rows.append(("bytes", moved))
    if e.untouched:
        launched = f", and {e.not_launched:,} of them start no thread" if e.code.grid is not None else ""
        rows.append(("in place", f"{e.untouched:,} positions keep their element, neither read nor written{launched}"))
    rows.append(("code", _code(e.code)))
    rows.append(("cache", _cache(e.code)))
    width = max(len(name) for name, _ in rows) + 2
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, _WIDTH - width, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [(name if place == 0 else "").ljust(width) + line for place, line in enumerate(wrapped)]
    return lines


def _loop(e: Explanation) -> str:
    loop = e.loop
    if not loop.extent:
        return "empty"
    if len(loop.axes) <= 1:
        text = f"one row of {loop.extent:,} {_positions(loop.extent)}"
        if loop.axes and len(loop.axes[0][0]) > 1:
            text += f" ({_merged(loop.axes[0][0])} as one)"
    else:
        inner, *rows = loop.axes
        text = f"{loop.rows:,} rows ({', '.join(_axis(a) for a in reversed(rows))}) of {loop.extent:,} positions"
        text += f" ({_merged(inner[0])})"
    return f"{text}; {loop.vectors}{_ends(e)}"


def _positions(count: int) -> str:
    return "position" if count == 1 else "positions"


def _ends(e: Explanation) -> str:
    """Positions that a GPU takes one by one."""
    loop = e.loop
    flat = "one behind the other" in e.code.form
    if loop.head is None or loop.tail is None:
        return f"; up to {loop.vector - 1} at each end of a row one by one"
    ends = [f"the {which} {count}" for which, count in (("first", loop.head), ("last", loop.tail)) if count]
    if not ends:
        return ""
    of = " of each row" if loop.rows > 1 and not flat else ""
    return f"; {' and '.join(ends)}{of} one by one"


def _axis(axis: tuple[tuple[str, ...], int]) -> str:
    names, length = axis
    return f"{_merged(names)}: {length:,}" if names else f"{length:,}"


def _merged(names: Sequence[str]) -> str:
    return " and ".join(names)


def _code(code: CodeUse) -> str:
    parts = [code.form + (f", for {code.target}" if code.target else "")]
    if code.grid is not None and code.block is not None:
        threads = f"{code.block[0]}" if code.block[1] == 1 else f"{code.block[0]} x {code.block[1]}"
        parts.append(f"{code.grid:,} {'block' if code.grid == 1 else 'blocks'} of {threads} threads")
    if code.registers is not None:
        spilled = f", {code.local_bytes:,} bytes of local memory" if code.local_bytes else ", nothing in local memory"
        shared = f", {code.shared_bytes:,} bytes shared" if code.shared_bytes else ""
        parts.append(f"{code.registers} registers a thread{spilled}{shared}, code of sm_{code.binary}")
    if code.code_bytes:
        parts.append(f"{code.code_bytes:,} bytes")
    return "; ".join(parts)


def _cache(code: CodeUse) -> str:
    made = "compiled, but not loaded on this device" if code.made else "not compiled yet"
    return f"code {'compiled' if code.compiled else made}, plan {'made' if code.plan_cached else 'not made yet'}"
