"""Benchmarks: what every problem lists can be run, and the command prints and writes it."""

import json

import pytest

from benchmarks import cases as listed
from benchmarks.__main__ import main
from schedgym import cli
from schedgym.core.problem import list_problems
from schedgym.errors import UnknownName
from schedgym.evaluation import bench
from schedgym.evaluation.bench import Benchmark
from tests.long import long, some, weekly
from tests.tables import entry
from tests.test_all_problems import IDS

ENTRIES = [(problem, id) for problem in list_problems().values() for id in problem.ids]
CASES = [case for entry in ENTRIES for case in listed.cases(*entry)]
#: those that a user sees
SEEN = [case for entry in ENTRIES for case in bench.cases(*entry)]
ID = "schedgym/QueueDelay-v0"


@pytest.mark.parametrize("case", some([*CASES, *SEEN], of=6, late=4))
def test_every_case_runs(case: Benchmark) -> None:
    if case.policy:
        if not case.slow:
            seconds, steps = bench.episode(case)
            assert 0 < seconds and steps >= 1
    elif case.num_envs:
        rate, loop, episodes = bench.vector_rate(case, 30)
        assert rate > loop > 0 and episodes >= 0
    else:
        assert bench.scalar_rate(case, 300) > 0


def test_names_are_told_apart_and_belong_to_an_id() -> None:
    assert len({(case.id, case.name) for case in CASES}) == len(CASES)
    for problem in list_problems().values():
        assert {case.id for case in listed.listed(problem).CASES} <= set(problem.ids)


@pytest.fixture
def fast(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("SCALAR_STEPS", "VECTOR_STEPS"):
        monkeypatch.setattr(bench, name, 20)
    times = {"import": 0.1, "first step, cold": 3.0, "first step, cached": 0.5}
    monkeypatch.setattr(bench, "cold_start", lambda id: times)
    monkeypatch.setattr(bench, "episode", lambda case: (0.25, 100))
    monkeypatch.setattr(bench, "vector_rate", lambda case, steps: (2e6, 1e6, steps))
    return tmp_path


def test_the_command_prints_and_writes_one_id(fast, capsys) -> None:
    assert main(["speed", ID, "--quick", "--json", "o.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "one process, one core but for threads; medians of 1 runs; autoreset NextStep",
        ID,
    ]
    assert [line.split("  ")[0] for line in lines[2:6]] == entry(__file__, "lines")
    assert lines[6].startswith("QueueDelay pick, features, gym.make (200 tasks, 8 servers, window 32, ")
    assert "target >= 0.6 x" in lines[6] and "ratio" in lines[6]
    assert lines[8].startswith("vector environment, 256 envs, pick, features, 10/s, copies  ")
    assert "2,000,000 steps/s  target >= 3e6" in lines[8] and "episodes 10  loop 1,000,000" in lines[8]
    assert (
        lines[-1].startswith("bf-exec, 2000 tasks, 10 servers, 10/s, window all, zero-copy")
        and "steps 100" in lines[-1]
    )
    rows = json.loads((fast / "o.json").read_text())["benchmark"]
    assert len(rows) == len(lines) - 2
    first = {"id": ID, "what": "import [subprocess]", "value": 0.1, "unit": "s"}
    assert rows[0] == {**first, "target": "<= 0.5", "runs": [0.1]}
    assert rows[6]["loop"] == 1_000_000  # a number, however it is printed


def test_the_command_without_an_id_runs_all(fast, capsys, monkeypatch) -> None:
    monkeypatch.setattr(bench, "scalar_rate", lambda case, steps: 1e5)
    assert main(["speed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in IDS] == IDS
    assert len([line for line in lines if line.startswith("bf-exec, 24024 tasks")]) == 2


def test_a_user_sees_either_kind_of_environment_and_a_baseline(fast, capsys) -> None:
    assert cli.main(["bench", ID, "--json", "o.json"]) == 0
    rows = json.loads((fast / "o.json").read_text())["benchmark"]
    kinds = ("dict", "features")
    assert [row["what"] for row in rows[3:]] == [
        "CartPole-v1, gym.make",
        *(f"gym.make, observation {kind}" for kind in kinds),
        *(f"gym.make_vec, 256 environments, observation {kind}" for kind in kinds),
        "bf-exec, an episode, zero-copy",
    ]
    assert all(row["value"] > 0 for row in rows)


def test_names_are_checked() -> None:
    with pytest.raises(UnknownName, match="did you mean"):
        bench.main("schedgym/QueueDelay-v9")
    assert cli.main(["bench", "queue-delai"]) == 2


@long
@weekly
def test_the_cold_start_is_measured_in_a_process_of_its_own() -> None:
    times = bench.cold_start(ID)
    assert sorted(times) == ["first step, cached", "first step, cold", "import"]
    assert 0 < times["first step, cached"] < times["first step, cold"] and times["import"] > 0
