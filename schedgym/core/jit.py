"""The one place where schedgym touches numba's machinery.

``kernel`` compiles an entry point: called from Python, cached on disk. ``helper`` compiles what kernels
call: inlined, and without reference counting (four times faster, because arrays in named tuples are
otherwise counted at every call); a helper must not allocate.

numba keys a cached kernel on its own source file only, and would keep serving a kernel whose helper in
another file has changed. Here the key is the contents of every file that the kernel may be made of: its own
and those that it imports, directly or not (:func:`source_stamp`).

A kernel that is called for a single environment must not spend its time on taking forty arrays apart
(7 us, where the step itself takes 0.3): ``pack`` writes the addresses and shapes of bundles (named tuples
of arrays) into one table, once, and inside the kernel an ``unpacker`` makes the bundles again (0.1 us).
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import codegen, compiler, compiler_machinery, typed_passes, types
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = [
    "B1_1",
    "B1_2",
    "F4_2",
    "F4_3",
    "F8_1",
    "F8_2",
    "F8_3",
    "I1_2",
    "I1_3",
    "I4_2",
    "I4_3",
    "I8_1",
    "I8_2",
    "I8_3",
    "helper",
    "kernel",
    "pack",
    "pure_kernel",
    "record_dtype",
    "unpacker",
]

# Annotations of a bundle's fields: kind and bytes of the elements, number of dimensions; C-contiguous.
F8_1 = Annotated[npt.NDArray[np.float64], np.dtype(np.float64), 1]
F8_2 = Annotated[npt.NDArray[np.float64], np.dtype(np.float64), 2]
F8_3 = Annotated[npt.NDArray[np.float64], np.dtype(np.float64), 3]
F4_2 = Annotated[npt.NDArray[np.float32], np.dtype(np.float32), 2]
F4_3 = Annotated[npt.NDArray[np.float32], np.dtype(np.float32), 3]
I8_1 = Annotated[npt.NDArray[np.int64], np.dtype(np.int64), 1]
I8_2 = Annotated[npt.NDArray[np.int64], np.dtype(np.int64), 2]
I8_3 = Annotated[npt.NDArray[np.int64], np.dtype(np.int64), 3]
I4_2 = Annotated[npt.NDArray[np.int32], np.dtype(np.int32), 2]
I4_3 = Annotated[npt.NDArray[np.int32], np.dtype(np.int32), 3]
I1_2 = Annotated[npt.NDArray[np.int8], np.dtype(np.int8), 2]
I1_3 = Annotated[npt.NDArray[np.int8], np.dtype(np.int8), 3]
B1_1 = Annotated[npt.NDArray[np.bool_], np.dtype(np.bool_), 1]
B1_2 = Annotated[npt.NDArray[np.bool_], np.dtype(np.bool_), 2]

# their annotations are partial, and leave out the options that matter here
_numba: Any = numba
_types: Any = types
_arrayobj: Any = arrayobj
_codegen: Any = codegen
_compiler: Any = compiler
_LoweringPass: Any = compiler_machinery.LoweringPass
_register_pass: Any = compiler_machinery.register_pass
_AnnotateTypes: Any = typed_passes.AnnotateTypes

F = TypeVar("F", bound=Callable[..., Any])
COMPILED = not _numba.config.DISABLE_JIT
MOST_DIMENSIONS = 3

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
    """The file of a kernel, and what of its own package and of schedgym it imports, directly or not."""
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
    """The digest of all that a kernel in ``file`` may be made of."""
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
        cache_file._load_index = functools.partial(_index_or_none, cache_file._load_index)
        cache_file._source_stamp = source_stamp(Path(function.__code__.co_filename).resolve())
    return dispatcher


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
    """In the place of a code generator: a function that is only inlined has no environment to set."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


