"""Outputs: what is written where, and what stays as it was."""

from __future__ import annotations

import ast
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from schedgym.core.files import atomic_write, check_output
from schedgym.errors import InvalidParameter
from tests.interpreted import python
from tests.special import SPECIAL, block_device, full_device, read_pipe
from tests.tables import entry, table

ROOT = Path(__file__).parents[2]
ROOTS = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
ANYONE = 65534  # nobody


def test_a_new_file_has_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new") as stream:
            stream.write("é")
            (temporary,) = tmp_path.iterdir()
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert (tmp_path / "new").read_bytes() == "é".encode()


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("mode", ["w", "wb"])
def test_what_stands_there_stays(tmp_path: Path, kind: str, mode: str) -> None:
    path = tmp_path / "out.npz"
    check = SPECIAL[kind](path)
    with atomic_write(path, mode) as stream:
        if mode == "w":
            stream.write("a\r\nb\n")
        else:
            np.savez_compressed(stream, a=np.arange(9))
    written = check()
    if kind != "device":
        assert written == b"a\r\nb\n" if mode == "w" else written.startswith(b"PK")


@pytest.mark.parametrize("kind", ["link", "private file"])
def test_a_failure_leaves_what_stands_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    check = SPECIAL[kind](path)
    path.write_text("old")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as stream:
        stream.write("half")
        raise KeyboardInterrupt
    assert check() == b"old" and sorted(tmp_path.rglob("*")) == before
    with atomic_write(path) as stream:
        stream.write("new")
        assert path.read_text() == "old", "readers see the old content until the end"
    assert check() == b"new"


def test_a_failure_writes_nothing_into_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    check = read_pipe(path)
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as stream:
        stream.write("half" * 100_000)
        raise KeyboardInterrupt
    with atomic_write(path) as stream:
        stream.write("whole" * 100_000)
    assert check() == b"whole" * 100_000


def test_a_link_that_leads_nowhere_yet(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    with atomic_write(tmp_path / "link") as stream:
        stream.write("x")
    assert (tmp_path / "new").read_text() == "x" and (tmp_path / "link").is_symlink()
    (tmp_path / "far").symlink_to("no/new")
    with pytest.raises(InvalidParameter, match=f"far: there is no folder '{tmp_path}/no'"):
        check_output(tmp_path / "far")


def test_names_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 251 + ".csv")
    with atomic_write(path) as stream:
        stream.write("x")
    assert path.read_text() == "x"
    with pytest.raises(InvalidParameter, match="File name too long$"):
        check_output(tmp_path / ("x" * 256))


@pytest.fixture
def refused(tmp_path: Path) -> Iterator[Path]:
    """A folder with what no output may replace."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(tmp_path / "socket"))  # a path of a socket is short
        yield tmp_path


@pytest.mark.parametrize(("name", "message"), table(__file__, "test_what_is_refused"))
def test_what_is_refused(refused: Path, name: str, message: str) -> None:
    if name == "disk":
        block_device(refused / name)
    before = sorted(refused.rglob("*"))
    for write in (check_output, lambda path: atomic_write(path).__enter__()):
        with pytest.raises(InvalidParameter, match=f"^{re.escape(str(refused / name))}: {message}"):
            write(refused / name)
    assert sorted(refused.rglob("*")) == before


def test_a_device_or_a_disk_that_takes_no_more_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "full"
    full_device(path)
    with pytest.raises(InvalidParameter, match=": No space left on device$"), atomic_write(path) as stream:
        stream.write("x")
    assert stat.S_ISCHR(path.lstat().st_mode)
    with pytest.raises(OSError, match="No space left on device: '.*/new'"), atomic_write(tmp_path / "new"):
        raise OSError(28, "No space left on device")  # as a write does, which knows no name


def test_a_reader_that_ends_too_early_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen(["head", "-c", "1", path], stdout=subprocess.DEVNULL):
        with pytest.raises(InvalidParameter, match="pipe: Broken pipe"), atomic_write(path) as stream:
            stream.write("x" * 10_000_000)
    assert stat.S_ISFIFO(path.lstat().st_mode)


PRINTS = """
import sys
from schedgym.core.files import atomic_write
print("before")
with atomic_write(sys.argv[1]) as stream:
    stream.write("written\\n")
