"""The kernels of every problem and view compile for GPUs; there need not be one, but numba-cuda."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schedgym.core.problem import get_problem, list_problems
from tests.long import long

CAPABILITY = (9, 0)  # H100 and H200
#: the problem and default view of each environment id
DEFAULTS = {
    (problem.name, vars(problem.build(id, {}))["view"]): id
    for problem in list_problems().values()
    for id in problem.ids
}
CASES = [
    pytest.param(problem.name, view.name, marks=() if (problem.name, view.name) in DEFAULTS else long)
    for problem in list_problems().values()
    for view in problem.views
]
#: (problem, view, name of the kernel) -> PTX; view "": of a kernel that all views of a problem share
MADE: dict[tuple[str, str, str], str] = {}


def has_compiler() -> bool:
    """Return True if numba-cuda and NVIDIA's compiler are installed."""
    if importlib.util.find_spec("numba_cuda") is None:
        return False
    try:
        from numba.cuda.cudadrv import nvvm

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
    functions = cuda.functions(get_problem(problem), view)
    found = {}
    for name, function, signature in zip(cuda.Kernels._fields, functions, signatures, strict=True):
        key = problem, view if name in ("check", "act") else "", name
        if key not in MADE:
            with cuda.uncontracted():
                MADE[key], _ = numba_cuda.compile(
                    function, types.void(*signature), device=False, abi="numba", output="ptx", cc=CAPABILITY
                )
        found[name] = MADE[key]
    return found


def test_each_id_has_a_view_that_is_compiled_for_every_change() -> None:
    """.ci/run compiles the views that are not marked long."""
    assert sorted(DEFAULTS.values()) == sorted(
        id for problem in list_problems().values() for id in problem.ids
    )


@needs_compiler
@pytest.mark.parametrize(("problem", "view"), CASES)
def test_kernels_compile(problem: str, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compile_to_ptx(problem, view, monkeypatch)
    for name, ptx in found.items():
        assert ".entry" in ptx and ".target sm_90" in ptx, name
        # no function is left to be found elsewhere, no memory is allocated, and no reference counted
        assert ".extern" not in ptx and "NRT_" not in ptx and "malloc" not in ptx, name


def assembler() -> str | None:
    """The path of ptxas, which makes machine code of PTX; None: there is none."""
    found = importlib.util.find_spec("nvidia.cuda_nvcc")
    for folder in (found.submodule_search_locations or ()) if found else ():
        return shutil.which("ptxas", path=str(Path(folder, "bin")))
    return None


@needs_compiler
@pytest.mark.skipif(not has_compiler() or assembler() is None, reason="needs ptxas")
@long
@pytest.mark.parametrize(("problem", "view"), [case.values for case in CASES])
def test_kernels_assemble(problem: str, view: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NVIDIA's assembler makes machine code of them, which keeps all values in registers."""
    for name, ptx in compile_to_ptx(problem, view, monkeypatch).items():
        path = tmp_path / f"{name}.ptx"
        path.write_text(ptx)
        command = [str(assembler()), "-v", "-arch=sm_90", "-o", str(path.with_suffix(".cubin")), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)
        assert spilled and not any(map(int, spilled)), f"{name}: {done.stderr}"


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
