# SPDX-License-Identifier: Apache-2.0
"""Frame a picture: a dark line around it, a fade towards the line, the picture within. `border(y, x)` is the distance
to the nearest edge.

    python examples/picture_border.py [file.png]

Runs alone, on a GPU if torch has one, and checks its result against NumPy. Without a file name it writes to a temporary
folder.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import elsewise as ew
import numpy as np

frame = ew.kernel("""
[row, col, channel]
border(row, col) < line:        u8(32)
border(row, col) < line + soft: u8(x * (float(border(row, col) - line)/soft))
else                            x
""")
line, soft = 6, 40  # pixels
height, width = 240, 320

row, col = np.mgrid[0:height, 0:width]
picture = np.stack([row * 255 // height, col * 255 // width, 255 - row * 255 // height], axis=2).astype(np.uint8)


def png(path: Path, pixels: np.ndarray[Any, Any]) -> None:
    """Writes 8-bit RGB pixels as a PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + line.tobytes() for line in pixels)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


try:
    import torch
except ImportError:
    framed = frame(picture, line=line, soft=soft)
    where = "NumPy"
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    framed = frame(torch.from_numpy(picture).to(device), line=line, soft=soft).cpu().numpy()
    where = f"torch on {device}"

distance = np.minimum(np.minimum(row, height - 1 - row), np.minimum(col, width - 1 - col))[:, :, None]
faded = (picture * ((distance - line).astype(np.float32) / np.float32(soft))).astype(np.int64).astype(np.uint8)
expected = np.where(distance < line, np.uint8(32), np.where(distance < line + soft, faded, picture))
assert framed.dtype == np.uint8 and np.array_equal(framed, expected)

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "frame.png"
png(path, framed)
print(f"{where}: {width}x{height} pixels, a line of {line} and a fade of {soft}")
print(f"from the left edge: {' '.join(str(v) for v in framed[height // 2, : line + soft + 8 : 6, 2])}")
print(f"wrote {path.name}")
