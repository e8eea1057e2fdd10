"""Makes docs/pictures/zoom.png, the README's moving picture: a PyTorch job of two GPUs, zoomed to a stall and its cause.

    zoom_picture.py PROGRAM FOLDER OUT.png

PROGRAM is the release build, FOLDER has hta_multirank_sampled_rank-0.json.gz and -1 (fetch_data.py brings them: two ranks of a
job of 128, from HolisticTraceAnalysis, MIT). Needs Xvfb, openbox, xdotool, dbus-run-session, ImageMagick's import, and Pillow.
Positions are those of a window of 1280 x 800: look at the frames (OUT.png.frames) when the layout changes.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from PIL import Image

program, traces, out = sys.argv[1:]
DISPLAY = ":77"
scratch = pathlib.Path(tempfile.mkdtemp())
job = scratch / "two-gpus"
job.mkdir()
for rank in (0, 1):
    shutil.copy(f"{traces}/hta_multirank_sampled_rank-{rank}.json.gz", job / f"rank-{rank}.json.gz")
frames_dir = pathlib.Path(out + ".frames")
frames_dir.mkdir(exist_ok=True)
env = os.environ | {
    "DISPLAY": DISPLAY,
    "XDG_RUNTIME_DIR": str(scratch),
    "XDG_CONFIG_HOME": str(scratch / "config"),
    "XDG_DATA_HOME": str(scratch / "data"),
    "LIBGL_ALWAYS_SOFTWARE": "1",
    "WINIT_X11_SCALE_FACTOR": "1",
}
env.pop("WAYLAND_DISPLAY", None)
started = []
frames = []


def start(*command, wait):
    started.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    time.sleep(wait)


def do(*words, wait=0.6):
    subprocess.run(["xdotool", *map(str, words)], env=env, check=True)
    time.sleep(wait)


def shoot(ms):
    path = frames_dir / f"{len(frames):02}.png"
    subprocess.run(["import", "-window", "root", path], env=env, check=True)
    frames.append((path, ms))


try:
    start("Xvfb", DISPLAY, "-screen", "0", "1280x824x24", "-nolisten", "tcp", "+extension", "GLX", "-noreset", wait=2)
    start("openbox", wait=2)
    start("dbus-run-session", "--", program, "view", "--theme", "dark", job, wait=12)
    do("mousemove", 813, 760)
    shoot(2200)
    # The GPUs' streams alone, of both ranks.
    do("mousemove", 508, 98, "click", 1)
    do("type", "stream")
    do("key", "Return")
    do("mousemove", 813, 700)
    shoot(1200)
    for _ in range(12):
        do("key", "w")
        shoot(160)
    frames[-1] = (frames[-1][0], 900)
    # The wait of rank 0's stream for its peer.
    do("mousemove", 830, 309, "click", 1, wait=1.5)
    shoot(1500)
    do("mousemove", 870, 309, wait=1.5)
    shoot(4500)
finally:
    for process in reversed(started):
        process.terminate()

pictures = []
for path, _ in frames:
    picture = Image.open(path).convert("RGB").crop((0, 24, 1280, 824))
    pictures.append(picture.resize((1000, 625), Image.Resampling.LANCZOS))
# Fewer shades, so that what does not change costs nothing.
pictures = [picture.point(lambda v: min(255, (v + 2) // 5 * 5)) for picture in pictures]
times = [ms for _, ms in frames]
pictures[0].save(out, save_all=True, append_images=pictures[1:], duration=times, loop=0, optimize=True)
print(out, os.path.getsize(out), "bytes,", len(pictures), "frames")
