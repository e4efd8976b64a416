"""Files: written so that a reader sees the old content or the new, never a part; read within limits.

Every reader of files that may come from a stranger opens them here: only regular files are opened, and what
a file takes in memory, also after decompression, is known before it is read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from schedgym.errors import InvalidFile

__all__ = ["atomic_write", "open_regular", "read_archive", "read_text"]


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
        except InvalidFile:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise  # the file system's own complaint; an impossible place in the file is damage
            # what damage makes of an archive is open-ended: zlib, struct, zipfile, tokenizer errors
            reason = " ".join(str(error).split())[:200]
            raise InvalidFile(f"{path}: not a readable numpy archive: {reason}") from None


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path`` that replaces it when the block ends without an error.

    Args:
        path: the file to write; its folder must exist.
        mode: "w" (UTF-8 text) or "wb".

    Yields:
        the open file. On an error the temporary file is removed and ``path`` stays as it was.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
