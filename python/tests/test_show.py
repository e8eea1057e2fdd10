"""Pages of `stepscope.show`, made by the `stepscope` program and parsed by Python's own HTML parser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope import _record
from stepscope._show import Page

PROGRAM = os.environ.get("STEPSCOPE_PROGRAM") or shutil.which("stepscope")

needs_program = pytest.mark.skipif(not PROGRAM, reason="needs the stepscope program: on PATH, or in STEPSCOPE_PROGRAM")


class Elements(HTMLParser):
    """The start tags of a document, and the text of its element of data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._is_data = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_data = dict(attrs).get("id") == "data"

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data += data

    def handle_endtag(self, tag: str) -> None:
        self._is_data = False


def data_of(page: Page) -> dict[str, Any]:
    return json.loads(Elements(page.path.read_text()).data)


def record(folder: Path) -> None:
    with stepscope.record(folder):
        for _ in range(3):
            with stepscope.slice("</script><b>bold", "mine", answer=42):
                pass


@needs_program
def test_the_last_recording_is_shown(tmp_path: Path) -> None:
    record(tmp_path / "first")
    record(tmp_path / "second")
    page = stepscope.show(height=400)
    data = data_of(page)
    assert data["title"] == str(tmp_path / "second") and len(data["traces"]) == 1
    names = [name for name, *_ in data["traces"][0]["names"]]
    assert names.count("</script><b>bold") == 1
    assert any('"answer":42' in text.replace(" ", "") for track in data["traces"][0]["tracks"] for text in track["args"]["text"])
    assert repr(page) == f"<stepscope page of {tmp_path / 'second'}: {page.path}>"


@needs_program
def test_a_notebook_gets_one_sandboxed_frame(tmp_path: Path) -> None:
    record(tmp_path / "trace")
    page = stepscope.show(tmp_path / "trace", height=321)
    bundle = page._repr_mimebundle_()
    assert bundle == {"text/html": page._repr_html_(), "text/plain": repr(page)}
    [(tag, attributes)] = Elements(bundle["text/html"]).tags
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert "height: 321px" in (attributes["style"] or "")
    assert attributes["srcdoc"] == page.path.read_text()
    inner = Elements(attributes["srcdoc"] or "")
    assert [attributes.get("src") or attributes.get("href") for _, attributes in inner.tags] == [None] * len(inner.tags)
    assert "b" not in [tag for tag, _ in inner.tags], "a name became HTML"


@needs_program
def test_logs_are_shown_and_saved(tmp_path: Path) -> None:
    with stepscope.SummaryWriter(str(tmp_path / "logs")) as writer:
        for step in range(5):
            writer.add_scalar("loss", 1 / (step + 1), step)
    page = stepscope.show(tmp_path / "logs")
    [logdir] = data_of(page)["logdirs"]
    assert [item["tag"] for item in logdir["scalars"]] == ["loss"] and logdir["scalars"][0]["curves"][0]["n"] == 5
    saved = page.save(tmp_path / "page.html")
    assert saved.read_bytes() == page.path.read_bytes()
    with pytest.raises(FileExistsError):
        page.save(saved)
    saved.write_text("old")
    assert page.save(saved, overwrite=True).read_bytes() == page.path.read_bytes()


@needs_program
def test_a_browser_is_given_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path / "trace")
    page = stepscope.show(tmp_path / "trace")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)) or True)
    assert page.open() and opened == [page.path.as_uri()]
    path = page.path
    del page
    assert not path.exists(), "the temporary file goes with the page"


@needs_program
def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="empty: .*neither a trace nor event files"):
        stepscope.show(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="nothing: no such file or folder"):
        stepscope.show(tmp_path / "nothing")
    with pytest.raises(ValueError, match="height is 0"):
        stepscope.show(tmp_path / "empty", height=0)


def test_without_recording_and_program_there_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_record, "_last_folder", None)
    with pytest.raises(ValueError, match="has not recorded"):
        stepscope.show()
    monkeypatch.setenv("STEPSCOPE_PROGRAM", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match=r"gone: no such program \(STEPSCOPE_PROGRAM names it\)"):
        stepscope.show(tmp_path)
    monkeypatch.delenv("STEPSCOPE_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(FileNotFoundError, match="no stepscope program"):
        stepscope.show(tmp_path)


def test_show_is_imported_on_demand() -> None:
    code = "import sys, stepscope; assert 'stepscope._show' not in sys.modules; stepscope.show; assert 'stepscope._show' in sys.modules"
    environment = {**os.environ, "PYTHONPATH": str(Path(stepscope.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