class _InlinedLibrary(_codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into kernels and never called by itself: no machine code is made of it.

    Half of the time that a kernel of thirty helpers takes to compile would go there.
    """

    codegen = _NoEnvironment()

    def get_pointer_to_function(self, name: str) -> int:
        """No address: nobody calls it."""
        return 0

    def finalize(self) -> None:
        """Link the helpers that it calls, and leave it at that."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@_register_pass(mutates_CFG=False, analysis_only=True)
class _InlineOnly(_LoweringPass):  # type: ignore[misc]
    """Let what follows lower the function into an :class:`_InlinedLibrary`."""

    _name = "schedgym_inline_only"

    def __init__(self) -> None:
        _LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Set the library."""
        state.library = _InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class _HelperCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """numba's compiler, but for the library."""

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


_LAYOUTS: dict[Any, list[tuple[str, np.dtype[Any], int]]] = {}


def _layouts(bundle: type[Any]) -> list[tuple[str, np.dtype[Any], int]]:
    if bundle not in _LAYOUTS:
        hints = typing.get_type_hints(bundle, include_extras=True)
        _LAYOUTS[bundle] = []
        for name in bundle._fields:
            dtype, *rest = hints[name].__metadata__
            old = len(rest) == 1 and isinstance(rest[0], int)
            _LAYOUTS[bundle].append((name, dtype, rest[0] if old else len(rest)))
    return _LAYOUTS[bundle]


def pack(*bundles: Any) -> Any:
    """A table of the bundles' arrays for kernels: int64 [arrays, 1 + MOST_DIMENSIONS].

    The caller keeps the arrays alive and packs again when one is replaced. Uncompiled
    (NUMBA_DISABLE_JIT=1) the bundles themselves.
    """
    rows = []
    for bundle in bundles:
        for name, dtype, dimensions in _layouts(type(bundle)):
            array = getattr(bundle, name)
            if array.dtype != dtype or array.ndim != dimensions or not array.flags.c_contiguous:
                raise TypeError(
                    f"{type(bundle).__name__}.{name}: must be a contiguous {dtype} array with "
                    f"{dimensions} dimensions, got {array.dtype} {array.shape}"
                )
            shape = array.shape + (0,) * (MOST_DIMENSIONS - dimensions)
            rows.append((array.ctypes.data, *shape))
    return np.array(rows, dtype=np.int64) if COMPILED else bundles


def unpacker(*bundles: type[Any]) -> Any:
    """An intrinsic ``unpack(table)`` for kernels: the bundles, in the order in which they were packed.

    The arrays it makes own nothing (numba's reference count is null): the table's owner keeps them alive.
    """
    if not COMPILED:
        return lambda table: table
    layouts = [_layouts(bundle) for bundle in bundles]
    kinds = [
        _types.BaseTuple.from_types(
            [types.Array(numba.from_dtype(dtype), n, "C") for _, dtype, n in layout], bundle
        )
        for bundle, layout in zip(bundles, layouts, strict=True)
    ]
    result = _types.BaseTuple.from_types(kinds)

    @intrinsic
    def unpack(typing_context: Any, table: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            source = _arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data

            def entry(row: int, column: int) -> Any:
                index = context.get_constant(types.intp, row * (1 + MOST_DIMENSIONS) + column)
                return builder.load(builder.gep(source, [index]))

            row = 0
            made = []
            for kind in kinds:
                arrays = []
                for array_type in kind.types:
                    array = _arrayobj.make_array(array_type)(context, builder)
                    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
                    itemsize = context.get_constant(types.intp, size)
                    shape = [entry(row, 1 + axis) for axis in range(array_type.ndim)]
                    strides = [itemsize]
                    for length in shape[:0:-1]:
                        strides.insert(0, builder.mul(strides[0], length))
                    _arrayobj.populate_array(
                        array,
                        data=builder.inttoptr(entry(row, 0), array.data.type),
                        shape=shape,
                        strides=strides,
                        itemsize=itemsize,
                        meminfo=None,
                    )
                    arrays.append(array._getvalue())
                    row += 1
                made.append(context.make_tuple(builder, kind, arrays))
            return context.make_tuple(builder, result, made)

        return result(table), codegen

    return unpack
