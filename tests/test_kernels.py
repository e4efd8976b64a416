"""What the compiled code must be like: free of reference counting, equal to Python, never stale."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import llvmlite.binding
import numba
import numpy as np
import pytest

import schedgym.problems
from schedgym.core import jit, kernel_cache
from schedgym.core.arrays import GUARD, Floats, declarations
from schedgym.core.compilation import COMPILATION, Compilation
from schedgym.core.policy import make_policy
from schedgym.evaluation.episodes import make_env, play
from schedgym.solvers.max_min import water_into
from tests.interpreted import python, results_of
from tests.long import long

ROOT = Path(__file__).resolve().parents[1]

#: plays one episode in each view and kind of observation; prints the digests of schedules and observations
PLAY = """
import hashlib, json, sys
import gymnasium as gym, numpy as np, schedgym
from schedgym.testing import all_views, sample_action

digests = {}
for view in all_views("queue-delay"):
    env = gym.make("schedgym/QueueDelay-v0", tasks=8, servers=2, window=3, disable_env_checker=True, **view)
    rng = np.random.default_rng(0)
    sha = hashlib.sha256()
    observation, _ = env.reset(seed=5)
    done = False
    while not done:
        for name in sorted(observation):
            sha.update(np.ascontiguousarray(observation[name]).tobytes())
        action = sample_action(env.action_space, observation, rng)
        observation, reward, terminated, truncated, info = env.step(action)
        sha.update(np.float64(reward).tobytes())
        done = terminated or truncated
    digests[str(view)] = [env.unwrapped.record().digest(), sha.hexdigest(), info["metrics"]]
policy = schedgym.make_policy("queue-delay/bf-exec")
parameters = {"view": "placement", "window": "all", "action_mask": False}
env = gym.make("schedgym/QueueDelay-v0", tasks=30, servers=1, disable_env_checker=True, **parameters)
observation, _ = env.reset(seed=1)
policy.reset(env.unwrapped.interface, np.random.default_rng(0))
done = False
while not done:
    observation, reward, terminated, truncated, info = env.step(policy(observation))
    done = terminated or truncated
digests["bf-exec"] = [env.unwrapped.record().digest(), "", info["metrics"]]
from schedgym.agents.agent_policy import make_agent
from schedgym.evaluation.episodes import make_env, play
from schedgym.solvers.max_min import water_into
agent = make_agent("pretrained", "schedgym/QueueDelay-v0")
parameters = agent.acting_parameters("schedgym/QueueDelay-v0", {"tasks": 20, "servers": 2})
env = make_env("schedgym/QueueDelay-v0", parameters)
outcome = play(env, agent, seed=1)
digests["agent"] = [env.record().digest(), outcome.total, outcome.metrics]
"""

COUNT = """
import re
from schedgym.problems.queue_delay import dynamics

counts = [
    [len(re.findall(r"call [^@]*@NRT_incref", code)) for code in kernel.inspect_llvm().values()]
    for kernel in (dynamics.DYNAMICS.step, dynamics.SCORING.play[dynamics.DYNAMICS.general("placement")])
]
"""


@long
def test_compiled_and_interpreted_agree_and_nothing_is_counted(tmp_path) -> None:
    """Freshly compiled (of code from a cache inspect_llvm says nothing), and as plain Python."""
    compiled = results_of(
        PLAY + COUNT + "print(json.dumps([digests, counts]))", NUMBA_CACHE_DIR=str(tmp_path)
    )
    interpreted = results_of(PLAY + "print(json.dumps([digests]))", NUMBA_DISABLE_JIT="1")
    assert len(compiled[0]) == 18
    assert compiled[0] == interpreted[0]
    assert compiled[1] == [[0], [0]], "one specialisation serves all views and observations"


STAMPS = """
import json, sys
from pathlib import Path
import schedgym.problems.{0}.dynamics, schedgym.problems.{1}.dynamics
from schedgym.core.kernel_cache import source_files, source_stamp
files = [Path(sys.modules[f"schedgym.problems.{{name}}.dynamics"].__file__) for name in ("{0}", "{1}")]
named = [sorted("/".join(path.parts[-3:]) for path in source_files(file)) for file in files]
print(json.dumps([[source_stamp(file) for file in files], named]))
""".format("queue_delay", "single_job")


@long
def test_a_kernel_is_stamped_by_the_contents_of_what_it_is_made_of(tmp_path) -> None:
    package = tmp_path / "schedgym"
    shutil.copytree(ROOT / "schedgym", package, ignore=shutil.ignore_patterns("__pycache__"))

    def stamps() -> list[str]:
        return results_of(STAMPS, folder=tmp_path, PYTHONPATH=str(tmp_path))[0]

    before = stamps()
    assert before == stamps()
    # an edit of the same size with the old time, and what it concerns
    for path, changed in (
        (package / "problems/queue_delay/rules.py", (True, False)),
        (package / "solvers/placement.py", (False, True)),
        (package / "core/heap.py", (True, False)),
        (package / "core/stepping.py", (True, True)),
        (package / "problems/queue_delay/render.py", (False, False)),
    ):
        text, times = path.read_text(), (path.stat().st_atime, path.stat().st_mtime)
        assert text.startswith('"""')  # one letter of the docstring changes
        path.write_text(text[:3] + chr(ord(text[3]) ^ 1) + text[4:])
        os.utime(path, times)
        after = stamps()
        assert tuple(x != y for x, y in zip(before, after, strict=True)) == changed, path
        before = after
    (package / "problems/queue_delay/another.py").write_text("")
    assert stamps() == before, "a file that no kernel imports"


