"""The cache of compiled kernels: what they are known by, and those that the package brings.

numba keys a cached kernel on its own source file only, and would keep serving a kernel whose helper in
another file has changed. Here a kernel is known by its module and its qualified name, and the key has the
contents of every file that it may be made of: its own and those that this imports, directly or not
(:func:`source_stamp`). What has no name of its own, such as a lambda, is compiled in each process.

A wheel may bring kernels (``make wheel``), compiled for all processors of the level x86-64-v3. They are found
in the folder ``kernels`` of the package and used where processor, numba, Python and sources fit; elsewhere
kernels are compiled as usual.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import pickle
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core import caching, config, serialize

from schedgym.core.files import open_regular
from schedgym.errors import InvalidFile

#: folder of the kernels that the package brings
SHIPPED = Path(__file__).parents[1] / "kernels"
#: the processors that they are for, as LLVM names them, and features that all of these have
LEVEL = "x86-64-v3"
FEATURES = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
#: True while they are made: then no other ones are read or written
SHIPPING = os.environ.get("SCHEDGYM_SHIP_KERNELS") == "1"

#: how a file of machine code begins
MAGIC = b"schedgym kernel 1\n"
#: permission to write to a folder, for its group and for all others
OTHERS = 0o022
UNSAFE = "belongs to another user, or others may write to it"

#: imports at the top level of a file, where the names that its kernels use come from
IMPORT = re.compile(r"^from ([\w.]+) import (\([^)]*\)|[^\n(]+)|^import ([\w.]+)", re.MULTILINE)


@functools.cache
def _contents(file: Path) -> tuple[str, tuple[str, ...]]:
    """The digest of a file, and the modules that it may import at its top level."""
    text = file.read_text(encoding="utf-8")
    named: list[str] = []
    for source, names, module in IMPORT.findall(text):
        named += [module or source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))]
    return hashlib.sha256(text.encode()).hexdigest(), tuple(named)


def source_files(file: Path) -> set[Path]:
    """The file of a kernel and the files of its package and of schedgym that it imports, directly or not."""
    package = _package(file)
    found, left = {str(file): file}, [file]
    while left:
        for name in _contents(left.pop())[1]:
            source = getattr(sys.modules.get(name), "__file__", None)
            if source and source not in found and name.partition(".")[0] in ("schedgym", package):
                found[source] = Path(source).resolve()
                left.append(found[source])
    return set(found.values())


def _package(file: Path) -> str:
    """The name of the package, or module, at the top that a file belongs to."""
    while (file.parent / "__init__.py").exists():
        file = file.parent
    return file.stem


def source_stamp(file: Path) -> str:
    """The digest of all files whose code may be part of a kernel in ``file``."""
    digests = sorted(_contents(path)[0] for path in source_files(file))
    return hashlib.sha256("".join(digests).encode()).hexdigest()


class _Unwritable(caching.UserWideCacheLocator):  # type: ignore[misc]
    """The user's cache, named where no folder can be written to; numba would have no cache at all."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        """Return the locator of a function in a file, and None for one that is in none."""
        return cls(function, file) if os.path.exists(file) else None


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (*caching.CompileResultCacheImpl._locator_classes, _Unwritable)


