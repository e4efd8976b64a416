"""What a result depends on: an edit that can change it makes it stale, and no other one does."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schedgym.errors import InvalidParameter
from schedgym.evaluation import evaluate, run_sweep
from schedgym.evaluation.memory import Memory
from schedgym.evaluation.plan import depends_on
from schedgym.evaluation.runner import compare
from schedgym.evaluation.sweeps import make_spec
from schedgym.problems.queue_delay.workload import make_workload
from tests.test_packaging import FOLDERS, ROOT

ID = "schedgym/QueueDelay-v0"

#: prints the version of the code that results depend on, and of the whole package
VERSIONS = """
import json
from schedgym.evaluation.plan import code_version, package_version
print(json.dumps([code_version(), package_version()]))
"""

#: runs a sweep on a trace; prints how many units ran and were there, and the mean delay
SWEEP = """
import json, sys
from schedgym.evaluation import run_sweep
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import make_spec
given = {"trace": sys.argv[2], "nodes": sys.argv[3], "trace_format": "alibaba2020", "tasks": 4, "servers": 1}
experiment = {"id": "schedgym/QueueDelay-v0", "parameters": given, "policies": ["fcfs"]}
found = run_sweep(make_spec({"name": "a", "episodes": 1, "experiments": [experiment]}), sys.argv[1], n_jobs=1)
print(json.dumps([found.done, found.skipped]))
"""


def write_trace(folder: Path, seconds: int = 10, machines: int = 2) -> tuple[Path, Path]:
    """Eight tasks of half a machine each, and machines, in the format of Alibaba's trace of 2020."""
    tasks = [["j", "t", 1, "Terminated", i, i + seconds, 400, 4, 0, ""] for i in range(1, 9)]
    hosts = [[f"m{i}", "MISC", 8, 16, 0] for i in range(machines)]
    for name, rows in (("tasks.csv", tasks), ("machines.csv", hosts)):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder / "tasks.csv", folder / "machines.csv"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, laid out as it is installed, which a test may edit."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "kernels")
    for folder, inside in FOLDERS.items():
        shutil.copytree(ROOT / folder, tmp_path / "site" / inside, ignore=ignored)
    return tmp_path / "site" / "schedgym"


def run(copy: Path, code: str, *arguments: object) -> Any:
    variables = {**os.environ, "PYTHONPATH": str(copy.parent), "NUMBA_CACHE_DIR": str(copy.parent / "cache")}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=copy.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_version_of_the_code_is_that_of_what_results_depend_on(copy: Path) -> None:
    before = run(copy, VERSIONS)
    for name, stale in (
        ("core/heap.py", True),
        ("solvers/max_min.py", True),
        ("traces/formats/alibaba2020.yaml", True),
        ("baselines/tuned.json", True),
        ("evaluation/episodes.py", True),
        ("problems/queue_delay/dynamics.py", True),
        ("baselines/geo/amf.py", True),
        ("problems/geo/render.py", False),
        ("drawing/__init__.py", False),
        ("evaluation/canvas.py", False),
        ("cli/compare.py", False),
    ):
        with (copy / name).open("a") as file:
            file.write("\n" if name.endswith("json") else "# a comment\n")
        after = run(copy, VERSIONS)
        assert (before[0] != after[0], before[1] != after[1]) == (stale, True), name
        before = after


def test_a_changed_format_of_traces_makes_results_stale(copy: Path, tmp_path: Path) -> None:
    """The first version of the store called them done, by the digest of its Python files."""
    files = write_trace(tmp_path)
    store = tmp_path / "r.db"
    assert run(copy, SWEEP, store, *files) == [2, 0]
    assert run(copy, SWEEP, store, *files) == [0, 2]
    with (copy / "evaluation/canvas.py").open("a") as file:
        file.write("# a comment\n")
    assert run(copy, SWEEP, store, *files) == [0, 2]
    with (copy / "traces/formats/alibaba2020.yaml").open("a") as file:
        file.write("# another unit\n")
    assert run(copy, SWEEP, store, *files) == [2, 0]


