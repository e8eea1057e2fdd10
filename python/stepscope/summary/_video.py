"""Videos, as animated GIFs, and sounds, as WAVE files."""

from __future__ import annotations

import io
import warnings
import wave
from typing import TYPE_CHECKING, Any

from . import _messages as messages
from ._arrays import numpy, to_numpy
from ._images import pillow, reorder, to_bytes

if TYPE_CHECKING:
    import numpy as np


def video(tag: str, values: Any, fps: float, dataformats: str) -> bytes:
    """Makes the summary of a video; a batch of videos becomes a grid, filled up with black to a power of two."""
    videos = reorder(to_numpy(values, tag), dataformats, "NTCHW", tag)
    if videos.size == 0:
        raise ValueError(f"{tag}: the video has no pixels: its shape is {videos.shape} (NTCHW)")
    if videos.shape[2] not in (1, 3):
        raise ValueError(f"{tag}: a video must have 1 or 3 channels, not {videos.shape[2]}")
    if not fps > 0:
        raise ValueError(f"{tag}: fps must be positive, not {fps}")
    frames = _grid(to_bytes(videos))
    _, height, width, channels = frames.shape
    return messages.summary(messages.value(tag, messages.image(height, width, channels, _gif(frames, fps))))


def _grid(videos: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Arranges videos (NTCHW) in a grid of at least as many columns as rows (THWC)."""
    n_videos, times, channels, height, width = videos.shape
    # Of 2^k videos, 2^(k/2) are in a column; k is rounded down for the rows, and up for the padding.
    rows = 1 << (n_videos.bit_length() - 1) // 2
    columns = (1 << (n_videos - 1).bit_length()) // rows
    padding = [(0, rows * columns - n_videos)] + [(0, 0)] * 4
    videos = numpy("add_video").pad(videos, padding)
    videos = videos.reshape(rows, columns, times, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return videos.reshape(times, rows * height, columns * width, channels)


def _gif(frames: np.ndarray[Any, Any], fps: float) -> bytes:
    image = pillow("add_video").Image
    pictures = [image.fromarray(frame[:, :, 0] if frame.shape[2] == 1 else frame) for frame in frames]
    file = io.BytesIO()
    # Milliseconds; the format has hundredths of seconds, and browsers slow down what is faster than 50 a second.
    pictures[0].save(file, format="GIF", save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0)
    return file.getvalue()


def audio(tag: str, values: Any, sample_rate: int) -> bytes:
    """Makes the summary of a sound: amplitudes in -1..1, of one channel or (frames, 2) for stereo."""
    np = numpy("add_audio")
    samples = to_numpy(values, tag).squeeze()
    samples = samples.reshape(-1, 1) if samples.ndim < 2 else samples
    if samples.size == 0 or samples.ndim != 2 or samples.shape[1] > 2:
        raise ValueError(f"{tag}: a sound must have the shape (frames,) or (frames, 2), not {np.shape(values)}")
    # Integers and half precision would overflow below.
    samples = samples.astype(np.result_type(samples, np.float32))
    if abs(samples).max() > 1:
        warnings.warn(f"{tag}: amplitudes beyond -1..1 are clipped", stacklevel=3)
        samples = samples.clip(-1, 1)
    frames, channels = samples.shape
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    content = messages.audio(sample_rate, channels, frames, file.getvalue(), "audio/wav")
    return messages.summary(messages.value(tag, content))