print("after")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere /dev/stdout is no link")
@pytest.mark.parametrize("name", ["stdout", "link to stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_standard_output_keeps_all_that_is_printed(tmp_path: Path, name: str, to: str) -> None:
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    (tmp_path / "link to stdout").symlink_to("stdout")
    (tmp_path / "log").write_text("old\n")
    command = [sys.executable, "-c", PRINTS, name]
    with open(tmp_path / "log", "a") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE if to == "pipe" else log, cwd=tmp_path)
    found = done.stdout.decode() if to == "pipe" else (tmp_path / "log").read_text().removeprefix("old\n")
    assert done.returncode == 0 and found == "before\nwritten\nafter\n"
    assert (tmp_path / "stdout").is_symlink() and (tmp_path / "link to stdout").is_symlink()


@ROOTS
def test_a_file_of_somebody_else_stays_theirs(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.touch()
    path.chmod(0o640)
    os.chown(path, ANYONE, ANYONE)
    with atomic_write(path) as stream:
        stream.write("x")
    there = path.stat()
    assert (there.st_uid, there.st_gid, stat.S_IMODE(there.st_mode)) == (ANYONE, ANYONE, 0o640)


def test_anyone_writes_where_anyone_may(tmp_path: Path) -> None:
    """Without root's rights, which are dropped once all is imported."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "read only").touch()
    (own / "read only").chmod(0o444)
    (own / "private").touch()
    (own / "private").chmod(0o600)
    (own / "closed").mkdir()
    (own / "closed").chmod(0o555)
    if os.geteuid() == 0:
        for path in (own, *own.iterdir()):
            os.chown(path, ANYONE, ANYONE)
    work = f"""
import os
from schedgym.core.files import atomic_write
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({ANYONE})
    os.setuid({ANYONE})
for name in ("/dev/null", "private", "new", "read only", "closed/x", "/dev/stdout"):
    try:
        with atomic_write(name) as stream:
            stream.write("x\\n")
        print(name, "written")
    except Exception as error:
        print(type(error).__name__, error)
"""
    assert python("-c", work, folder=own).stdout.splitlines() == [
        "/dev/null written",
        "private written",
        "new written",
        "InvalidParameter read only: cannot be written to",
        "InvalidParameter closed/x: the folder 'closed' cannot be written to",
        "x",
        "/dev/stdout written",
    ]
    assert stat.S_IMODE((own / "private").stat().st_mode) == 0o600


OTHERS = entry(__file__, "OTHERS")
WRITERS = {*"write_text write_bytes touch replace rename renames mkstemp mknod NamedTemporaryFile".split()}


def test_every_output_is_written_by_atomic_write() -> None:
    """So what holds of it holds of all; that it is handed to libraries as a stream, the commands show."""
    found = set()
    for folder in ("schedgym", "agents", "baselines"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call):
                    continue
                whose = node.func.value if isinstance(node.func, ast.Attribute) else None
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                texts = [
                    a.value
                    for a in (*node.args, *(k.value for k in node.keywords))
                    if isinstance(a, ast.Constant)
                ]
                opens = name == "open" and any(
                    re.fullmatch("[rwaxbt+]*[wax+][bt]*", str(text)) for text in texts
                )
                of_files = name not in ("replace", "rename") or getattr(whose, "id", "") in ("os", "path")
                if opens or (name in WRITERS and of_files and whose is not None):
                    found.add(path.relative_to(ROOT).as_posix())
    # a formatter's write_text writes no file
    assert found - {"schedgym/cli/parameters.py"} <= set(OTHERS)
    assert {"schedgym/core/files.py", "schedgym/core/kernel_cache.py"} <= found