class _CodeFiles:
    """The machine code of a function on disk: one file for the types of the arguments and all else in a key.

    A file is named by the hash of key and stamp, and holds ``MAGIC``, the SHA-256 of what follows, and the
    pickle of stamp, key and code. It is renamed when it is written as a whole, so that a full disk or a
    process that is killed leaves no code under a name that is not its own; and nothing of a file is used that
    is not what was written.

    Args:
        folder: where the files are, or will be.
        function: the function.
        stamp: the digest of its sources.
        like: None: the folder must belong to the user and be writable by nobody else, as pickles run code;
            a folder: it must belong to the same user, and be writable by nobody else than that folder.
    """

    def __init__(self, folder: Path, function: Callable[..., Any], stamp: str, like: Path | None) -> None:
        self.folder, self._like = folder, like
        self._stamp = f"numba {numba.__version__}, {function.__module__}.{function.__qualname__}, {stamp}"
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self._base = f"{name}.{sys.implementation.cache_tag}."
        self._fresh = f"{self._base}{stamp[:16]}."

    def _path(self, key: Any) -> Path:
        name = hashlib.sha256(repr((self._stamp, key)).encode()).hexdigest()[:32]
        return self.folder / f"{self._fresh}{name}.nbc"

    def is_safe(self) -> bool:
        """Return True if nobody else can have put files into the folder."""
        try:
            own = self.folder.stat()
        except OSError:  # it is not there yet
            return True
        if self._like is not None:
            like = self._like.stat()
            return own.st_uid == like.st_uid and not own.st_mode & ~like.st_mode & OTHERS
        return not hasattr(os, "geteuid") or (own.st_uid == os.geteuid() and not own.st_mode & OTHERS)

    def load(self, key: Any) -> Any:
        """The code for a key; None if there is none that can be used."""
        path = self._path(key)
        try:
            with open_regular(path) as stream:
                if not self.is_safe():
                    _warn(f"{self.folder}: compiled kernels are not read: the folder {UNSAFE}")
                    return None
                content = stream.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, InvalidFile):  # it cannot be read, or is no regular file
            content = b""
        start = len(MAGIC) + hashlib.sha256().digest_size
        if content[:start] == MAGIC + hashlib.sha256(content[start:]).digest():
            try:
                stamp, own, data = pickle.loads(content[start:])
            except (AttributeError, ImportError):  # it names what is no longer there
                return None
            if stamp == self._stamp and self._path(own) == path:
                return data if own == key else None  # types may be written alike and differ
        _warn(f"{path}: damaged: the kernel is compiled again")
        return None

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for a key, and remove that of other sources.

        Raises:
            OSError: if it cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.is_safe():
            raise PermissionError(errno.EPERM, f"the folder {UNSAFE}")
        content = serialize.dumps((self._stamp, key, data))
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=self._fresh, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, self._path(key))
        except BaseException:
            os.unlink(temporary)
            raise
        for path in self.folder.iterdir():
            if path.name.startswith(self._base) and not path.name.startswith(self._fresh):
                with contextlib.suppress(OSError):
                    path.unlink()


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of a kernel: machine code in the user's cache, and that of the package.

    Raises:
        RuntimeError: for a function that is in no file, or is not the only one of its name.
    """

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        if "<" in function.__qualname__:
            raise RuntimeError(f"{function.__qualname__}: has no name of its own")
        stamp = source_stamp(Path(function.__code__.co_filename).resolve())
        shipped = SHIPPED / function.__module__
        self._shipped = _CodeFiles(shipped, function, stamp, SHIPPED.parent)
        # a folder of its own in __pycache__, to which a group may write
        own = _CodeFiles(Path(self._cache_path, "kernels"), function, stamp, None)
        self._cache_file = self._shipped if SHIPPING else own

    def _index_key(self, kinds: Any, codegen: Any) -> tuple[Any, ...]:
        # NUMBA_BOUNDSCHECK=1 must not find kernels that check nothing
        return kinds, codegen.magic_tuple(), _fields(kinds), bool(config.BOUNDSCHECK)

    def _load_overload(self, kinds: Any, target_context: Any) -> Any:
        found = super()._load_overload(kinds, target_context)
        if found is not None or not _fits():
            return found
        data = self._shipped.load(self._shipped_key(kinds, target_context))
        return None if data is None else self._impl.rebuild(target_context, data)

    def _shipped_key(self, kinds: Any, target_context: Any) -> tuple[Any, ...]:
        _, _, *rest = self._index_key(kinds, target_context.codegen())
        return kinds, _portable(), *rest

    def save_overload(self, kinds: Any, data: Any) -> None:
        """Keep a compiled kernel on disk; where that cannot be, it serves this process only."""
        if not self._impl.check_cachable(data):
            return
        try:
            self._cache_file.save(self._index_key(kinds, data.codegen), self._impl.reduce(data))
        except OSError as error:
            reason = error.strerror or str(error)
            _warn(
                f"{self._cache_file.folder}: compiled kernels cannot be kept ({reason}): "
                "every process compiles its own"
            )


_warned: set[str] = set()


def _warn(text: str) -> None:
    """Say once in a process what is wrong with the cache; each package has a folder of its own."""
    if not _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _fields(kinds: Any) -> tuple[Any, ...]:
    """The fields of all named tuples among the types of arguments.

    A named tuple may be declared in a file that the kernel's own does not import, and change the order of
    fields of one type.
    """
    bundles = [kind for kind in kinds if hasattr(kind, "instance_class")]
    return tuple((kind.instance_class._fields, _fields(kind.types)) for kind in bundles)


@functools.cache
def _fits() -> bool:
    """Return True if the package brings kernels, and this processor can run them."""
    if not SHIPPED.is_dir() or not binding.get_process_triple().startswith("x86_64"):
        return False
    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in FEATURES)


@functools.cache
def _portable() -> tuple[str, str, str]:
    """Return numba's key for the processors of LEVEL, with NUMBA_CPU_NAME=LEVEL and no NUMBA_CPU_FEATURES."""
    return binding.get_process_triple(), LEVEL, ""
