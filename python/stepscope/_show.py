"""Shows a recording or logs: one interactive page, in a notebook or a browser."""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from pathlib import Path

from stepscope import _record

# The program, where it is neither next to Python nor on the PATH.
_PROGRAM = "STEPSCOPE_PROGRAM"


class Page:
    """An interactive page of a trace or logdir, which a notebook shows where it is the value of a cell.

    It needs no network. The page's file is temporary, and removed with this object: `save` makes one that stays.

    Attributes:
        path: The temporary file.
        height: The height in a notebook, pixels.
    """

    def __init__(self, source: str, folder: tempfile.TemporaryDirectory[str], height: int) -> None:
        self.path = Path(folder.name) / "page.html"
        self.height = height
        self._source = source
        self._folder = folder

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Writes the page to a file.

        Raises:
            FileExistsError: The file exists, and `overwrite` is not set.
        """
        target = Path(path)
        with self.path.open("rb") as page, target.open("wb" if overwrite else "xb") as out:
            shutil.copyfileobj(page, out)
        return target

    def open(self) -> bool:
        """Opens the page in a browser; returns whether there is one."""
        return webbrowser.open(self.path.as_uri())

    def _repr_html_(self) -> str:
        # Without `allow-same-origin` the page's script cannot reach the notebook.
        page = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        style = f"width: 100%; height: {self.height}px; border: 0"
        title = html.escape(f"stepscope: {self._source}", quote=True)
        return f'<iframe sandbox="allow-scripts" title="{title}" style="{style}" srcdoc="{page}"></iframe>'

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<stepscope page of {self._source}: {self.path}>"


def show(path: str | os.PathLike[str] | None = None, *, height: int = 600) -> Page:
    """Shows a trace or logdir as an interactive page: timeline, findings, scalars, histograms, images.

    In a notebook the page is shown where it is the value of a cell; elsewhere `open()` shows it in a browser, and
    `save()` writes it to a file.

    Args:
        path: A trace folder, a trace of another tool, a logdir or an event file; without it the last recording of this
            process.
        height: The height in a notebook, pixels.

    Raises:
        ValueError: There is nothing to show: this process has not recorded, or `height` is not positive.
        FileNotFoundError: The path or the `stepscope` program does not exist.
        RuntimeError: The program could not make the page; the message is the program's.

    Example:
        >>> stepscope.show("runs/first")
    """
    if height <= 0:
        raise ValueError(f"height is {height}, not a positive number of pixels")
    source = _source(path)
    program = _find_program()
    folder = tempfile.TemporaryDirectory(prefix="stepscope-")
    page = Page(source, folder, height)
    # A path that begins with a dash is no option.
    command = [program, "--quiet", "report", "--html", str(page.path), "--", source]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        folder.cleanup()
        lines = done.stderr.strip().splitlines() or [f"{program} ended with code {done.returncode}"]
        raise RuntimeError(f"cannot show {source}: {lines[-1]}")
    return page


def _source(path: str | os.PathLike[str] | None) -> str:
    """The path to show, made absolute unless it is a URL."""
    if path is None:
        if _record._last_folder is None:
            raise ValueError("this process has not recorded anything yet; name a trace or logdir: show('runs')")
        return _record._last_folder
    text = os.fspath(path)
    if "://" not in text and not os.path.exists(text):
        raise FileNotFoundError(f"{text}: no such file or folder")
    return text


def _find_program() -> str:
    """The `stepscope` program: named by STEPSCOPE_PROGRAM, next to Python, where pip puts it, or on the PATH."""
    named = os.environ.get(_PROGRAM)
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise FileNotFoundError(f"{named}: no such program ({_PROGRAM} names it)")
        return named
    found = shutil.which("stepscope", path=os.path.dirname(sys.executable)) or shutil.which("stepscope")
    if found is None:
        raise FileNotFoundError(f"no stepscope program on the PATH; install it, or set {_PROGRAM}")
    return found