def test_the_files_of_a_kernel_are_found_through_their_imports() -> None:
    first, second = results_of(STAMPS)[1]
    assert {"problems/queue_delay/rules.py", "schedgym/core/heap.py", "schedgym/core/jit.py"} <= set(first)
    assert {"schedgym/solvers/placement.py", "problems/single_job/workload.py"} <= set(second)
    assert not any("single_job" in path or "traces" in path for path in first)


def test_an_edited_helper_is_compiled_anew(tmp_path) -> None:
    """numba alone would serve the cached kernel, which does not know that its helper has changed."""
    shutil.copytree(ROOT / "schedgym", tmp_path / "schedgym", ignore=shutil.ignore_patterns("__pycache__"))
    helper = tmp_path / "schedgym/problems/a_helper.py"
    (tmp_path / "a_kernel.py").write_text(
        "from schedgym.core.jit import kernel\n"
        "from schedgym.problems.a_helper import number\n\n\n"
        "@kernel\n"
        "def answer():\n"
        "    return number()\n"
    )
    code = "import json, a_kernel; print(json.dumps([a_kernel.answer(), a_kernel.__file__, hits()]))"
    code = "def hits():\n    return sum(a_kernel.answer.stats.cache_hits.values())\n\n" + code

    def answer() -> list:
        variables = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        number, path, found = results_of(code, folder=tmp_path, **variables)
        assert path.startswith(str(tmp_path))
        return [number, found]

    source = "from schedgym.core.jit import helper\n\n\n@helper\ndef number():\n    return {}\n"
    helper.write_text(source.format(1))
    assert answer() == [1, 0]
    assert answer() == [1, 1], "an unchanged kernel comes from the cache"
    time.sleep(0.01)
    helper.write_text(source.format(2))
    assert answer() == [2, 0]


NOWHERE = """
import warnings
import numpy as np
from schedgym.core.jit import kernel

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import first.kernels, second.kernels
    made = [first.kernels.add, second.kernels.add]
    assert [add(np.arange(3)) for add in made] == [2, 3]
    space = {"kernel": kernel}
    exec("@kernel\\ndef double(x):\\n    return 2 * x", space)  # in no file
    assert space["double"](21) == 42
print(*(warning.message for warning in seen), sep="\\n")
"""


