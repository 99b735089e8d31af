# SPDX-License-Identifier: Apache-2.0
"""`k.foreach(xs)`: each tensor as it would be alone; lists that do not fit, and what is written on a fault."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator
from typing import Any

import elsewise as ew
import numpy as np
import pytest
import torch
from elsewise import _elsewise, _torch

RULE = "i<n/4: x*0.5; i>=n-n/4: x*g; else x"


def tensors() -> list[torch.Tensor]:
    torch.manual_seed(1)
    shapes: list[Any] = [(8,), (100,), (8,), (3, 5), (0,), (), (64, 65)]
    return [torch.randn(shape) for shape in shapes] + [torch.randn(6, 7).t(), torch.randn(20)[::2]]


def test_each_tensor_has_positions_of_its_own() -> None:
    k, xs = ew.kernel(RULE), tensors()
    results = k.foreach(xs, g=2.0)
    assert isinstance(results, list)
    assert all(torch.equal(r, k(x, g=2.0)) for r, x in zip(results, xs, strict=True))


def test_in_place_returns_the_tensors_and_bumps_their_versions() -> None:
    k, xs = ew.kernel(RULE), tensors()
    expected = [k(x, g=3) for x in xs]
    versions = [x._version for x in xs]
    results = k.foreach(xs, out=xs, g=3)
    assert all(r is x for r, x in zip(results, xs, strict=True))
    assert all(torch.equal(x, e) for x, e in zip(xs, expected, strict=True))
    assert all(x._version > v for x, v in zip(xs, versions, strict=True))


def test_lists_of_several_arguments_and_values_for_all() -> None:
    k = ew.kernel("x*g + bias + s[0]")
    xs, gains = tensors()[:3], (1.0, 2, 3.5)
    results = k.foreach(xs, g=gains, bias=torch.tensor(0.25), s=torch.tensor([10.0]))
    for r, x, g in zip(results, xs, gains, strict=True):
        assert torch.equal(r, k(x, g=g, bias=torch.tensor(0.25), s=torch.tensor([10.0])))


def test_tensors_of_one_shape_have_numbers_of_their_own() -> None:
    k = ew.kernel("i<m: x*g + s; else x")
    xs = [torch.arange(6.0) for _ in range(8)]
    ms, gs = [2, 2, 2, 3, 3, 9, 0, 0], [1.0, 1.0, -0.0, 0.0, 2, 2.0, 2.0, float("inf")]
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    ss = [one, two, two, one, one, two, two, two]
    expected = [k(x, m=m, g=g, s=s) for x, m, g, s in zip(xs, ms, gs, ss, strict=True)]
    k.foreach(xs, m=ms, g=gs, s=ss, out=xs)
    assert all(torch.equal(x, e) for x, e in zip(xs, expected, strict=True))


def test_zeros_of_either_sign_are_different_numbers() -> None:
    xs = [torch.ones(2) for _ in range(3)]
    ew.kernel("x*g").foreach(xs, g=[0.0, -0.0, 0.0], out=xs)
    assert [bool(x[0].signbit()) for x in xs] == [False, True, False]


def test_numpy_arrays_and_mixtures() -> None:
    k = ew.kernel("i<2: -x; else x")
    results = k.foreach([np.arange(4.0), np.arange(3, dtype=np.float32)])
    assert [type(r) for r in results] == [np.ndarray, np.ndarray]
    assert results[0].tolist() == [-0.0, -1.0, 2.0, 3.0] and results[1].dtype == np.float32
    out = [np.zeros(4), np.zeros(3, dtype=np.float32)]
    assert k.foreach([np.arange(4.0), np.arange(3, dtype=np.float32)], out=out)[0] is out[0]
    assert out[0].tolist() == results[0].tolist()


def test_an_empty_list_is_nothing_to_do() -> None:
    assert ew.kernel(RULE).foreach([], g=1.0) == []
    assert ew.kernel(RULE).foreach([], out=[], g=1.0) == []


def test_a_parameter_and_its_data() -> None:
    k = ew.kernel("x*2")
    weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
    with pytest.raises(ValueError, match="`x` requires grad"):
        k.foreach(weights)
    with torch.no_grad():
        k.foreach(weights, out=weights)
    assert weights[1].tolist() == [2.0, 2.0, 2.0]


def test_calls_that_depend_on_each_other_keep_their_order() -> None:
    k = ew.kernel("x + 1")
    line = torch.zeros(5)
    places = [line[j : j + 1] for j in range(5)]
    k.foreach(places[:-1], out=places[1:])
    assert line.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda k, xs: k.foreach(xs, g=[1.0]), ValueError, "not of one length: `x` has 9, `g` has 1"),
        (lambda k, xs: k.foreach(xs, out=xs[1:], g=1.0), ValueError, "`x` has 9, `out` has 8"),
        (lambda k, xs: k.foreach(xs[0], g=1.0), TypeError, "takes a list of tensors for some argument"),
        (lambda k, xs: k.foreach(xs, out=xs[0], g=1.0), TypeError, "`out` is a list, one tensor a call"),
        (lambda k, xs: k.foreach([*xs, "a"], g=1.0), TypeError, "in call 9 of the list: `x` is neither a tensor"),
        (lambda k, xs: k.foreach(xs, out=[1.0] * 9, g=1.0), TypeError, "in call 0 of the list: `out` is a list of arr"),
        (lambda k, xs: k.foreach([*xs, [1.0]], g=1.0), TypeError, "in call 9 of the list: `x` is .*, but a list: "),
        (lambda k, xs: k.foreach([*xs, None], g=1.0), TypeError, "in call 9 of the list: `x` is .*, but None"),
        (lambda k, xs: k.foreach(xs, g=[*[1.0] * 8, 1 << 130]), OverflowError, "in call 8 of the list: `g` is an int"),
        (
            lambda k, xs: k.foreach([xs[0], xs[1].to(torch.complex64)], g=1.0),
            TypeError,
            "in call 1 of the list: `x` has dtype torch.complex64",
        ),
        (
            lambda k, xs: k.foreach([xs[0], torch.ones(2, requires_grad=True)], g=1.0),
            ValueError,
            "in call 1 of the list: `x` requires grad",
        ),
        (lambda k, xs: k.foreach(xs, g=torch.ones(1, requires_grad=True)), ValueError, "^`g` requires grad"),
        (lambda k, xs: k.foreach(iter(xs), g=1.0), TypeError, r"`x` is a list_iterator, .*: pass list\(x\)"),
        (lambda k, xs: k.foreach({1: xs[0]}, g=1.0), TypeError, r"`x` is a dict, .*: pass list\(x.values\(\)\)"),
        (lambda k, xs: k.foreach(xs, out=iter(xs), g=1.0), TypeError, r"not a list_iterator: pass list\(out\)"),
        (
            lambda k, xs: k.foreach(xs, g=1.0, dtype="f64"),
            TypeError,
            "foreach\\(\\) takes no `dtype=`: each result has",
        ),
        (lambda k, xs: k.foreach(xs, g=1.0, shape=3), TypeError, "foreach\\(\\) takes no `shape=`: each call has"),
        (lambda k, xs: k.foreach(xs, g=1.0, device="cpu"), TypeError, "takes no `device=`: each call runs where"),
        (lambda k, xs: k.foreach(xs, g=1.0, domain=9), TypeError, "call the rule with `domain=` for each"),
        (lambda k, xs: k.foreach(xs, g=1.0, offset=9), TypeError, "call the rule with `offset=` for each"),
        (lambda k, xs: k.foreach(xs, g=1.0, dtypes="f64"), TypeError, "no argument `dtypes`; the arguments are"),
        (lambda k, xs: k.foreach(xs, h=1.0), TypeError, "no argument `h`"),
        (lambda k, xs: k.foreach(xs, g=1.0, out=[*xs[:8], torch.zeros(3)]), ValueError, "in call 8 of the list: "),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_written(call: Any, error: type[Exception], words: str) -> None:
    xs = tensors()
    before = [x.clone() for x in xs]
    with pytest.raises(error, match=words):
        call(ew.kernel(RULE), xs)
    assert all(torch.equal(x, b) for x, b in zip(xs, before, strict=True))


def test_a_rule_that_does_not_fit_says_in_which_call() -> None:
    xs = [torch.ones(3, dtype=torch.int32), torch.ones(3)]
    with pytest.raises(ew.SpecError, match="works on the bits") as found:
        ew.kernel("x << 2").foreach(xs)
    again = pickle.loads(pickle.dumps(found.value))
    for error in (found.value, again):
        assert str(error).startswith("in call 1 of the list:\n<spec>:1:3: error: ")
        assert str(error.msg).startswith("in call 1 of the list: `<<` works on the bits")


def test_parameters_of_torch_are_a_list() -> None:
    k, parameters = ew.kernel("x*2"), torch.nn.ParameterList([torch.ones(2), torch.ones(3)])
    with torch.no_grad():
        assert [y.tolist() for y in k.foreach(parameters, dtype=None)] == [[2, 2], [2, 2, 2]]
        assert k.foreach(parameters, out=parameters)[1] is parameters[1]
    assert parameters[1].tolist() == [2, 2, 2]


def test_a_fault_of_values_in_one_call_writes_nothing_in_any() -> None:
    k = ew.kernel("x // m")
    xs = [torch.ones(4, dtype=torch.int32) * 6 for _ in range(3)]
    with pytest.raises(ZeroDivisionError, match="in call 2 of the list"):
        ew.kernel("x + 6 // m").foreach(xs, out=xs, m=[1, 2, 0])
    assert all(x.tolist() == [6] * 4 for x in xs)
    k.foreach(xs, out=xs, m=[1, 2, 3])
    assert [x[0].item() for x in xs] == [6, 3, 2]


def shrunk() -> torch.Tensor:
    x = torch.ones(8)
    x.untyped_storage().resize_(4)
    return x


def shrunk_with_offset() -> torch.Tensor:
    x = torch.ones(8)[4:]
    x.untyped_storage().resize_(0)
    return x


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, dtype=torch.complex64).conj().imag,
        lambda: torch._neg_view(torch.ones(4)),
        lambda: torch._neg_view(torch.ones(0)),
        lambda: torch.ones(4, requires_grad=True),
        lambda: torch.ones(4).to_sparse(),
        lambda: torch.ones(4, device="meta"),
        lambda: torch.ones(1).expand(4),
        shrunk,
        shrunk_with_offset,
    ],
    ids=[
        "imaginary",
        "negative",
        "negative_empty",
        "requires_grad",
        "sparse",
        "meta",
        "expanded",
        "shrunk",
        "shrunk_offset",
    ],
)
def test_in_place_refuses_what_a_call_refuses(make: Any) -> None:
    k, good = ew.kernel("x*2"), torch.ones(4)
    with pytest.raises((TypeError, ValueError, RuntimeError)) as alone:
        bad = make()
        k(bad, out=bad)
    bad = make()
    with pytest.raises(alone.type):
        k.foreach([good, bad], out=[good, bad])
    assert torch.equal(good, torch.ones(4))


def test_any_list_may_be_worked_in_place_and_tensors_resized_between() -> None:
    k = ew.kernel("x - y")
    xs, ys = [torch.full((n,), 5.0) for n in (3, 9)], [torch.full((n,), 2.0) for n in (3, 9)]
    k.foreach(xs, y=ys, out=ys)
    assert all(torch.equal(y, torch.full_like(x, 3.0)) for x, y in zip(xs, ys, strict=True))
    for x, y in zip(xs, ys, strict=True):
        x.resize_(1000).fill_(7.0)
        y.resize_(1000).fill_(1.0)
    k.foreach(xs, y=ys, out=[ys[0], xs[1]])
    assert bool((ys[0] == 6).all()) and bool((xs[1] == 6).all()) and bool((ys[1] == 1).all())


@pytest.fixture(params=["direct", "exchange", "methods"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """How C reads tensors: in torch's memory, by the exchange API as a torch needs that keeps to itself what kinds its
    tensors are, or by methods alone."""
    if request.param != "direct":
        monkeypatch.setattr(_torch, "_samples", lambda torch: [])
    if request.param == "methods":  # an attribute that is no descriptor of C's
        register = _elsewise.register_torch
        monkeypatch.setattr(_elsewise, "register_torch", lambda parts: register(parts | {"cdata": property()}))
    _torch._register(torch)
    yield request.param
    monkeypatch.undo()
    _torch._register(torch)


def test_every_way_of_reading_gives_the_same(way: str) -> None:
    k = ew.kernel("x*g")
    kinds: list[Any] = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8]
    for _ in range(2):  # the kinds of tensors are learnt in the first
        xs = [torch.arange(2 + j % 5).to(kinds[j % 6]) for j in range(30)]
        xs += [torch.arange(12.0).reshape(3, 4).t(), torch.arange(9.0)[2::3], torch.empty(0), torch.tensor(2.0)]
        expected = [x * 2 for x in xs]
        versions = [x._version for x in xs]
        k.foreach(xs, out=xs, g=2)
        assert all(torch.equal(x, e) for x, e in zip(xs, expected, strict=True))
        assert [x._version - v for x, v in zip(xs, versions, strict=True)] == [1] * len(xs)


def test_every_way_of_reading_refuses_the_same(way: str) -> None:
    k = ew.kernel("x*2")
    with torch.inference_mode():
        inference = torch.ones(4)
    good = [torch.ones(4), inference]
    k.foreach(good, out=good)
    makers: list[Any] = [
        lambda: torch._neg_view(torch.ones(4)),
        lambda: torch.ones(4, requires_grad=True),
        lambda: torch.nn.Parameter(torch.ones(4)),
        lambda: torch.ones(4, dtype=torch.complex64).conj(),
        lambda: torch.ones(4).to_sparse(),
        lambda: torch.ones(4, device="meta"),
        lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8),
        lambda: torch.ones(1).expand(4),
        shrunk,
        shrunk_with_offset,
    ]
    for make in makers:
        bad = make()
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            k.foreach([*good, bad], out=[*good, bad])
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            k(bad, out=bad)
    assert all(x.tolist() == [2.0] * 4 for x in good)

    def inside(x: torch.Tensor) -> torch.Tensor:
        return k.foreach([x])[0]  # type: ignore[no-any-return]

    with pytest.raises(TypeError, match=r"torch\.vmap"):
        torch.vmap(inside)(torch.ones(2, 4))


def test_a_write_in_place_is_noticed_by_autograd(way: str) -> None:
    weight, x = torch.ones(3, requires_grad=True), [torch.ones(3), torch.ones(3)]
    for kernel in (lambda: ew.kernel("x*2").foreach(x, out=x), lambda: ew.kernel("x*2")(x[0], out=x[0])):
        loss = (weight * x[0]).sum()
        kernel()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_a_tensor_may_stand_in_a_list_more_than_once() -> None:
    x = torch.ones(3)
    version = x._version
    ew.kernel("x*2").foreach([x, x, x], out=[x, x, x])
    assert x.tolist() == [8.0] * 3
    assert x._version > version


def test_many_layouts_in_turn_and_numbers_that_change_between_them() -> None:
    k = ew.kernel("i<m: x*g; else x")
    xs = [torch.arange(float(1 + j % 150)).reshape(1, -1) if j % 3 else torch.arange(1.0 + j % 150) for j in range(400)]
    ms, gs = [j // 7 % 5 for j in range(400)], [float(j // 3 % 4) for j in range(400)]
    expected = [k(x, m=m, g=g) for x, m, g in zip(xs, ms, gs, strict=True)]
    assert all(map(torch.equal, k.foreach(xs, m=ms, g=gs), expected))
    k.foreach(xs, m=ms, g=gs, out=xs)
    assert all(map(torch.equal, xs, expected))


def test_threads_call_one_kernel_on_lists_of_their_own() -> None:
    k = ew.kernel("x + 1")
    lists = [[torch.zeros(1 + (j + t) % 20) for j in range(200)] for t in range(4)]

    def work(xs: list[torch.Tensor]) -> None:
        for _ in range(50):
            k.foreach(xs, out=xs)

    threads = [threading.Thread(target=work, args=(xs,)) for xs in lists]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(bool((x == 50).all()) for xs in lists for x in xs)


def test_a_tensor_without_a_version_is_refused_and_the_others_are_told() -> None:
    """`.data =` gives a parameter made in inference mode the look of any other, but no version."""
    k = ew.kernel("x*0.5")
    first, last = torch.ones(4), torch.ones(4)
    k(first, out=first)  # the kind is known
    with torch.inference_mode():
        module = torch.nn.Linear(2, 2)
    module.double()
    for call in (lambda w: k(w, out=w), lambda w: k.foreach([first, w, last], out=[first, w, last])):
        with torch.no_grad(), pytest.raises(RuntimeError, match=r"inference tensor|version"):
            call(module.weight)
    assert (first._version, last._version) == (2, 1)


def test_torch_is_looked_at_beside_the_modes_of_the_first_call() -> None:
    seen: list[Any] = []

    class Refuse(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            raise KeyError("not here")

    with Refuse():
        _torch._register(torch)
    assert not seen
    results = ew.kernel("x*2").foreach([torch.ones(3)])
    assert isinstance(results[0], torch.Tensor)
    assert results[0].tolist() == [2.0] * 3


def test_a_trace_is_refused() -> None:
    k = ew.kernel("x*2")
    for call in (lambda x: k(x), lambda x: k.foreach([x])[0]):
        with pytest.raises(TypeError, match=r"torch\.jit\.trace cannot see into a kernel"):
            torch.jit.trace(call, torch.ones(3))


def test_no_results_are_made_of_a_torch_that_cannot_be_read_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_torch, "exchange_api", lambda torch: None)
    monkeypatch.setattr(_elsewise, "foreach_at_once", lambda *given: NotImplemented)
    k, x = ew.kernel("x*2"), torch.ones(3)
    with pytest.raises(TypeError, match="give `out=`"):
        k.foreach([x])
    assert k.foreach([x], out=[x])[0].tolist() == [2.0] * 3


def test_tensors_of_a_list_have_noise_of_their_own() -> None:
    xs = [torch.ones(5), torch.ones(5), torch.ones(7), torch.ones(5)]
    for rule, stream in (("x*rand(seed)", 0), ("x + randn(seed, 3)", 3), ("x + randn(seed, -1)", -1)):
        k = ew.kernel(rule)
        alone = ew.kernel(rule.replace(", 3", "").replace(", -1", "").replace("seed", "seed, place"))
        results = k.foreach(xs, seed=9)
        for place, (r, x) in enumerate(zip(results, xs, strict=True)):
            assert torch.equal(r, alone(x, seed=9, place=stream + place)), (rule, place)
        assert torch.equal(results[0], k(xs[0], seed=9))


def test_what_a_later_argument_frees_is_noticed() -> None:
    """Reading an argument may run any code: here it takes the memory of a tensor that was read before it."""
    t = torch.ones(1 << 20)

    class Taker(np.ndarray[Any, Any]):
        def __getattribute__(self, name: str) -> Any:
            t.untyped_storage().resize_(0)
            return super().__getattribute__(name)

    with pytest.raises(RuntimeError, match="in call 0 of the list: `x` changed while the list was read"):
        ew.kernel("x + 1").foreach([t, np.ones(3, dtype=np.float32).view(Taker)])


def test_a_list_given_as_several_arguments_and_out_is_let_go() -> None:
    xs = [torch.ones(3), torch.ones(4)]
    rule = ew.kernel("x + y")
    counts = []
    for _ in range(4):
        rule.foreach(xs, y=xs, out=xs)
        counts.append(sys.getrefcount(xs[0]))
    assert counts == counts[:1] * 4
    assert xs[1].tolist() == [2.0**4] * 4


def test_a_stream_is_refused_where_nothing_runs_on_one() -> None:
    x = torch.ones(3)
    with pytest.raises(ValueError, match="`stream=` is for CUDA, and these calls run on the CPU"):
        ew.kernel("x*2").foreach([x], out=[x], stream=12345)
    assert x.tolist() == [1.0] * 3
