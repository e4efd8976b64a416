"""The one place where schedgym touches numba's machinery.

``kernel`` compiles an entry point: called from Python, cached on disk. ``helper`` compiles what kernels
call: inlined, and without reference counting (four times faster, because arrays in named tuples are
otherwise counted at every call); a helper must not allocate.

numba keys a cached kernel on its own source file only, and would keep serving a kernel whose helper in
another file has changed. Here the key is the contents of every file that the kernel may be made of: its own
and those that it imports, directly or not (:func:`source_stamp`).
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import codegen, compiler, compiler_machinery, typed_passes

__all__ = ["COMPILED", "helper", "kernel", "pure_kernel", "record_dtype", "source_files", "source_stamp"]

# their annotations are partial, and leave out the options that matter here
_numba: Any = numba
_codegen: Any = codegen
_compiler: Any = compiler
_LoweringPass: Any = compiler_machinery.LoweringPass
_register_pass: Any = compiler_machinery.register_pass
_AnnotateTypes: Any = typed_passes.AnnotateTypes

F = TypeVar("F", bound=Callable[..., Any])
COMPILED = not _numba.config.DISABLE_JIT

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


def kernel(function: F) -> F:
    """Compile ``function`` at its first call and cache the machine code on disk."""
    return _kernel(function, {})


def pure_kernel(function: F) -> F:
    """A :func:`kernel` that allocates nothing, and so counts no references, not even of its arguments."""
    return _kernel(function, {"_nrt": False})


def _kernel(function: F, options: dict[str, Any]) -> F:
    # without the interpreter's lock: blocks of environments are advanced side by side
    options = {"no_cfunc_wrapper": True, "error_model": "numpy", "nogil": True, **options}
    try:
        dispatcher: Any = _numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package nor a home can be written to: compile in every process
        dispatcher = _numba.njit(**options)(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:  # none with NUMBA_DISABLE_JIT=1
        cache = dispatcher._cache
        index_key = cache._index_key
        cache._index_key = lambda kinds, codegen: (*index_key(kinds, codegen), _fields(kinds))
        cache.save_overload = functools.partial(_save_or_warn, cache.save_overload, cache.cache_path)
        cache_file._load_index = functools.partial(_index_or_none, cache_file._load_index)
        cache_file._source_stamp = source_stamp(Path(function.__code__.co_filename).resolve())
    return dispatcher


def _save_or_warn(save: Callable[..., None], folder: str, *given: Any) -> None:
    """Keep a compiled kernel on disk; where that cannot be, it serves this process only."""
    try:
        save(*given)
    except OSError as error:
        _warn_once(folder, error.strerror or str(error))


@functools.cache
def _warn_once(folder: str, reason: str) -> None:
    text = f"{folder}: compiled kernels cannot be kept ({reason}): every process compiles its own"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _index_or_none(load: Callable[[], Any]) -> Any:
    """The index of a kernel's cache; empty if it names classes that are no more, as after an upgrade."""
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def _fields(kinds: Any) -> tuple[Any, ...]:
    """The fields of all named tuples among the types of arguments.

    A named tuple may be declared in a file that the kernel's own does not import, and change the order of
    fields of one type.
    """
    bundles = [kind for kind in kinds if hasattr(kind, "instance_class")]
    return tuple((kind.instance_class._fields, _fields(kind.types)) for kind in bundles)


class _NoEnvironment:
    """Stand-in for a code generator: a function that is only inlined has no environment to set."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


class _InlinedLibrary(_codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into kernels and never called by itself: no machine code is made of it.

    Making it would take half of the time in which a kernel of thirty helpers is compiled.
    """

    codegen = _NoEnvironment()

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address, as the function is never called."""
        return 0

    def finalize(self) -> None:
        """Link the helpers that the code calls; no machine code is made."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@_register_pass(mutates_CFG=False, analysis_only=True)
class _InlineOnly(_LoweringPass):  # type: ignore[misc]
    """Let the passes that follow lower the function into an :class:`_InlinedLibrary`."""

    _name = "schedgym_inline_only"

    def __init__(self) -> None:
        _LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Set the library."""
        state.library = _InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class _HelperCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """numba's compiler, with :class:`_InlinedLibrary` as the library of the code."""

    def define_pipelines(self) -> list[Any]:
        """The pipeline of nopython mode with one pass more."""
        pipeline = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_InlineOnly, _AnnotateTypes)
        pipeline.finalize()
        return [pipeline]


def helper(function: F) -> F:
    """Compile ``function`` into the kernels that call it; it cannot be called from Python."""
    # without the wrappers that nobody calls a kernel compiles in two thirds of the time
    return _numba.njit(
        _nrt=False,
        forceinline=True,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        error_model="numpy",
        pipeline_class=_HelperCompiler,
    )(function)


def record_dtype(*fields: tuple[str, Any]) -> np.dtype[Any]:
    """A structured dtype whose elements have their fields as attributes, compiled and uncompiled."""
    return np.dtype((np.record, np.dtype(list(fields), align=True)))
