"""Growth: fits of known powers, episodes of growing size, what is said of them, and every problem's axes."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from benchmarks import growth
from benchmarks.cases import Growth
from schedgym.core.problem import get_problem, list_problems
from schedgym.evaluation.plan import default_policies

ID = "schedgym/QueueDelay-v0"
IDS = [(name, id) for name, problem in list_problems().items() for id in problem.ids]
SMALL = Growth(
    id=ID,
    name="tasks",
    sizes=(5, 10, 20),
    parameters=lambda size: {"tasks": size, "servers": 2},
    expected={"": (9, 9), "fcfs": (-9, 9)},
    why="a test",
)


def test_exponents() -> None:
    sizes = [10, 100, 1000, 10_000]
    assert growth.exponent(sizes, [3 * n**1.5 for n in sizes]) == pytest.approx(1.5)
    # small sizes do not count: there a constant hides what grows
    assert growth.exponent(sizes, [1e9, 1e9, 1000.0**2, 10_000.0**2]) == pytest.approx(2)
    assert growth.exponent(sizes[:2], [1, 10]) == pytest.approx(1)
    assert math.isnan(growth.exponent([10], [1]))


def test_episodes_grow() -> None:
    points = list(growth.grow(SMALL, "bf-exec"))
    assert [point.size for point in points] == [5, 10, 20]
    assert all(point.policy > 0 and point.env > 0 for point in points)
    assert points[0].steps < points[1].steps < points[2].steps
    # one that would take too long is left out
    assert [point.size for point in growth.grow(SMALL, "bf-exec", limit=0.0)] == [5]


def test_verdicts() -> None:
    def points(power: float, scale: float = 1.0) -> list[growth.Point]:
        return [growth.Point(n, n, scale * n**power, scale * n) for n in (10, 100, 1000)]

    assert growth._verdict(points(1.2), (1, 1))[2] == "as expected"
    policy, env, said = growth._verdict(points(1.4), (1, 1))
    assert (round(policy, 6), round(env, 6), said) == (1.4, 1, "above: policy")
    assert growth._verdict(points(2), (2, 0.5))[2] == "above: environment"
    assert growth._verdict(points(2), (1, 0))[2] == "above: policy, environment"
    assert growth._verdict(points(2, 1e-12), (1, 0))[2] == "as expected", "too short to tell"
    assert growth._verdict(points(1)[:1], (1, 1))[2] == "too slow to tell"


def test_the_table(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setattr(growth, "axes", lambda problem, id: [SMALL])
    monkeypatch.setattr(growth, "LEAST", 0.0)
    result = growth.main(ID, quick=True, json=tmp_path / "growth.json")
    told = capsys.readouterr().out
    assert f"{ID}, tasks: a test" in told and "as expected" in told and "above: policy" in told
    assert json.loads((tmp_path / "growth.json").read_text()) == json.loads(json.dumps(result))
    policies = [row["policy"] for row in result["growth"]]
    assert policies == default_policies(get_problem(ID), ID, [{}])
    assert {len(row["points"]) for row in result["growth"]} == {3}


@pytest.mark.parametrize(("name", "id"), IDS)
def test_every_id_says_what_grows(name: str, id: str) -> None:
    problem = get_problem(name)
    found = growth.axes(problem, id)
    assert len(found) >= 2
    for axis in found:
        assert list(axis.sizes) == sorted(set(axis.sizes)) and len(axis.sizes) >= 3
        known = default_policies(problem, id, [axis.parameters(axis.sizes[0])])
        assert set(axis.expected) <= {"", *known}, "exponents of policies that are not run"
        for size in axis.sizes:
            built = problem.build(id, {**problem.ids[id].baseline_parameters, **axis.parameters(size)})
            assert dataclasses.is_dataclass(built)
