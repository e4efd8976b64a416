"""The cache of compiled kernels: what they are known by, and those that the package brings.

numba keys a cached kernel on its own source file only, and would keep serving a kernel whose helper in
another file has changed. Here the key is the contents of every file that the kernel may be made of: its own
and those that it imports, directly or not (:func:`source_stamp`).

A wheel may bring kernels (``make wheel``), compiled for all processors of the level x86-64-v3. They are found
in the folder ``kernels`` of the package and used where processor, numba, Python and sources fit; elsewhere
kernels are compiled as usual.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba.core import caching, config

__all__ = ["LEVEL", "SHIPPED", "SHIPPING", "KernelCache", "source_files", "source_stamp"]

# their annotations are partial
_binding: Any = binding
_config: Any = config
_FunctionCache: Any = caching.FunctionCache
_CompileResultCacheImpl: Any = caching.CompileResultCacheImpl
_IndexDataCacheFile: Any = caching.IndexDataCacheFile
_UserWideCacheLocator: Any = caching.UserWideCacheLocator

#: folder of the kernels that the package brings
SHIPPED = Path(__file__).parents[1] / "kernels"
#: the processors that they are for, as LLVM names them, and features that all of these have
LEVEL = "x86-64-v3"
FEATURES = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
#: True while they are made: then no other ones are read or written
SHIPPING = os.environ.get("SCHEDGYM_SHIP_KERNELS") == "1"

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
    found: set[Path] = set()
    left = [(file, "")]
    while left:
        path, package = left.pop()
        if path in found:
            continue
        found.add(path)
        for name in _contents(path)[1]:
            module = sys.modules.get(name)
            source = getattr(module, "__file__", None)
            if source and name.partition(".")[0] in ("schedgym", package or _package(path)):
                left.append((Path(source).resolve(), package or _package(path)))
    return found


def _package(file: Path) -> str:
    """The name of the package, or module, at the top that a file belongs to."""
    while (file.parent / "__init__.py").exists():
        file = file.parent
    return file.stem


def source_stamp(file: Path) -> str:
    """The digest of all files whose code may be part of a kernel in ``file``."""
    digests = sorted(_contents(path)[0] for path in source_files(file))
    return hashlib.sha256("".join(digests).encode()).hexdigest()


class _Index(_IndexDataCacheFile):  # type: ignore[misc]
    """numba's index of the machine code of a kernel, which is empty if it cannot be read or understood."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError, OSError):  # as when it names classes from before an upgrade
            return {}


class _Unwritable(_UserWideCacheLocator):  # type: ignore[misc]
    """The user's cache, named where no folder can be written to; numba would have no cache at all."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        """Return the locator of a function in a file, and None for one that is in none."""
        return cls(function, file) if os.path.exists(file) else None


class _Implementation(_CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (*_CompileResultCacheImpl._locator_classes, _Unwritable)


class KernelCache(_FunctionCache):  # type: ignore[misc]
    """The cache of a kernel: machine code in the user's cache, and that of the package.

    Attributes:
        keeps: True if compiled kernels are written to disk; False if no folder can be written to.

    Raises:
        RuntimeError: for a function that is in no file.
    """

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.keeps = not isinstance(self._impl.locator, _Unwritable)
        stamp = source_stamp(Path(function.__code__.co_filename).resolve())
        base = self._impl.filename_base
        self._shipped = _Index(str(SHIPPED / function.__module__), base, stamp)
        self._cache_file = self._shipped if SHIPPING else _Index(self._cache_path, base, stamp)

    def _index_key(self, kinds: Any, codegen: Any) -> tuple[Any, ...]:
        # NUMBA_BOUNDSCHECK=1 must not find kernels that check nothing
        return (*super()._index_key(kinds, codegen), _fields(kinds), bool(_config.BOUNDSCHECK))

    def _load_overload(self, kinds: Any, target_context: Any) -> Any:
        found = super()._load_overload(kinds, target_context)
        if found is not None or not _fits():
            return found
        data = self._shipped.load(self._shipped_key(kinds, target_context))
        return None if data is None else self._impl.rebuild(target_context, data)

    def _shipped_key(self, kinds: Any, target_context: Any) -> tuple[Any, ...]:
        _, _, *rest = self._index_key(kinds, target_context.codegen())
        return kinds, _portable(), *rest

    def holds(self, kinds: Any, target_context: Any) -> bool:
        """Return True if there is machine code for arguments of these types."""
        own = self._index_key(kinds, target_context.codegen()) in self._cache_file._load_index()
        return own or (_fits() and self._shipped_key(kinds, target_context) in self._shipped._load_index())

    def save_overload(self, kinds: Any, data: Any) -> None:
        """Keep a compiled kernel on disk; where that cannot be, it serves this process only."""
        folder = self._cache_file._cache_path
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            super().save_overload(kinds, data)
        except OSError as error:
            _warn(folder, error.strerror or str(error))


_warned: set[str] = set()


def _warn(folder: str, reason: str) -> None:
    """Say once in a process that kernels cannot be kept, and why; each package has a folder of its own."""
    text = f"{folder}: compiled kernels cannot be kept ({reason}): every process compiles its own"
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
    if not SHIPPED.is_dir() or not _binding.get_process_triple().startswith("x86_64"):
        return False
    features = _binding.get_host_cpu_features()
    return all(features.get(name, False) for name in FEATURES)


@functools.cache
def _portable() -> tuple[str, str, str]:
    """Return numba's key for the processors of LEVEL, with NUMBA_CPU_NAME=LEVEL and no NUMBA_CPU_FEATURES."""
    return _binding.get_process_triple(), LEVEL, ""
