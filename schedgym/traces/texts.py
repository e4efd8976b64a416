"""Text files, as they are or packed: in lines or blocks, with limits on what is taken from them."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import importlib
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from schedgym.core.files import open_regular
from schedgym.errors import InvalidFile, TraceFormatError
from schedgym.traces.base import MALFORMED, Fault

try:
    zstd: Any = importlib.import_module("compression.zstd")  # Python 3.14
except ImportError:
    zstd = None

#: a longer line [bytes] is malformed: no format comes near it, and memory stays bounded
LONGEST_LINE = 1 << 16

#: limits of one file: the largest public traces have a tenth of them
MOST_LINES, MOST_BYTES = 10**8, 2**35
#: a packed file that expands further is no table; checked after its first bytes
MOST_RATIO, START = 200, 2**23

#: kind of a packed file -> its first bytes, and how its name may end
PACKED = {
    "gzip": (b"\x1f\x8b", ".gz"),
    "bzip2": (b"BZh", ".bz2"),
    "xz": (b"\xfd7zXZ\x00", ".xz"),
    "zip": (b"PK\x03\x04", ".zip"),
    "Zstandard": (b"\x28\xb5\x2f\xfd", ".zst"),
    "7z": (b"7z\xbc\xaf\x27\x1c", ".7z"),
    "rar": (b"Rar!", ".rar"),
}
TARS = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2|txz)$", re.IGNORECASE)


def first_line(path: str | Path) -> str:
    """The first line of a (compressed) text file, without its end; "" for an empty file.

    Blank lines do not count, nor do those that begin with "#".

    Raises:
        FileNotFoundError: when there is no such file.
        TraceFormatError: when the line is not text.
    """
    number, line = next(text_lines(Path(path), b"#"), (0, ""))
    if isinstance(line, Fault):
        raise TraceFormatError(path, number, "", line.detail)
    return line


def is_json(path: str | Path) -> bool:
    """Return True if a (compressed) text file begins as JSON; a damaged one is left to its reader.

    Raises:
        FileNotFoundError: when there is no such file.
    """
    try:
        start = next(_pieces(Path(path), "read", 1 << 12), b"")
    except TraceFormatError:
        return False
    return start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")


def raw_lines(path: Path) -> Iterator[bytes]:
    """Lines with their ends; of a line that is too long only the first LONGEST_LINE + 1 bytes."""
    line = b""
    for piece in _pieces(path, "readline", LONGEST_LINE + 1):
        line = line or piece
        if piece.endswith(b"\n"):
            yield line
            line = b""
    if line:
        yield line


def text_lines(path: Path, comment: bytes = b"") -> Iterator[tuple[int, str | Fault]]:
    """The number and text of each line that is neither blank nor a comment, or what is wrong with it."""
    for number, raw in enumerate(raw_lines(path), 1):
        first = number == 1
        if comment and raw.removeprefix(codecs.BOM_UTF8 * first).startswith(comment):
            continue
        try:
            text = decode(raw, first)
        except ValueError as error:
            yield number, Fault(MALFORMED, "", str(error))
        else:
            if text.strip():
                yield number, text


def text_blocks(path: str | Path, size: int) -> Iterator[str]:
    """A (compressed) text file in blocks of about ``size`` bytes.

    Raises:
        FileNotFoundError: when there is no such file.
        TraceFormatError: when it is not text, damaged or too large.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        for block in _pieces(Path(path), "read", size):
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise TraceFormatError(path, 0, "", "not UTF-8 text") from None


