"""Public data sets by name: downloaded once into the user's cache; their SHA-256 is checked if it is known.

The environment variable ``SCHEDGYM_DATA`` names a folder that is used instead of the cache; a folder
that already holds the files may be read-only and needs no network and no pooch.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from schedgym.core.files import open_regular
from schedgym.errors import InvalidParameter, TraceFormatError, UnknownName
from schedgym.extras import require
from schedgym.traces import formats
from schedgym.traces.base import DataSet

ENVIRONMENT_VARIABLE = "SCHEDGYM_DATA"
PATIENCE, SLOWEST = 60.0, 20_000.0  # s that a download may take, and more for each so many bytes of the file
SILENCE = 30.0  # s in which a server must send something
PIECE = 1024  # bytes that are read at once


@functools.cache
def known_sets() -> dict[str, DataSet]:
    """Name -> data set, of all formats.

    Raises:
        InvalidParameter: when two formats have a data set of the same name.
    """
    found: dict[str, DataSet] = {}
    for format in formats().values():
        for name, one in format.files.items():
            if name in found:
                raise InvalidParameter(
                    f"data set {name!r} of {format.name}: there is another one of this name"
                )
            found[name] = one
    return found


def fetch(name: str) -> Path:
    """The local path of a data set, downloaded if it is not there yet.

    Args:
        name: a key of :func:`known_sets`.

    Returns:
        the file, in the folder that ``SCHEDGYM_DATA`` names, else in the user's cache.

    Raises:
        UnknownName: when there is no such data set.
        TraceFormatError: when ``SCHEDGYM_DATA`` holds the file with another content; it is left as it is.
        OSError: when the download fails, is too long or too slow, yields another content, or cannot be
            written.
        gymnasium.error.DependencyNotInstalled: when a download is needed and pooch is not installed.
    """
    if name not in known_sets():
        raise UnknownName("data set", name, known_sets())
    known = known_sets()[name]
    folder = os.environ.get(ENVIRONMENT_VARIABLE)
    if folder and (held := Path(folder).expanduser() / known.file).exists():
        found = sha256(held) if known.sha256 else ""
        if found != known.sha256:  # the user's own file: pooch would overwrite it
            raise TraceFormatError(held, 0, "", f"SHA-256 must be {known.sha256}, got {found}")
        return held
    pooch = require("pooch")
    cache = pooch.create(
        path=pooch.os_cache("schedgym"),
        base_url="",
        env=ENVIRONMENT_VARIABLE,
        registry={known.file: f"sha256:{known.sha256}" if known.sha256 else None},
        urls={known.file: known.url},
    )

    def download(url: str, path: str, cache: Any) -> None:
        with open(path, "wb") as stream:
            _within(PATIENCE + known.size / SLOWEST, lambda: _download(url, stream, known.size))

    try:
        return Path(cache.fetch(known.file, downloader=download))
    except (OSError, ValueError) as error:  # pooch raises ValueError for a wrong hash
        cause: BaseException = error
        while earlier := cause.__cause__ or cause.__context__:
            cause = earlier  # the rest only wraps it, in 400 characters
        reason = " ".join((getattr(cause, "strerror", None) or str(cause)).split())
        where = folder or f"a folder that the environment variable {ENVIRONMENT_VARIABLE} names"
        raise OSError(
            f"{name}: cannot fetch {known.url} into {cache.abspath}: {reason}; "
            f"without a network, put {known.file} into {where}"
        ) from error


def _within(seconds: float, work: Callable[[], None]) -> None:
    """Do some work in a thread, which is left behind if it takes longer.

    Nothing else limits it as a whole: a server that sends a byte now and then never lets a read time out.
    """
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise OSError(f"took longer than {seconds:.0f} s")
    if failed:
        raise failed[0]


def _download(url: str, stream: BinaryIO, size: int) -> None:
    """Write what a server sends into a file, until that is closed, or there are more than ``size`` bytes."""
    with require("requests").get(url, stream=True, timeout=SILENCE) as response:
        response.raise_for_status()
        told = response.headers.get("Content-Length", "")
        if told.isdecimal() and int(told) > size:
            raise OSError(f"has {int(told):,} bytes, more than {size:,}")
        for piece in response.iter_content(PIECE):
            if stream.tell() + len(piece) > size:
                raise OSError(f"sends more than {size:,} bytes")
            stream.write(piece)


def sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
