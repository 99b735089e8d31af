# SPDX-License-Identifier: Apache-2.0
"""A long recording in chunks: each is a window of the whole, so fades and positions come out as in one piece.

Only one chunk is in memory at a time, and all chunks run the same code. It checks the file bit by bit.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import elsewise as ew
import numpy as np

CHUNK = 1000
#: Fades the first and last tenth of a recording, and lowers each second part of 777 samples.
RULE = ew.kernel("""
let edge = n/10
i < edge:       x * ramp(i, 0, n//10)
i >= n - edge:  x * ramp(n-1-i, 0, n//10)
i//777 % 2 == 1: x * 0.5
else x
""")


def in_chunks(source: Path, target: Path, length: int) -> int:
    """Applies the rule to a file of float32 samples, a chunk at a time; how many chunks that took."""
    chunks = 0
    with source.open("rb") as samples, target.open("wb") as result:
        for at in range(0, length, CHUNK):
            x = np.frombuffer(samples.read(4 * CHUNK), np.float32)
            result.write(RULE(x, domain=length, offset=at).tobytes())
            chunks += 1
    return chunks


def main() -> None:
    recording = np.random.default_rng(1).standard_normal(12_345).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.f32", Path(folder) / "out.f32"
        source.write_bytes(recording.tobytes())
        compiled = ew.cache_info().compiles
        chunks = in_chunks(source, target, len(recording))
        compiled = ew.cache_info().compiles - compiled
        assert target.read_bytes() == RULE(recording).tobytes()
    print(f"{chunks} chunks, {compiled} compilation: the same bits as the whole, NumPy on the CPU")


if __name__ == "__main__":
    main()
