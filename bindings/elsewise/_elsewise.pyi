# SPDX-License-Identifier: Apache-2.0
"""The compiled module. Kernel's slower methods are attached by _kernel.py; they are declared here because it is their
type."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ._bench import Bench
from ._check import Check
from ._explain import Explanation

dtypes: tuple[tuple[str, str, int], ...]  # spelling, torch's name, bytes

class Kernel:
    __signature__: inspect.Signature
    @property
    def spec(self) -> str: ...
    @property
    def arguments(self) -> tuple[str, ...]: ...
    def __call__(
        self,
        /,
        *args: Any,
        out: Any = None,
        shape: int | Sequence[int] | None = None,
        dtype: Any = None,
        device: Any = None,
        domain: int | Sequence[int] | None = None,
        offset: int | Sequence[int] | None = None,
        stream: Any = None,
        **kwargs: Any,
    ) -> Any: ...
    def emit(
        self,
        stage: str,
        /,
        *,
        arch: str | None = None,
        in_place: bool = False,
        window: bool = False,
        dtype: Any = None,
        **kinds: Any,
    ) -> str | bytes: ...
    def launch(
        self,
        /,
        *,
        out: Any,
        stream: Any = None,
        device: Any = None,
        dtype: Any = None,
        shape: Any = None,
        domain: Any = None,
        offset: Any = None,
        **args: Any,
    ) -> None: ...
    def check(self, /, *args: Any, **kwargs: Any) -> Check: ...
    def foreach(self, /, *args: Any, out: Any = None, stream: Any = None, **kwargs: Any) -> list[Any]: ...
    def explain(self, /, *args: Any, **kwargs: Any) -> Explanation: ...
    def bench(self, /, *args: Any, **kwargs: Any) -> Bench: ...

class View:
    def __init__(
        self,
        data: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int],
        device: int = -1,
        readonly: bool = False,
    ) -> None: ...
    @staticmethod
    def from_dlpack(capsule: object) -> View: ...
    @property
    def data(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def readonly(self) -> bool: ...

class Plan:
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...

def register_package(
    slow_call: Callable[..., Any],
    fault: Callable[..., Exception],
    allocate_numpy: Callable[..., Any],
    read: Callable[..., Any],
    written: Callable[..., None],
) -> None: ...
def register_torch(parts: dict[str, Any]) -> None: ...
def register_numpy(array: type, empty: Callable[..., Any], dtypes: dict[str, Any]) -> None: ...
def compile(text: str, file: str) -> tuple[Kernel, list[dict[str, Any]]]: ...
def allowance(kernel: Kernel) -> tuple[int, list[str]]: ...
def format(text: str) -> str: ...
def plan(
    kernel: Kernel,
    args: Sequence[Any],
    out: View | None = None,
    shape: Sequence[int] | None = None,
    dtype: str | None = None,
    device: int | None = None,
    domain: Sequence[int] | None = None,
    offset: Sequence[int] | None = None,
) -> Plan: ...
def run(
    plan: Plan,
    args: Sequence[Any],
    out: View,
    shape: Sequence[int] | None = None,
    dtype: str | None = None,
    device: int | None = None,
    stream: int = 0,
    threads_of_torch: bool = False,
    raw_pointers: bool = False,
    domain: Sequence[int] | None = None,
    offset: Sequence[int] | None = None,
) -> None: ...
def foreach(kernel: Kernel, args: tuple[Any, ...], outs: list[Any] | None, stream: int | None) -> list[Any]: ...
def foreach_at_once(kernel: Kernel, args: tuple[Any, ...], outs: Any, kwargs: dict[str, Any]) -> Any: ...
def explain(
    kernel: Kernel,
    args: Sequence[Any],
    out: View | None = None,
    shape: Sequence[int] | None = None,
    dtype: str | None = None,
    device: int | None = None,
    domain: Sequence[int] | None = None,
    offset: Sequence[int] | None = None,
    positions: Sequence[int] = (),
) -> dict[str, Any]: ...
def numbered(kernel: Kernel) -> str: ...
def emit(
    kernel: Kernel,
    stage: str,
    kinds: dict[str, str],
    arch: str = "",
    in_place: bool = False,
    dtype: str | None = None,
    rank: int = -1,
    window: bool = False,
) -> str | bytes: ...
def counters() -> dict[str, int]: ...
def path_counts() -> tuple[int, int]: ...
def clear_cache() -> None: ...
def set_threads(threads: int) -> None: ...
def current_stream(ordinal: int) -> int: ...
def environment() -> list[tuple[str, str, str]]: ...
def cuda_available() -> tuple[bool, str]: ...
def set_nvrtc_paths(paths: list[str]) -> None: ...
def nvrtc_places() -> list[tuple[str, str]]: ...
def version() -> str: ...
