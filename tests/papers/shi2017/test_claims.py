"""The claims of shi2017: families and generators by hand, what was measured, and fat trees."""

from __future__ import annotations

from fractions import Fraction as F

import networkx
import pytest

from schedgym.papers import Verdict, list_claims
from schedgym.papers.readings import name_reading
from schedgym.papers.shi2017.instances import OPEN, read_job
from schedgym.papers.shi2017.many_jobs import READINGS, _mean_tasks
from schedgym.papers.shi2017.model import one_job, online
from schedgym.papers.shi2017.one_job import fat_tree_network
from schedgym.papers.shi2017.placement import _two_tasks
from schedgym.problems.parallel_jct.workload import size_moments
from tests.long import long, weekly
from tests.papers.recorded import instance_of

MAR, SIZING = (OPEN[name] for name in ("MAR", "SIZING"))

pytestmark = long

PAPER = "shi2017"


def figures_of(results, name):
    return results[f"{PAPER}/{name}"].finding.figures


@pytest.mark.parametrize("n", [4, 40, 400])
def test_tapra_fast_is_within_no_factor(n) -> None:
    job = _two_tasks(n)
    assert one_job.tapra_fast(job).evaluation.jct == n
    assert one_job.tapra(job).evaluation.jct == 2 == one_job.best(job)[0]


def test_jobs_that_wait_for_ever(results) -> None:
    """FCFS at arrivals and completions: the one job fails, and nothing calls again; ticks do."""
    job = read_job(instance_of(results["shi2017/fcfs-arrivals"]))
    limits = (one_job.Limit("server", (0,), F(1)),)
    workload = online.Workload((online.Job(0, job.load, job.efficiency),), (F(1),), limits)
    ratio = float(job.energy_cap / sum(job.load))
    run = online.Simulation(workload, "fcfs", draw=lambda *_: 10 * (ratio - 1), max_time=1000).run()
    assert run.finish == [None] and run.failures == 1
    lucky = online.Simulation(workload, "slf", draw=lambda _, number: 0.9 if number else 0.0).run()
    assert lucky.finish == [F(10) + F(20, 19)] and lucky.failures == 1
    assert one_job.tapra_fast(read_job(instance_of(results["shi2017/algorithm-4"]))) is None
    finished = figures_of(results, "fcfs-arrivals")["alone_of_8"]
    assert finished["fcfs"] < finished["slf"] == 8


def test_weibull(results) -> None:
    """The specification's means, and those of the generator."""
    wanted = {"scale-half": 1.25, "shape-half": 2.29, "x70": 30.3}
    for name, mean in wanted.items():
        assert _mean_tasks(*READINGS[name], 70) == pytest.approx(mean, rel=0.005)
        assert _mean_tasks(*READINGS[name], 70) == pytest.approx(size_moments(name, 70)[0])
    assert _mean_tasks(1, 0.5, 0.8, 200) == pytest.approx(_mean_tasks(1, 0.5, 0.8, 70))


@weekly
def test_weibull_sizes_beyond_the_cap(results) -> None:
    assert figures_of(results, "weibull")["capped"]["x70"] == pytest.approx(0.175, abs=0.005)


# figures -----------------------------------------------------------------------------------------------


@weekly
def test_figures(results) -> None:
    """The specification's numbers, of other runs."""
    (_, by_eq_16) = results[f"{PAPER}/figure-4a"].findings.values()
    assert figures_of(results, "figure-4a")["Min-Min against TaPRA"][0] == pytest.approx(1.0, abs=0.25)
    assert by_eq_16.figures["Min-Min against TaPRA"][2] < 0.15
    ((least, low, _),) = figures_of(results, "figure-4a-equal-shares").values()
    assert least > low > 0.6
    assert figures_of(results, "fast-within-5-percent")["median"] < 1.05


@weekly
def test_figure_6(results) -> None:
    tested = figures_of(results, "figure-6a-drc")
    excess = [tested[f"{scheduler} against OnTaPRA"][0] for scheduler in ("SLF", "FCFS", "LLF")]
    assert 0 < excess[0] < 0.15 < excess[1] < excess[2] < 2.2
    impact = figures_of(results, "drc-impact")
    assert all(low > 0 for _, low, _ in impact.values())
    assert impact["OnTaPRA"][0] == pytest.approx(0.4, abs=0.2)


@weekly
def test_readings_that_turn_verdicts(results) -> None:
    """Sizes by equal shares, and the MAR test of all, are the defaults: more of the paper's numbers hold."""
    kinds = (Verdict.NOT_REPRODUCED, Verdict.IN_PART, Verdict.HOLDS)
    for point in (SIZING, MAR):
        for other in set(point.choices) - {point.default}:
            better = worse = 0
            for entry in list_claims(PAPER):
                if point in entry.under:
                    findings = results[entry.name].findings
                    defaults = {p.name: p.default for p in entry.under}
                    own, turned = (
                        findings[name_reading(defaults | {point.name: choice})]
                        for choice in (point.default, other)
                    )
                    step = kinds.index(own.verdict) - kinds.index(turned.verdict)
                    better, worse = better + (step > 0), worse + (step < 0)
            assert better > worse


@pytest.mark.parametrize("arity", [2, 4, 6, 12])
def test_the_network_is_a_fat_tree(arity: int) -> None:
    graph = fat_tree_network(arity)
    levels = dict(graph.nodes(data="level"))
    counts = [list(levels.values()).count(level) for level in range(4)]
    assert counts == [arity**3 // 4, arity**2 // 2, arity**2 // 2, arity**2 // 4]
    for node, level in levels.items():
        assert graph.degree(node) == (1 if level == 0 else arity), node
        assert all(abs(levels[other] - level) == 1 for other in graph[node])
    # between servers of two pods there is a path for each core switch
    if arity <= 6:
        for switch in [node for node, level in levels.items() if level == 3]:
            rest = graph.subgraph([node for node, level in levels.items() if level < 3] + [switch])
            assert networkx.is_connected(rest)
