"""What the package tells the native recorder, kept as a list: the fixture `recorded` of several test modules."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from typing import Any

import pytest

from stepscope import _native


class Recorded:
    """Replaces the recording functions of `_native`; fails when a slice ends out of order or on another thread."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.args: list[tuple[str, dict[str, object]]] = []
        self.open: dict[int, list[str]] = defaultdict(list)
        self.recording = True
        self._flow_ids = itertools.count(1)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        recorded = self

        class Slice:
            def __init__(self, name: str, category: str) -> None:
                self.name, self.category, self.thread = name, category, 0

            def __enter__(self) -> Slice:
                self.thread = threading.get_ident()
                recorded.open[self.thread].append(self.name)
                recorded.events.append(("begin", self.name, self.category))
                return self

            def __exit__(self, *exc: object) -> None:
                assert self.thread == threading.get_ident(), f"{self.name} ended on another thread"
                assert recorded.open[self.thread][-1] == self.name, f"{self.name} ended out of order"
                recorded.open[self.thread].pop()
                recorded.events.append(("end", self.name, self.category))

            def end(self) -> None:
                self.__exit__()

        def slice_(name: str, /, category: str = "python", **args: object) -> Slice:
            self.args.append((name, args))
            return Slice(name, category)

        def keep(kind: str) -> Any:
            return lambda *a, **k: self.events.append((kind, *a))

        replacements = {
            "is_recording": lambda: self.recording,
            "slice": slice_,
            "begin": lambda name, /, category="python", **args: slice_(name, category, **args).__enter__(),
            "next_flow_id": lambda: next(self._flow_ids),
        }
        kinds = ("mark", "counter", "flow_out", "flow_in", "begin_step", "end_step")
        for name, function in (replacements | {kind: keep(kind) for kind in kinds}).items():
            monkeypatch.setattr(_native, name, function)

    def words(self, category: str | None = None) -> list[str]:
        """Begins and ends as `+name` and `-name`, other events by their kind."""
        signs = {"begin": "+", "end": "-"}
        return [
            signs[kind] + event[0] if kind in signs else kind
            for kind, *event in self.events
            if category is None or (kind in signs and event[1] == category)
        ]

    def n_begun(self, name: str) -> int:
        return sum(event[:2] == ("begin", name) for event in self.events)

    def n_open(self) -> int:
        return sum(map(len, self.open.values()))


@pytest.fixture(name="recorded")
def recorded_fixture(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    recorded = Recorded()
    recorded.install(monkeypatch)
    return recorded
