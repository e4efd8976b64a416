"""What may stand where an output goes: devices, pipes, links, files with a mode; how each is checked.

Tests write into devices of their own, never into those of the machine, which a fault would destroy as root.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

LONG = 60.0  # s after which nobody comes any more

Check = Callable[[], bytes]  # fails where what stood there is not what it was; returns what has been written


def _device(path: Path, kind: int, major: int, minor: int) -> None:
    try:
        os.mknod(path, kind | 0o666, os.makedev(major, minor))
        if kind == stat.S_IFCHR:
            os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        path.unlink(missing_ok=True)
        pytest.skip(f"no device can be made or opened here: {error.strerror}")


def null_device(path: Path) -> Check:
    """A device of the kind of /dev/null."""
    _device(path, stat.S_IFCHR, 1, 3)

    def check() -> bytes:
        there = path.lstat()
        assert stat.S_ISCHR(there.st_mode) and there.st_rdev == os.makedev(1, 3)
        return b""

    return check


def full_device(path: Path) -> None:
    """A device of the kind of /dev/full, which takes nothing."""
    _device(path, stat.S_IFCHR, 1, 7)


def block_device(path: Path) -> None:
    """A disk that is not there."""
    _device(path, stat.S_IFBLK, 259, 4095)


def read_pipe(path: Path) -> Check:
    """A named pipe with a reader."""
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()

    def check() -> bytes:
        assert stat.S_ISFIFO(path.lstat().st_mode)
        reader.join(LONG)
        return found[0]

    return check


def _link(path: Path) -> Check:
    """A link to a link to a file in another folder."""
    folder = path.with_name(f"{path.name} elsewhere")
    folder.mkdir()
    (folder / "target").touch()
    (folder / "between").symlink_to("target")
    path.symlink_to(folder / "between")

    def check() -> bytes:
        assert path.readlink() == folder / "between" and (folder / "between").readlink() == Path("target")
        assert sorted(one.name for one in folder.iterdir()) == ["between", "target"]
        return (folder / "target").read_bytes()

    return check


def _private(path: Path) -> Check:
    """A file that only its owner may read."""
    path.touch()
    path.chmod(0o600)

    def check() -> bytes:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        return path.read_bytes()

    return check


#: what stands there -> makes it, and returns its check; into the first no byte is kept
SPECIAL: dict[str, Callable[[Path], Check]] = {
    "device": null_device,
    "pipe": read_pipe,
    "link": _link,
    "private file": _private,
}