def test_kernels_compile_where_nothing_can_be_kept(tmp_path) -> None:
    """A read-only installation and home: one warning."""
    for number, name in enumerate(("first", "second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__pycache__").write_text("no folder")
        code = f"@kernel\ndef add(x):\n    return x[2] + {number}\n"
        (tmp_path / name / "kernels.py").write_text(f"from schedgym.core.jit import kernel\n\n\n{code}")
    home = tmp_path / "home"
    home.write_text("no folder")
    found = python("-c", NOWHERE, folder=tmp_path, XDG_CACHE_HOME=str(home), NUMBA_CACHE_DIR="").stdout
    assert found.count("\n") == 1 and found.startswith(str(home))
    assert "compiled kernels cannot be kept (Not a directory)" in found


@long
def test_kernels_that_the_package_brings(tmp_path) -> None:
    """They serve without compiling, if processor and sources fit."""
    shutil.copytree(ROOT / "schedgym", tmp_path / "schedgym", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "schedgym/problems/a_kernel.py").write_text(
        "from schedgym.core.jit import kernel\n\n\n@kernel\ndef half(x):\n    return x / 2.0\n"
    )
    code = (
        "import json\nfrom schedgym.core import kernel_cache\n{}\n"
        "from schedgym.problems.a_kernel import half\n"
        "value, stats = half(3.0), half.stats\n"
        "print(json.dumps([value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))"
    )

    def result(change: str = "", **variables: str) -> list:
        own = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **variables}
        found = results_of(code.format(change), folder=tmp_path, **own)
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        return found

    level = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
    assert result(SCHEDGYM_SHIP_KERNELS="1", **level) == [1.5, 0, 1]
    features = kernel_cache.FEATURES
    fits = all(llvmlite.binding.get_host_cpu_features().get(name) for name in features)
    assert result() == ([1.5, 1, 0] if fits else [1.5, 0, 1])
    assert result("kernel_cache.FEATURES = ('no-such-feature',)") == [1.5, 0, 1]
    assert result(SCHEDGYM_SHIP_KERNELS="1", **level)[1] == 1, "made once"
    read_only = tmp_path / "home"  # no folder can be written to
    read_only.write_text("no folder")
    shutil.rmtree(tmp_path / "schedgym/problems/__pycache__", ignore_errors=True)
    (tmp_path / "schedgym/problems/__pycache__").write_text("no folder")
    assert result(NUMBA_CACHE_DIR="", XDG_CACHE_HOME=str(read_only)) == ([1.5, 1, 0] if fits else [1.5, 0, 1])
    with (tmp_path / "schedgym/problems/a_kernel.py").open("a") as file:
        file.write("# edited\n")
    assert result() == [1.5, 0, 1]


def test_time_of_compiling_is_counted_and_told(monkeypatch, capsys) -> None:
    compilation = Compilation()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("schedgym.core.compilation.PATIENCE", 0.01)
    for _ in range(2):
        with compilation.of("schedgym.problems.queue_delay.dynamics"):
            time.sleep(0.1)
    assert 0.2 <= compilation.seconds
    assert capsys.readouterr().err.count("compiling queue_delay") == 1
    monkeypatch.setattr("schedgym.core.compilation.PATIENCE", 60.0)
    with compilation.of("schedgym.solvers.placement"):
        pass
    assert capsys.readouterr().err == ""


def test_a_policy_is_not_charged_for_compiling() -> None:
    class Compiles:
        def reset(self, interface, rng) -> None:
            self.policy = make_policy("fcfs", "queue-delay")
            self.policy.reset(interface, rng)

        def __call__(self, observation):
            COMPILATION.seconds += 1000.0  # as if a kernel had been compiled
            return self.policy(observation)

    env = make_env("schedgym/QueueDelay-v0", {"tasks": 5, "servers": 2})
    before = COMPILATION.seconds
    outcome = play(env, Compiles())
    assert COMPILATION.seconds - before >= 5000.0 and outcome.seconds < 0.0


def test_read_only_arrays_take_the_same_code() -> None:
    class Pair(NamedTuple):
        demand: np.ndarray
        share: np.ndarray

    @jit.pure_kernel
    def fill(capacity: float, pair: Pair, demand: np.ndarray) -> None:
        water_into(capacity, pair.demand, pair.share)
        water_into(capacity, demand, pair.share)

    demand, share = np.array([1.0, 2.0, 3.0]), np.zeros((3, 3))
    shown = demand.view()
    shown.flags.writeable = False
    fill(3.0, Pair(demand, share[0]), demand)
    fill(3.0, Pair(shown, share[1]), demand)
    fill(3.0, Pair(demand, share[2]), shown)
    assert share.tolist() == [[1.0, 1.0, 1.0]] * 3
    assert len(fill.overloads) == 3 and len(set(map(id, fill.overloads.values()))) == (3 if GUARD else 1)


