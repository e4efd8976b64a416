"""Files: written so that a reader sees the old content or the new, never a part; read within limits.

Every output is written here: nothing that is no regular file is replaced, and links are followed.

Every reader of files that may come from a stranger opens them here: only regular files are opened, and what
a file takes in memory, also after decompression, is known before it is read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from schedgym.errors import InvalidFile, InvalidParameter


def open_regular(path: str | Path) -> io.BufferedReader:
    """Open a regular file to read bytes.

    Raises:
        InvalidFile: for a pipe or a device, which could be waited for, or read, without end.
        OSError: if it cannot be opened, or is a folder.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe waits for nobody
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise InvalidFile(f"{path}: is not a regular file")


def read_text(path: str | Path, most: int) -> str:
    """The text of a UTF-8 file of at most ``most`` bytes.

    Raises:
        InvalidFile: if it is longer, or no regular file.
        OSError: if it cannot be read.
        UnicodeDecodeError: if it is not UTF-8.
    """
    with open_regular(path) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise InvalidFile(f"{path}: longer than {most} bytes")
    return data.decode()


def read_archive(path: str | Path, most: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a numpy archive (npz) of at most ``most`` bytes, packed and unpacked.

    Raises:
        InvalidFile: if it holds more, is damaged, or is no regular file or no archive.
        OSError: if it cannot be read.
    """
    with open_regular(path) as stream:  # what cannot be opened is no damaged file
        try:
            entries = zipfile.ZipFile(stream).infolist()
            inside = max(sum(entry.file_size for entry in entries), os.fstat(stream.fileno()).st_size)
            if inside > most:
                raise InvalidFile(f"{path}: holds {inside} bytes, more than {most}")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as archive:
                names = archive.files
                if twice := [name for name in names if names.count(name) > 1]:
                    raise InvalidFile(f"{path}: {twice[0][:40]!r}: given twice")
                return {name: np.asarray(archive[name]) for name in names}
        except Exception as error:
            system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
            if system or isinstance(error, InvalidFile):
                raise  # the file system's own complaint; an impossible place in the file is damage
            # what damage makes of an archive is open-ended: zlib, struct, zipfile, tokenizer errors
            reason = " ".join(str(error).split())[:200]
            raise InvalidFile(f"{path}: not a readable numpy archive: {reason}") from None


def check_output(path: str | Path | None, suffixes: Iterable[str] = ()) -> None:
    """Refuse a file that :func:`atomic_write` could not write, before any work is done for it.

    Args:
        path: the file; None: nothing is to be written.
        suffixes: what its name must end in, small letters; none: anything.

    Raises:
        InvalidParameter: in one line, for another suffix, and where nothing can be written.
    """
    if path is None:
        return
    path, suffixes = Path(path), tuple(suffixes)
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidParameter(f"{path}: must end in {', '.join(suffixes)}")
    there = _find(path)
    kind = stat.S_IFREG if there is None else stat.S_IFMT(there.st_mode)
    if kind == stat.S_IFDIR:
        raise InvalidParameter(f"{path}: is a folder")
    if _descriptor(path) is not None:
        return
    if kind not in (stat.S_IFREG, stat.S_IFIFO, stat.S_IFCHR):
        raise InvalidParameter(f"{path}: is no file, pipe or character device")
    if there is not None and not os.access(path, os.W_OK):
        raise InvalidParameter(f"{path}: cannot be written to")
    if kind != stat.S_IFREG:
        return
    folder = _target(path).parent
    if not folder.is_dir():
        raise InvalidParameter(f"{path}: there is no folder {str(folder)!r}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidParameter(f"{path}: the folder {str(folder)!r} cannot be written to")


def _find(path: Path) -> os.stat_result | None:
    """What is at the end of all links; None: nothing yet."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # links in a circle, a name that is too long, ...
        raise InvalidParameter(f"{path}: {error.strerror}") from None


def _target(path: Path) -> Path:
    """What a symbolic link leads to; any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _descriptor(path: Path) -> int | None:
    """The open file of this process that a path such as /dev/stdout or /dev/fd/3 leads to, if it does."""
    own = Path(f"/proc/{os.getpid()}/fd")
    while path.is_symlink():
        if path.parent.resolve() == own:
            return int(path.name)
        path = path.parent / path.readlink()
    return None


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file whose content becomes that of ``path`` when the block ends without an error.

    It replaces a regular file in one step, and takes over its mode and owner; of a symbolic link, the file
    that it leads to. Into a pipe, a character device or an open file of this process (/dev/stdout) the
    content is written; a pipe that nobody reads is waited for.

    Args:
        path: the file to write; its folder must exist.
        mode: "w" (UTF-8 text) or "wb".

    Yields:
        the open file. On an error it is removed, and ``path`` stays as it was.

    Raises:
        InvalidParameter: see :func:`check_output`; also for a pipe or a device that takes no more.
    """
    path = Path(path)
    check_output(path)
    there, descriptor = _find(path), _descriptor(path)
    if descriptor is None and (there is None or stat.S_ISREG(there.st_mode)):
        yield from _replacement(_target(path), there, mode)
        return
    how: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    with tempfile.TemporaryFile(f"{mode}+", **how) as content:
        yield content
        content.seek(0)
        print(end="", flush=True)  # what was printed before comes first
        try:
            target = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
            with os.fdopen(target, mode, **how) as stream:
                shutil.copyfileobj(content, stream)
        except OSError as error:
            if descriptor is not None and isinstance(error, BrokenPipeError):
                raise  # as if it were printed
            raise InvalidParameter(f"{path}: {error.strerror}") from None


def _replacement(path: Path, there: os.stat_result | None, mode: str) -> Iterator[IO[Any]]:
    """Yield a new file, as accessible as the one that is there, which then takes its place."""
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if there is None else 0o600)
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as stream:
            if there is not None:
                with contextlib.suppress(OSError):  # only root gives files away: another's becomes ours
                    os.fchown(handle, there.st_uid, there.st_gid)
                os.fchmod(handle, there.st_mode & 0o777)
            yield stream
            stream.flush()
            os.fsync(handle)
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # what writes into an open file, on a full disk, names none
        raise