@pytest.mark.parametrize("kept", ["in a file", "in memory"])
def test_remembered_episodes_are_known_by_the_contents_of_files(tmp_path: Path, kept: str) -> None:
    """They were known by the trace's path; workloads in memory by that of a temporary file."""
    memory = Memory(tmp_path / "episodes" if kept == "in a file" else None)

    def mean(seconds: int) -> tuple[float, bool]:
        trace, nodes = write_trace(tmp_path, seconds)
        given = {"trace": str(trace), "nodes": str(nodes), "trace_format": "alibaba2020", "tasks": 8}
        given |= {"servers": 1}
        memory.mark()
        found = compare(ID, ["fcfs"], episodes=1, parameters=given, memory=memory, progress=False)
        frame = found.frame
        own = evaluate(ID, ["fcfs"], 1, parameters=given, progress=False)
        names = ["policy", "episode", "metric", "value"]
        assert frame[names].equals(own[names])
        return float(frame.loc[frame["metric"] == "mean_delay", "value"].iloc[0]), memory.ran > 0

    first, ran = mean(10)
    assert ran and mean(10) == (first, False)
    second, ran = mean(30)
    assert ran and second > first
    assert mean(10) == (first, False)


def test_workloads_in_memory_are_remembered_by_their_contents(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "episodes")
    tasks = [[0.0, 2.0, 0.5, 0.5], [1.0, 2.0, 0.5, 0.5]]
    workloads = [make_workload(tasks[:count], [[1.0, 1.0]]) for count in (1, 2)]
    for given, runs in ((workloads, True), (workloads, False), (workloads[::-1], True)):
        memory.mark()
        compare(ID, ["fcfs"], workloads=given, memory=memory, progress=False)
        assert (memory.ran > 0) is runs


def test_a_sweep_refuses_what_evaluate_refuses(tmp_path: Path) -> None:
    """With the environment built, before anything runs or is written: there were two failed units."""
    trace, nodes = write_trace(tmp_path)
    given = {"trace": str(trace), "nodes": str(nodes), "trace_format": "alibaba2020", "servers": 8}
    with pytest.raises(InvalidParameter) as first:
        evaluate(ID, ["fcfs"], 1, parameters=given, progress=False)
    experiments = [{"id": ID, "parameters": own, "policies": ["fcfs"]} for own in ({"tasks": 5}, given)]
    spec = make_spec({"name": "a", "episodes": 1, "experiments": experiments})
    for n_jobs in (1, 2):
        with pytest.raises(InvalidParameter) as second:
            run_sweep(spec, tmp_path / "r.db", n_jobs=n_jobs)
        assert str(second.value) == str(first.value)
    assert not (tmp_path / "r.db").exists()
    only = make_spec({"name": "a", "episodes": 1, "experiments": experiments[:1]})
    assert run_sweep(only, tmp_path / "r.db", n_jobs=1).done == 2
    with pytest.raises(InvalidParameter):
        run_sweep(spec, tmp_path / "r.db", n_jobs=1)


def test_what_results_depend_on(tmp_path: Path) -> None:
    base = depends_on(ID, {"tasks": 5}, label="a", options={})
    assert base == depends_on("QueueDelay-v0", {"tasks": 5}, options={}, label="a")
    for parameters, more in (
        ({"tasks": 6}, {"label": "a", "options": {}}),
        ({"tasks": 5}, {"label": "b", "options": {}}),
        ({"tasks": 5}, {"label": "a", "options": {"norm": 2}}),
    ):
        assert depends_on(ID, parameters, **more) != base
    with pytest.raises(InvalidParameter, match="a: not JSON data"):
        depends_on(ID, {"tasks": 5}, label="a", options={"norm": object()})