def _pieces(path: Path, method: str, size: int) -> Iterator[bytes]:
    """What "read" or "readline" of the unpacked file gives until its end, at most so many bytes at once."""
    number, taken, kind = 0, 0, ""
    lines = begins = method == "readline"
    try:
        with open_trace(path) as packed, _unpacked(packed, path, kind := _kind(packed, path)) as stream:
            read = getattr(stream, method)
            while piece := read(size):
                number, taken = number + begins, taken + len(piece)
                check_size(path, number, taken, packed)
                yield piece
                begins = lines and piece.endswith(b"\n")
    except _DAMAGE as error:
        if not kind or getattr(error, "errno", None) is not None:  # not the content, but the disk
            raise
        what = "cut off" if isinstance(error, EOFError) else f"corrupt: {error}"
        raise TraceFormatError(path, number + lines, "", f"the {kind} file is {what}") from None


#: what reading a damaged packed file raises
_DAMAGE = (
    *(EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError),
    UnicodeDecodeError,  # in the name of a zip's file
    *((zstd.ZstdError,) if zstd else ()),
)


def check_size(path: Path, line: int, taken: int, packed: IO[bytes]) -> None:
    """Raise TraceFormatError if so many bytes are too many, unpacked from a file up to its position."""
    if line > MOST_LINES or taken > MOST_BYTES:
        what = f"{MOST_LINES} lines" if line > MOST_LINES else f"{MOST_BYTES} bytes"
        raise TraceFormatError(path, line, "", f"the file has more than {what}")
    if taken > START and taken > MOST_RATIO * packed.tell():
        reason = f"the packed file expands to more than {MOST_RATIO} times its size"
        raise TraceFormatError(path, line, "", reason)


def open_trace(path: Path) -> IO[bytes]:
    """A regular file, open to read; TraceFormatError and FileNotFoundError name it."""
    try:
        return open_regular(path)
    except InvalidFile as error:
        raise TraceFormatError(path, 0, "", str(error).removeprefix(f"{path}: ")) from None
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "no such trace file", str(path)) from None


def _kind(packed: IO[bytes], path: Path) -> str:
    """Return the compression of a file, by its first bytes, or else by its name; "" if there is none."""
    head = packed.read(8)
    packed.seek(0)
    for kind, (first, _) in PACKED.items():
        if head.startswith(first):
            return kind
    return next((kind for kind, (_, end) in PACKED.items() if path.suffix.lower() == end), "")


def _unpacked(packed: IO[bytes], path: Path, kind: str) -> IO[bytes]:
    """The content of a file; TraceFormatError for what is not one packed text file."""
    if TARS.search(path.name):
        raise TraceFormatError(path, 0, "", "is a tar archive: unpack it, and give one of its files")
    if kind == "zip":
        return _zipped(packed, path)
    if kind == "Zstandard" and zstd is None:
        raise TraceFormatError(path, 0, "", "is packed by Zstandard, which needs Python 3.14: unpack it")
    if kind in ("7z", "rar"):
        raise TraceFormatError(path, 0, "", f"is a {kind} archive, which is not read: unpack it")
    modules: dict[str, Any] = {"gzip": gzip, "bzip2": bz2, "xz": lzma, "Zstandard": zstd}
    return cast(IO[bytes], modules[kind].open(packed)) if kind else packed


def _zipped(packed: IO[bytes], path: Path) -> IO[bytes]:
    """The only file of a zip archive."""
    archive = zipfile.ZipFile(packed)
    files = [
        one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")
    ]
    if len(files) != 1:
        reason = f"the zip archive has {len(files)} files: unpack it, and give one of them"
        raise TraceFormatError(path, 0, "", reason)
    if files[0].flag_bits & 1:
        raise TraceFormatError(path, 0, "", "the zip archive needs a password: unpack it")
    return archive.open(files[0])


def decode(raw: bytes, first: bool = False) -> str:
    """A line as text, without its end (the first: and byte order mark); ValueError says what is wrong."""
    if len(raw) > LONGEST_LINE and not raw.endswith(b"\n"):
        raise ValueError(f"line is longer than {LONGEST_LINE} bytes")
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (byte {error.start + 1} of the line)") from None
    return text.removesuffix("\n").removesuffix("\r")
