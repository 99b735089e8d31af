# SPDX-License-Identifier: Apache-2.0
"""Fade stereo audio in and out, and write it to a WAV file: `t` is the time axis, so one rule serves any number of
channels.

    python examples/audio_fade.py [file.wav]

Runs alone, on a GPU if torch has one, and checks its result against NumPy. Without a file name it writes to a temporary
folder.
"""

from __future__ import annotations

import sys
import tempfile
import wave
from pathlib import Path

import elsewise as ew
import numpy as np

RATE = 48_000
fade = ew.kernel("""
[ch, t]
t < rise:           x * (float(t)/rise)
t >= len(t) - fall: x * (float(len(t)-1-t)/fall)
else                x
""")
rise, fall = RATE // 10, RATE // 2  # samples

time = np.arange(2 * RATE) / RATE
sound = np.stack([np.sin(2 * np.pi * 440 * time), np.sin(2 * np.pi * 660 * time)]).astype(np.float32)

try:
    import torch
except ImportError:
    faded = fade(sound, rise=rise, fall=fall)
    where = "NumPy"
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensor = torch.from_numpy(sound).to(device)
    faded = fade(tensor, rise=rise, fall=fall).cpu().numpy()
    where = f"torch on {device}"

gain = np.ones(sound.shape[1], np.float32)
gain[:rise] = np.arange(rise, dtype=np.float32) / np.float32(rise)
gain[-fall:] = np.arange(fall, dtype=np.float32)[::-1] / np.float32(fall)
assert np.array_equal(faded, sound * gain)
assert faded[:, 0].max() == faded[:, -1].max() == 0

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "fade.wav"
with wave.open(str(path), "wb") as file:
    file.setnchannels(2)
    file.setsampwidth(2)
    file.setframerate(RATE)
    file.writeframes((faded.T * 32767).astype("<i2").tobytes())
with wave.open(str(path)) as file:
    assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (2, RATE, sound.shape[1])

print(f"{where}: {sound.shape[0]} channels of {sound.shape[1]:,} samples, {rise:,} up and {fall:,} down")
print(f"peak {np.abs(faded[:, : rise // 10]).max():.3f} at first, {np.abs(faded).max():.3f} in between")
print(f"wrote {path.name}, {path.stat().st_size:,} bytes")
