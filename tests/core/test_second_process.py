"""Kernels that are compiled in two processes: which ones are where, and what goes wrong."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schedgym.core import second_process
from schedgym.core.second_process import compile_calls
from schedgym.evaluation.episodes import make_env

KERNELS = """
from schedgym.core.jit import kernel

@kernel
def first(values):
    return values[0] + 1

@kernel
def middle(values):
    return values[0] + 3

@kernel
def last(values):
    return values[0] + 2
"""
VALUES = np.array([40])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with two kernels that nobody has compiled, in a process that may start another one."""
    name = f"kernels_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(second_process.multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.9, 0.0, 0.0), raising=False)
    yield importlib.import_module(name)
    del sys.modules[name]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that are started."""
    processes: list[Any] = []
    start = subprocess.Popen

    def note(*arguments: Any, **options: Any) -> Any:
        processes.append(start(*arguments, **options))
        return processes[-1]

    monkeypatch.setattr(second_process.subprocess, "Popen", note)
    return processes


def hits(kernel: Any) -> int:
    """How often a kernel was found on disk."""
    return sum(kernel.stats.cache_hits.values())


def test_the_last_kernel_is_compiled_here_and_the_others_elsewhere(module: Any, started: list[Any]) -> None:
    calls = [(module.first, (VALUES,)), (module.last, (VALUES,))]
    compile_calls(calls)
    assert [process.returncode for process in started] == [0]
    assert module.last.overloads and not module.first.overloads
    assert (module.first(VALUES), module.last(VALUES)) == (41, 42)
    assert (hits(module.first), hits(module.last)) == (1, 0)
    compile_calls(calls)
    assert len(started) == 1, "all are at hand"


@pytest.mark.parametrize(
    "case", ("xdist", "ray", "worker", "one core", "busy", "embedded", "not kept", "one")
)
def test_no_process_is_started(
    case: str, module: Any, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [(module.first, (VALUES,)), (module.last, (VALUES,))]
    if case == "xdist":
        monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    elif case == "ray":
        monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    elif case == "worker":
        monkeypatch.setattr(second_process.multiprocessing, "parent_process", lambda: object())
    elif case == "one core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    elif case == "busy":
        monkeypatch.setattr(os, "getloadavg", lambda: (2.0, 0.0, 0.0), raising=False)
    elif case == "embedded":
        monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    elif case == "not kept":
        monkeypatch.setattr(module.first, "_cache", object())
    else:
        module.first(VALUES)
    compile_calls(calls)
    assert not started and not module.last.overloads


def test_what_the_second_process_does_not_compile_is_compiled_here(
    module: Any, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [(module.first, (VALUES,)), (module.last, (VALUES,))]
    with monkeypatch.context() as patch:  # it never ends: it is ended
        patch.setattr(second_process, "TOO_LONG", 0.1)
        patch.setattr(second_process, "CODE", "import time; time.sleep(600); {0}, {1}")
        compile_calls(calls)
    assert started[0].returncode < 0
    assert module.first(VALUES) == 41 and hits(module.first) == 0


def test_a_process_that_ends_at_once_or_cannot_be_started_does_no_harm(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [(module.first, (VALUES,)), (module.last, (VALUES,))]
    with monkeypatch.context() as patch:
        patch.setattr(second_process, "CODE", "raise SystemExit(1); {0}, {1}")
        compile_calls(calls)

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(second_process.subprocess, "Popen", refuse)
    compile_calls(calls)
    assert module.first(VALUES) == 41 and module.last(VALUES) == 42


def test_what_nobody_has_begun_is_compiled_here(
    module: Any, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_process, "TOO_LONG", 0.1)
    monkeypatch.setattr(second_process, "CODE", "import time; time.sleep(600); {0}, {1}")
    compile_calls([(kernel, (VALUES,)) for kernel in (module.first, module.middle, module.last)])
    assert module.last.overloads and module.middle.overloads and not module.first.overloads
    assert started[0].returncode < 0


def test_an_interrupt_ends_the_second_process(
    module: Any, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(types: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(second_process, "CODE", "import time; time.sleep(600); {0}, {1}")
    monkeypatch.setattr(module.last, "compile", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_calls([(module.first, (VALUES,)), (module.last, (VALUES,))])
    assert started[0].returncode < 0


def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("import time; time.sleep(600)")
    code = second_process.CODE.format([str(tmp_path), *sys.path], second_process.__name__)
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(pickle.dumps([("endless", 1, ())]))
    process.stdin.flush()
    time.sleep(0.5)
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(60) == 1


def test_evaluations_compile_what_they_use(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("schedgym.core.simulator.compile_calls", asked.append)
    env = make_env("schedgym/SingleJob-v0")
    env.reset(seed=0)
    assert not asked
    env.simulator.compiles_ahead = True
    for _ in range(2):
        env.reset(seed=0)
    (calls,) = asked
    decide, step = env.simulator.kernels
    assert [kernel for kernel, _ in calls] == [decide, env.simulator.draw_kernel, step]
    env.step(env.action_space.sample())
    for kernel, arguments in calls:
        assert kernel.is_at_hand(tuple(kernel.typeof_pyval(given) for given in arguments))