@pytest.mark.parametrize("guard", [0, 64])
def test_guards_refuse_kernels_that_write_to_read_only_arrays(guard: int, monkeypatch) -> None:
    """So .ci/checks, where all tests have guards, sees that no policy's kernel writes to an observation."""
    monkeypatch.setattr(jit, "GUARD", guard)

    @jit.pure_kernel
    def clear(array: np.ndarray) -> None:
        array[0] = 0.0

    shown = np.ones(1)
    shown.flags.writeable = False
    with pytest.raises(numba.TypingError, match="readonly") if guard else contextlib.nullcontext():
        clear(shown)
    assert shown[0] == (1.0 if guard else 0.0)


BOUNDS = """
import sys, warnings
from typing import Annotated, NamedTuple
import numpy as np
from schedgym.core.arrays import Floats, allocate_all
from schedgym.core.jit import kernel
from schedgym.core.tables import accessor, pack

class State(NamedTuple):
    served: Annotated[Floats, "job"]

class Environment(NamedTuple):
    state: State

access = accessor(Environment)

@kernel
def touch(table, place):
    access(table, table, 0).state.served[place] = 1.0

table = pack(allocate_all(Environment, {"job": 4}, 1))
for place in map(int, sys.argv[1:]):
    try:
        touch(table, place)
    except IndexError as error:
        print("IndexError", end=" ")
del table
"""


def test_debug_modes_find_what_a_kernel_writes_beyond_its_arrays() -> None:
    def touched(*places: int, **variables: str) -> tuple[str, str]:
        done = python("-c", BOUNDS, *map(str, places), SCHEDGYM_GUARD="1", **variables)
        return done.stdout, done.stderr

    assert "MemoryError: State.served: a kernel wrote beyond the array" in touched(4)[1]
    assert touched(0, 3, 4, 5, NUMBA_BOUNDSCHECK="1") == ("IndexError IndexError ", "")


def test_garbage_is_collected_again_after_compiling() -> None:
    was_enabled = gc.isenabled()
    try:
        for enabled in (False, True):
            (gc.enable if enabled else gc.disable)()
            during = []
            jit.kernel(lambda x: x + 3)(1)
            with jit._undisturbed():
                during.append(gc.isenabled())
            assert during == [False] and gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_a_kernel_that_must_not_allocate_is_refused_what_does() -> None:
    """Also where another kernel has done it before."""
    numbers = np.ones(3)
    allocating = jit.kernel(lambda x: np.copy(x)[0])
    assert jit.kernel(lambda x: allocating(x) + 1.0)(numbers) == 2.0
    pure = jit.pure_kernel(lambda x: np.copy(x)[0])
    with pytest.raises(numba.core.errors.NumbaError):
        jit.pure_kernel(lambda x: pure(x) + 1.0)(numbers)


def test_a_subroutine_gives_what_a_helper_gives() -> None:
    def total(x):
        value = 0.0
        for i in range(x.shape[0]):
            value += x[i] * x[i]
        return value

    found = []
    for decorate in (jit.helper, jit.subroutine):
        inner = decorate(total)
        outer = jit.pure_kernel(lambda x, inner=inner: inner(x) + inner(x[1:]))
        found.append(outer(np.array([0.1, 0.2, 0.3])))
    assert found[0] == found[1] == total(np.array([0.1, 0.2, 0.3])) + total(np.array([0.2, 0.3]))


def test_a_function_for_kernels_cannot_be_called_from_python() -> None:
    """There is no machine code for it: the interpreter would crash."""
    problems = [module.name for module in pkgutil.iter_modules(schedgym.problems.__path__) if module.ispkg]
    found = set()
    for problem in problems:
        for name in ("workload", "dynamics", "metrics"):
            module = importlib.import_module(f"schedgym.problems.{problem}.{name}")
            found |= {value for value in vars(module).values() if isinstance(value, jit._Linked)}
    assert len(found) > 100
    for function in found:
        with pytest.raises(TypeError, match="is compiled into kernels and cannot be called from Python"):
            function(3, 1, 0)


class Cubes(NamedTuple):
    cube: Annotated[Floats, "task", "server", 2]


def test_an_array_that_a_table_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Cubes\.cube: has more than 2 dimensions"):
        declarations(Cubes)
