"""The kernels of every problem and view compile for GPUs; there need not be one, but numba-cuda."""

from __future__ import annotations

import importlib.util
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from schedgym.core.problem import get_problem, list_problems
from tests.long import some

CAPABILITY = (9, 0)  # H100 and H200
CASES = [(problem.name, view.name) for problem in list_problems().values() for view in problem.views]


def has_compiler() -> bool:
    """Return True if numba-cuda and NVIDIA's compiler are installed."""
    if importlib.util.find_spec("numba_cuda") is None:
        return False
    from numba.cuda.cudadrv import nvvm

    try:
        nvvm.NVVM()
    except Exception:  # of many kinds, as the compiler is a shared library that is looked for
        return False
    return True


needs_compiler = pytest.mark.skipif(
    not has_compiler(), reason='needs NVIDIA\'s compiler: pip install "schedgym[cuda]"'
)


def compile_to_ptx(problem: str, view: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Name of the kernel -> its PTX."""
    from numba import cuda as numba_cuda
    from numba import types
    from numba.cuda import dispatcher

    from schedgym.core import cuda

    # what a driver would be asked
    device = SimpleNamespace(compute_capability=CAPABILITY, id=0)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)

    def array(element: Any, dimensions: int = 1) -> Any:
        return types.Array(element, dimensions, "C")

    flags, numbers = array(types.boolean), array(types.int64)
    results = types.NamedTuple([array(types.float64), *[flags] * 4], cuda.Results)
    tables = (array(types.int64, 2), array(types.int64, 2))
    signatures = cuda.Kernels(
        take=(*tables, array(types.int64, 3)),
        check=(*tables, flags, numbers),
        draw=(*tables, flags, array(types.uint64), numbers, numbers),
        act=(*tables, flags, types.int64, numbers, results, numbers, types.int64),
        measure=(*tables, flags),
    )
    made = {}
    functions = cuda.functions(get_problem(problem), view)
    for name, function, signature in zip(cuda.Kernels._fields, functions, signatures, strict=True):
        with cuda.uncontracted():
            made[name], _ = numba_cuda.compile(
                function, types.void(*signature), device=False, abi="numba", output="ptx", cc=CAPABILITY
            )
    return made


@needs_compiler
@pytest.mark.parametrize(("problem", "view"), some(CASES, of=len(CASES)))
def test_kernels_compile(problem: str, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compile_to_ptx(problem, view, monkeypatch)
    for name, ptx in found.items():
        assert ".entry" in ptx and ".target sm_90" in ptx, name
        # no memory is allocated, and no reference counted
        assert "NRT_" not in ptx and "malloc" not in ptx, name


@needs_compiler
def test_products_and_sums_are_not_contracted(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import cuda as numba_cuda
    from numba import types

    from schedgym.core import cuda

    def multiply_and_add(x: Any) -> None:
        x[0] = x[1] * x[2] + x[3]

    signature = types.void(types.Array(types.float64, 1, "C"))
    count = Counter()
    for contracted in (True, False):
        options = {"device": False, "abi": "numba", "output": "ptx", "cc": CAPABILITY}
        if contracted:
            ptx, _ = numba_cuda.compile(multiply_and_add, signature, **options)
        else:
            with cuda.uncontracted():
                ptx, _ = numba_cuda.compile(multiply_and_add, signature, **options)
        count[contracted] = ptx.count("fma.rn.f64")
    assert count[True] == 1 and count[False] == 0
