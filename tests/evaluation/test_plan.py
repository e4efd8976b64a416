"""What a result depends on: an edit that can change it makes it stale, and no other one does."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest

from schedgym.core.policy import make_policy
from schedgym.errors import InvalidParameter, InvalidStore
from schedgym.evaluation import evaluate, run_sweep
from schedgym.evaluation.plan import SHARED, depends_on
from schedgym.evaluation.runner import compare
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import make_spec
from schedgym.problems.queue_delay.workload import make_workload
from tests.interpreted import results_of
from tests.tables import entry
from tests.test_architecture import ARCHITECTURE, MODULES
from tests.test_packaging import FOLDERS, ROOT

ID = "schedgym/QueueDelay-v0"

#: prints the version of the code that results depend on, and of the whole package, before and after something
#: is added to each of some files
VERSIONS = """
import json, sys
from pathlib import Path
from schedgym.evaluation.plan import code_version, package_version
found = [[code_version(), package_version()]]
for name in sys.argv[1:]:
    with Path(name).open("a") as file:
        file.write("\\n" if name.endswith("json") else "# a comment\\n")
    code_version.cache_clear(), package_version.cache_clear()
    found.append([code_version(), package_version()])
print(json.dumps(found))
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
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder, inside in FOLDERS.items():
        shutil.copytree(ROOT / folder, tmp_path / "site" / inside, ignore=ignored)
    return tmp_path / "site" / "schedgym"


def run(copy: Path, code: str, *arguments: object) -> Any:
    variables = {"PYTHONPATH": str(copy.parent), "NUMBA_CACHE_DIR": ""}
    return results_of(code, *map(str, arguments), folder=copy.parent, **variables)


EDITS, WITHOUT_EFFECT = entry(__file__, "EDITS"), entry(__file__, "WITHOUT_EFFECT")


def test_the_version_of_the_code_is_that_of_what_results_depend_on(copy: Path) -> None:
    """The first version of the store went by its Python files; formats of traces did not count."""
    before, *others = run(copy, VERSIONS, *(copy / name for name in EDITS))
    for (name, stale), after in zip(EDITS.items(), others, strict=True):
        assert (before[0] != after[0], before[1] != after[1]) == (stale, True), name
        before = after


def test_results_depend_on_what_their_code_imports() -> None:
    """documents.py, which reads formats of traces, and spaces.py did not count."""
    parts = {f"schedgym.{part.removesuffix('.py').replace('/', '.')}" for part in SHARED}
    parts |= {"schedgym.baselines", "schedgym.agents"}

    def counts(name: str) -> bool:
        return any(f"{name}.".startswith(f"{part}.") for part in parts)

    code = [name for name in MODULES if counts(name) and ARCHITECTURE.place(name) != "examples"]
    imported = set().union(*map(ARCHITECTURE.imports, code)) & set(MODULES)
    assert {name for name in imported if not counts(name)} == set(WITHOUT_EFFECT)


def test_stored_episodes_are_known_by_the_contents_of_files(tmp_path: Path) -> None:
    """They were known by the trace's path; workloads in memory by that of a temporary file."""
    with ResultsStore(tmp_path / "episodes.db", "w") as store:

        def ran(seconds: int) -> float:
            trace, nodes = write_trace(tmp_path, seconds)
            given = {"trace": str(trace), "nodes": str(nodes), "trace_format": "alibaba2020", "tasks": 8}
            given |= {"servers": 1}
            found = compare(ID, ["fcfs"], episodes=1, parameters=given, store=store, progress=False)
            assert found.frame.equals(evaluate(ID, ["fcfs"], 1, parameters=given, progress=False))
            return found.ran

        assert ran(10) > 0 and ran(10) == 0
        with pytest.raises(InvalidStore, match="holds results of the bounds that were run with other"):
            ran(30)
        assert ran(10) == 0
        tasks = [[0.0, 2.0, 0.5, 0.5], [1.0, 2.0, 0.5, 0.5]]
        workloads = [make_workload(tasks[:count], [[1.0, 1.0]]) for count in (1, 2)]
        how: Any = {"store": store, "progress": False}
        assert compare(ID, ["fcfs"], workloads=workloads, **how).ran > 0
        assert compare(ID, ["fcfs"], workloads=workloads, **how).ran == 0
        with pytest.raises(InvalidStore, match="other options or files"):
            compare(ID, ["fcfs"], workloads=workloads[::-1], **how)


def test_a_store_knows_policies_by_their_options(tmp_path: Path) -> None:
    with ResultsStore(tmp_path / "episodes.db", "w") as store:
        how: Any = {"episodes": 2, "parameters": {"tasks": 20}, "store": store, "progress": False}
        means = []
        for options in ({}, {"a": {"p": 4.0}}, {}):
            found = compare(ID, {"a": "bf"}, options=options, **how)
            own = evaluate(ID, {"a": "bf"}, 2, parameters={"tasks": 20}, options=options, progress=False)
            assert found.frame.equals(own)
            means.append((found.ran > 0, found.summary()["mean"][0]))
            assert len(found.spent) == 4 and sum(found.spent.values()) >= found.ran
        assert [ran for ran, _ in means] == [True, True, False] and means[0][1] == means[2][1]
        with pytest.raises(InvalidParameter, match="a store knows them by their names"):
            compare(ID, [make_policy("queue-delay/fcfs")], **how)


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
    assert base != depends_on(ID, {"tasks": 5}, label="b", options={})
    with pytest.raises(InvalidParameter, match="a: not JSON data"):
        depends_on(ID, {"tasks": 5}, label="a", options={"norm": object()})
