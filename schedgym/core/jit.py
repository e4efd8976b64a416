"""The one place where schedgym touches numba's machinery.

``kernel`` compiles an entry point: called from Python, cached on disk. Another kernel may call it, too, and
then links its code. ``helper`` compiles what kernels call: inlined, and without reference counting (four
times faster, because arrays in named tuples are otherwise counted at every call); a helper must not allocate.
``subroutine`` is for a large helper that a kernel needs in several places: it is compiled once.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import codegen, compiler, compiler_machinery, registry, typed_passes, types, untyped_passes

from schedgym.core.arrays import GUARD
from schedgym.core.compilation import COMPILATION
from schedgym.core.kernel_cache import KernelCache

#: passes for what helpers do not use: they find nothing, and take 3 to 10% of the time
_UNUSED: Any = (
    untyped_passes.WithLifting,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.NoPythonSupportedFeatureValidation,
)

F = TypeVar("F", bound=Callable[..., Any])
COMPILED = not numba.config.DISABLE_JIT


def kernel(function: F) -> F:
    """Compile ``function`` at its first call and cache the machine code on disk."""
    return _kernel(function, {})


def pure_kernel(function: F) -> F:
    """A :func:`kernel` that allocates nothing, and so counts no references, not even of its arguments."""
    return _kernel(function, {"_nrt": False})


def _kernel(function: F, options: dict[str, Any]) -> F:
    # without the interpreter's lock: blocks of environments are advanced side by side
    options = {"no_cfunc_wrapper": True, "error_model": "numpy", "nogil": True, **options}
    dispatcher: Any = numba.njit(**options)(function)
    if COMPILED:
        dispatcher.__class__ = _Kernel  # njit takes no class for it
        dispatcher.linked = _linked(function, options)
        with contextlib.suppress(RuntimeError):  # it is in no file, or has no name of its own
            dispatcher._cache = KernelCache(function)
    return dispatcher


class _Kernel(registry.CPUDispatcher):  # type: ignore[misc]
    """A kernel that is machine code of its own only where Python calls it.

    Of a kernel that others call, machine code would be made twice: for itself, and as a part of theirs.
    """

    linked: Any

    @property
    def _numba_type_(self) -> Any:
        """The type of the kernel in code that is compiled: what it compiles to there."""
        return types.Dispatcher(self.linked)

    def compile(self, kinds: Any) -> Any:
        """Load or make the machine code for arguments of these types.

        Arrays that Python may not write to, such as those of a zero-copy observation, take the same code as
        others: each kernel is compiled once. With SCHEDGYM_GUARD=1 they have code of their own, and numba
        refuses a kernel that would write to them.
        """
        writable = kinds if GUARD else tuple(map(_writable, kinds))
        with COMPILATION.of(self.py_func.__module__), _undisturbed():
            code = super().compile(writable)
        if kinds != writable:
            self.overloads[kinds] = self.overloads[writable]
            self._insert([kind._code for kind in kinds], code, False)
        return code


def _writable(kind: Any) -> Any:
    """The type in which all arrays, also those of tuples, may be written to."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=False)
    if isinstance(kind, types.BaseTuple):
        return types.BaseTuple.from_types(
            tuple(map(_writable, kind.types)), getattr(kind, "instance_class", None)
        )
    return kind


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Compile without collecting garbage: what numba makes is kept, and looking through it takes a tenth.

    What a signal's handler raises in a callback of LLVM, where Python drops it, is raised at the end.
    """
    was_enabled, before = gc.isenabled(), sys.unraisablehook
    dropped: list[BaseException] = []

    def note(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, (KeyboardInterrupt, SystemExit)):
            dropped.append(unraisable.exc_value)
        else:
            before(unraisable)

    gc.disable()
    sys.unraisablehook = note
    try:
        yield
    finally:
        sys.unraisablehook = before
        if was_enabled:
            gc.enable()
        if dropped:  # in the place of numba's error that there is no code
            raise dropped[0]


def _linked(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function for compiled code only: it is compiled into the kernels that call it."""
    # without the wrappers that nobody calls a kernel compiles in two thirds of the time
    options = {**options, "no_cpython_wrapper": True, "pipeline_class": _LinkedCompiler}
    dispatcher: Any = numba.njit(**options)(function)
    if COMPILED:
        dispatcher.__class__ = _Linked  # njit takes no class for it
    return dispatcher


class _Linked(registry.CPUDispatcher):  # type: ignore[misc]
    """A function for compiled code only."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Raise TypeError: there is no machine code that Python could call."""
        name = self.py_func.__qualname__
        raise TypeError(
            f"{name} is compiled into kernels and cannot be called from Python: {name}.py_func can"
        )


class _NoEnvironment:
    """Stand-in for a code generator: a function that is only linked has no environment to set."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


class _LinkedLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
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


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=True)
class _LinkOnly(compiler_machinery.LoweringPass):  # type: ignore[misc]
    """Let the passes that follow lower the function into a :class:`_LinkedLibrary`."""

    _name = "schedgym_link_only"

    def __init__(self) -> None:
        compiler_machinery.LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Set the library."""
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class _LinkedCompiler(compiler.CompilerBase):  # type: ignore[misc]
    """numba's compiler, with :class:`_LinkedLibrary` as the library of the code."""

    def define_pipelines(self) -> list[Any]:
        """The pipeline of nopython mode with one pass more, and fewer others."""
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes[:] = [given for given in pipeline.passes if given[0] not in _UNUSED]
        pipeline.add_pass_after(_LinkOnly, typed_passes.AnnotateTypes)
        pipeline.finalize()
        return [pipeline]


def helper(function: F) -> F:
    """Compile ``function`` into the kernels that call it; it cannot be called from Python."""
    return _helper(function, True)


def subroutine(function: F) -> F:
    """A :func:`helper` that is called, not inlined: for a large one that a kernel calls in several places."""
    return _helper(function, False)


def _helper(function: F, forceinline: bool) -> F:
    options = {"no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False}
    return _linked(function, {**options, "forceinline": forceinline})


def record_dtype(*fields: tuple[str, Any]) -> np.dtype[Any]:
    """A structured dtype whose elements have their fields as attributes, compiled and uncompiled."""
    return np.dtype((np.record, np.dtype(list(fields), align=True)))
