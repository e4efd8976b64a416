from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import http.server
import itertools
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import gymnasium
import pytest

from schedgym.cli import main
from schedgym.errors import InvalidFile, InvalidParameter, TraceFormatError, UnknownName
from schedgym.traces import Field, TableFormat
from schedgym.traces import fetch as module
from schedgym.traces.fetch import DataSet, fetch, known_sets
from tests.tables import table

CONTENT = b"a,b\n1,2\n"
SMALL = DataSet(
    *("small.csv", "https://data.invalid/small.csv", len(CONTENT)),
    *(hashlib.sha256(CONTENT).hexdigest(), "eight bytes"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty SCHEDGYM_DATA, and the one small data set "small"."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("SCHEDGYM_DATA", str(path))
    monkeypatch.setitem(known_sets(), "small", SMALL)
    return path


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for the network: serves CONTENT, and lists the addresses that were asked for."""
    pytest.importorskip("pooch", reason="needs pooch (the extra eval)")
    asked: list[str] = []

    def download(url: str, stream: BinaryIO, size: int) -> None:
        asked.append(url)
        stream.write(CONTENT)

    monkeypatch.setattr(module, "_download", download)
    return asked


class Slow(http.server.BaseHTTPRequestHandler):
    """A server that answers badly, as the path says."""

    def do_GET(self) -> None:
        how = self.path.removeprefix("/")
        pieces: Iterable[bytes] = [CONTENT]
        if how == "drip-headers":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            pieces = self.slowly()
        else:
            self.send_response(200)
            if how in ("right", "short", "long"):
                self.send_header("Content-Length", "1" + "0" * 15 if how == "long" else str(len(CONTENT)))
            self.end_headers()
            others = {"endless": itertools.repeat(CONTENT), "drip": self.slowly(), "short": [CONTENT[:5]]}
            pieces = others.get(how, pieces)
        with contextlib.suppress(OSError):
            for piece in pieces:
                self.wfile.write(piece)

    def slowly(self) -> Iterator[bytes]:
        """A byte now and then."""
        while True:
            time.sleep(0.05)
            yield b"a"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Lets "small" be fetched from a server on this machine, which answers as it is told."""
    pytest.importorskip("pooch", reason="needs pooch (the extra eval)")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()

        def answer(how: str, size: int = SMALL.size) -> None:
            local = dataclasses.replace(SMALL, size=size)
            url = f"http://127.0.0.1:{running.server_port}/{how}"
            object.__setattr__(local, "url", url)  # which must be https
            monkeypatch.setitem(known_sets(), "small", local)

        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield answer
        running.shutdown()


def test_an_unknown_name_proposes_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown data set 'facebok-2010'; did you mean 'facebook-2010'"):
        fetch("facebok-2010")


def test_a_held_file_is_used_without_pooch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / SMALL.file).write_bytes(CONTENT)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setitem(sys.modules, "pooch", None)
    try:
        assert fetch("small") == folder / SMALL.file
    finally:
        folder.chmod(stat.S_IRWXU)


def test_a_held_file_with_another_content_is_refused_and_kept(folder: Path, served: list[str]) -> None:
    held = folder / SMALL.file
    held.write_bytes(b"other")
    found = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(TraceFormatError, match=f"small.csv: SHA-256 must be {SMALL.sha256}, got {found}"):
        fetch("small")
    assert held.read_bytes() == b"other" and served == []


def test_a_file_is_downloaded_once(folder: Path, served: list[str]) -> None:
    path = fetch("small")
    assert path == folder / SMALL.file and path.read_bytes() == CONTENT
    assert fetch("small") == path
    assert served == [SMALL.url]


def test_a_file_of_unknown_content_is_fetched_unverified(
    folder: Path, served: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "acme-seren"
    path = folder / known_sets()[name].file
    assert known_sets()[name].sha256 == "" and fetch(name) == path and served == [known_sets()[name].url]
    path.write_bytes(b"other")
    assert main(["trace", "fetch", name]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{path}\n" and served == [known_sets()[name].url]
    assert "licence: CC BY 4.0" in captured.err and "to cite: Hu et al." in captured.err
    assert "unverified" in captured.err


def test_without_the_variable_the_cache_is_used_and_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path, served: list[str]
) -> None:
    import pooch

    monkeypatch.delenv("SCHEDGYM_DATA")
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    path = fetch("small")
    assert path == tmp_path / "cache" / "schedgym" / SMALL.file
    path.write_bytes(b"damaged")
    assert fetch("small").read_bytes() == CONTENT
    assert served == [SMALL.url] * 2


def test_a_download_with_another_content_is_refused(
    folder: Path, served: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(known_sets(), "small", dataclasses.replace(SMALL, sha256="0" * 64))
    with pytest.raises(OSError, match=r"small: cannot fetch https://data\.invalid/small\.csv into") as caught:
        fetch("small")
    assert "hash" in str(caught.value) and "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


def test_a_failed_download_is_one_line(
    folder: Path, served: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import requests

    def fail(*_: Any, **__: Any) -> None:
        raise requests.exceptions.ConnectionError("no route\nto host")

    monkeypatch.setattr(module, "_download", fail)
    with pytest.raises(OSError, match=r"small: cannot fetch https://.*: no route to host"):
        fetch("small")
    assert list(folder.iterdir()) == []


def test_a_download_from_a_server(server: Callable[..., None], folder: Path) -> None:
    for how in ("right", "no length"):
        server(how)
        assert fetch("small").read_bytes() == CONTENT
        assert [path.name for path in folder.iterdir()] == [SMALL.file]
        (folder / SMALL.file).unlink()


@pytest.mark.parametrize(
    ("how", "message"), table(__file__, "test_a_server_that_sends_too_much_or_too_slowly_is_one_line")
)
def test_a_server_that_sends_too_much_or_too_slowly_is_one_line(
    server: Callable[..., None],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    how: str,
    message: str,
) -> None:
    slow = how.startswith("drip")
    server(how, 10**6 if slow else SMALL.size)
    if slow:
        monkeypatch.setattr(module, "PATIENCE", 1.0)
        monkeypatch.setattr(module, "SLOWEST", 1e9)
    # its handlers keep the stream of when it was imported: another test's
    for handler in pytest.importorskip("pooch").get_logger().handlers:
        monkeypatch.setattr(handler, "stream", sys.stderr)
    assert main(["trace", "fetch", "small"]) == 2
    error = capsys.readouterr().err
    assert re.search(rf"^error: small: cannot fetch http://127.*: .*{message}", error, re.MULTILINE)
    assert list(folder.iterdir()) == []
    assert error.count("\n") <= 2  # pooch tells what it does in a line of its own


def test_a_pipe_is_no_data_set(folder: Path) -> None:
    os.mkfifo(folder / SMALL.file)
    with pytest.raises(InvalidFile, match="small.csv: is not a regular file"):
        fetch("small")


def test_a_folder_that_cannot_be_written_is_one_line(
    folder: Path, served: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = folder / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("SCHEDGYM_DATA", str(blocked))
    with pytest.raises(OSError, match=r"small: cannot fetch .* into .*file") as caught:
        fetch("small")
    assert "\n" not in str(caught.value) and served == []


def test_missing_pooch_names_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match=r'pip install "schedgym\[eval\]"'):
        fetch("small")


@pytest.mark.skipif(
    not os.environ.get("SCHEDGYM_DATA"), reason="SCHEDGYM_DATA names no folder with the public traces"
)
@pytest.mark.parametrize("name", sorted(known_sets()))
def test_the_published_files_have_the_recorded_sha256(name: str) -> None:
    path = Path(os.environ["SCHEDGYM_DATA"]) / known_sets()[name].file
    if not path.exists():
        pytest.skip("the folder does not hold it")
    assert module.sha256(path) == known_sets()[name].sha256 and path.stat().st_size == known_sets()[name].size
    assert fetch(name) == path


def test_two_formats_with_one_data_set_name(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"submit": Field("a"), "duration": Field("b")}
    two = {name: TableFormat(name=name, columns=columns, files={"small": SMALL}) for name in ("one", "two")}
    monkeypatch.setattr(module, "formats", lambda: two)
    with pytest.raises(InvalidParameter, match="data set 'small' of two: there is another one of this name"):
        module.known_sets.__wrapped__()
