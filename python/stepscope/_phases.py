"""Slices that callbacks of a training library open and close in separate calls."""

from __future__ import annotations

from stepscope import _native


class Phases:
    """A stack of open slices and whether a step is open, for one thread.

    Libraries do not call the closing callback after an exception, so ending a phase also ends those within it, and
    the next use of a callback starts with `close`.
    """

    def __init__(self) -> None:
        self._open: list[tuple[str, _native.Slice]] = []
        self._in_step = False

    def begin(self, name: str, category: str = "phase", **args: object) -> None:
        """Opens a slice."""
        self._open.append((name, _native.begin(name, category, **args)))

    def is_open(self, name: str) -> bool:
        """Whether a slice of this name is open."""
        return any(open_name == name for open_name, _ in self._open)

    def end(self, name: str) -> None:
        """Ends the innermost open slice of this name and all within it; does nothing if there is none."""
        if self.is_open(name):
            while self._close_innermost() != name:
                pass

    def begin_step(self) -> None:
        """Begins a step, unless one is open."""
        if not self._in_step:
            self._in_step = True
            _native.begin_step()

    def end_step(self) -> None:
        """Ends the open step, if any."""
        if self._in_step:
            self._in_step = False
            _native.end_step()

    def close(self) -> None:
        """Ends whatever is open."""
        while self._open:
            self._close_innermost()
        self.end_step()

    def _close_innermost(self) -> str:
        name, opened = self._open.pop()
        opened.end()
        return name
