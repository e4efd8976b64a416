"""The figures of zheng2016: all are there, what is written agrees with what is drawn, numbers recomputed."""

from __future__ import annotations

import numpy as np
import pytest

from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.runner import evaluate
from schedgym.papers import list_claims, list_figures
from schedgym.papers.judging import HOLDS, IN_PART, NOT_REPRODUCED
from schedgym.papers.zheng2016 import figures
from schedgym.papers.zheng2016.instances import OPEN
from tests.long import long
from tests.partial_value import optima
from tests.partial_value.instances import instance_of
from tests.tables import entry

HEAVY, IMPROVEMENT, MISFIT = (OPEN[name] for name in ("HEAVY", "IMPROVEMENT", "MISFIT"))

pytestmark = long

ID = "schedgym/PartialValue-v0"
SERIES, PARAMETERS = entry(__file__, "SERIES"), entry(__file__, "PARAMETERS")
NAMES = {"Algorithm 1": "concave"}


@pytest.mark.parametrize("name", SERIES)
def test_values_against_other_runs(name, outcomes) -> None:
    (panel,) = outcomes[name].panels
    x, places, parameters = PARAMETERS[name]
    for i, place in enumerate(places):
        own = {"jobs": 20, **parameters, x: place}
        labels = {label: NAMES.get(label, label) for label in SERIES[name][:-1]}
        frame = evaluate(ID, labels, 2, parameters=own, progress=False)
        assert [series.label for series in panel.series] == SERIES[name]
        for series in panel.series[:-1]:
            assert series.x[i] == place
            rows = frame[(frame["policy"] == series.label) & (frame["metric"] == "value")]
            assert series.y[i] == pytest.approx(rows["value"].mean())
            assert series.low[i] <= series.y[i] <= panel.series[-1].y[i]


def test_remarks_of_the_run_stand_where_the_file_says(outcomes) -> None:
    first, second, *others = outcomes["zheng2016/fig2b"].remarks
    assert "chosen here" in first and "divisible tasks" in second
    assert others and all("coincide" in told for told in others)


@pytest.mark.parametrize("name", ["zheng2016/fig2a", "zheng2016/fig2d"])
def test_offline_optimum(name, outcomes) -> None:
    """What is drawn as the optimum is it, by another solver."""
    (panel,) = outcomes[name].panels
    _, places, parameters = PARAMETERS[name]
    for i, place in enumerate(places):
        env = make_env(ID, {"jobs": 20, "windows": place, **parameters})
        values = []
        for episode in range(2):
            env.reset(seed=0, options={"episode": episode})
            workload, model = env.simulator.workload(0), env.simulator.parameters.model
            if model == "discrete":
                values.append(optima.offline_milp(instance_of(workload, True)))
            else:
                values.append(optima.conic_optimum(workload))
        assert panel.series[-1].y[i] == pytest.approx(np.mean(values), rel=1e-6)


@pytest.fixture(scope="module")
def by_demands(run):
    """Runs at R = 1 and 8 in which each job draws its heavy demand."""
    per_job = run.alone("", {HEAVY.name: "heavy demands drawn per job"})
    return figures._play(
        per_job, figures.DISCRETE, {"heterogeneity": [1.0, 8.0]}, model="discrete", windows=6.0
    )


def test_leads_and_gaps(run, by_demands) -> None:
    """By hand from the frame: shares of the rival's value, and of the policy's own."""
    table = by_demands.frame.pivot_table(
        index=["heterogeneity", "episode"], columns=["metric", "policy"], values="value"
    )
    own, rival = (table["value"][name] for name in ("m-greedy", "s-greedy"))
    lead = own / rival - 1.0
    gap = table["bound"]["primal-dual"] / table["value"]["primal-dual"] - 1.0
    assert figures._places(by_demands) == [1.0, 8.0]
    assert figures._lead(run, by_demands, "m-greedy", "s-greedy").ravel() == pytest.approx(lead.to_numpy())
    assert figures._gap(by_demands, "primal-dual").ravel() == pytest.approx(gap.to_numpy())
    assert lead.loc[1.0].to_numpy() == pytest.approx(0.0)  # all tasks are alike: both are the same greedy
    assert (lead.loc[8.0] > 0.05).all()
    # as a difference, in units of the rival's value at R = 1
    other = run.alone("", {IMPROVEMENT.name: "improvement as a difference"})
    found = figures._lead(other, by_demands, "m-greedy", "s-greedy")
    expected = (own - rival).loc[8.0].to_numpy() / rival.loc[1.0].to_numpy()
    assert found[0] == pytest.approx(0.0) and found[1] == pytest.approx(expected)


def test_readings_change_what_they_name(run, by_demands) -> None:
    """Heavy demands change all policies where R > 1, misfits the heuristics alone."""
    grid = {"heterogeneity": [1.0, 8.0]}
    default = figures._play(run, figures.DISCRETE, grid, model="discrete", windows=6.0)
    skipping = run.alone("", {MISFIT.name: "heuristics pass over misfits"})
    skipped = figures._play(skipping, figures.DISCRETE, grid, model="discrete", windows=6.0)
    for policy in default.policies:
        own, other = (figures._values(played, policy) for played in (default, by_demands))
        assert own[0] == pytest.approx(other[0]) and (own[1] != other[1]).all()
        passed = figures._values(skipped, policy)
        assert (passed >= own).all() and (passed > own).any() == (policy in figures.HEURISTICS)
    single = (
        figures._play(reading, figures.SINGLE, {"windows": [6.0]}, single=True) for reading in (run, skipping)
    )
    one, other = (figures._values(played, "s-greedy") for played in single)
    assert (one == other).all()


def test_coinciding_curves_are_named(by_demands) -> None:
    told = figures._coinciding(by_demands)
    means = {name: figures._values(by_demands, name).mean(axis=1) for name in ("m-greedy", "primal-dual")}
    apart = np.abs(means["m-greedy"] / means["primal-dual"] - 1.0).max()
    assert apart < figures.SAME
    assert told[0] == f"m-greedy and primal-dual coincide everywhere: they differ by {apart:.1%} at most"
    assert "m-greedy and s-greedy coincide at 1: they differ by 0.0% at most" in told


def test_every_open_point_is_used() -> None:
    used = {
        point for entry in (*list_claims("zheng2016"), *list_figures("zheng2016")) for point in entry.under
    }
    assert used == set(OPEN.values())


def test_statements_over_the_places(by_demands) -> None:
    base, played = np.random.default_rng(0).uniform(5.0, 6.0, size=10), by_demands
    own = np.array([base, base])
    rise = figures._rising(played, "", {"a": own * [[1.0], [1.5]], "b": own}, figures.PERCENT)
    assert rise.verdict == IN_PART
    assert rise.measured == "from 1 to 8: a +50.0% (+50.0 to +50.0); b 0.0% (0.0 to 0.0)"
    for factor, verdict in ((1.04, HOLDS), (1.06, NOT_REPRODUCED)):
        assert figures._level(played, "", "a against b", own * factor, own).verdict == verdict
    mixed = figures._level(played, "", "a against b", own * [[1.0], [1.1]], own)
    assert mixed.verdict == IN_PART
    assert mixed.measured == "a against b 0.0% (0.0 to 0.0) at 1, +10.0% (+10.0 to +10.0) at 8"
