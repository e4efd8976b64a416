"""Figures of "Online Multi-Resource Allocation for Deadline Sensitive Jobs with Partial Values" (zheng2016).

The workload is synthetic, and the paper describes it but for one point (``readings.yaml``). So the small
scale also has the paper's sizes, only with fewer points on the x axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.problem import Statement
from schedgym.papers import Evaluation, Judged, Outcome, Panel, Run, Series
from schedgym.papers.figures import lines
from schedgym.papers.judging import PERCENT, POINTS, excess, grows, judge_better, judge_claim, level
from schedgym.papers.registry import figures_of
from schedgym.papers.zheng2016.instances import OPEN

figure = figures_of("zheng2016")
ID = "schedgym/PartialValue-v0"
CONTINUOUS = {"Algorithm 1": "concave"}
DISCRETE = {"m-greedy": "m-greedy", "primal-dual": "primal-dual"}
SINGLE = {"deadline-aware": "deadline-aware"}
HEURISTICS = {"s-greedy": "s-greedy", "equal-opp": "equal-opp"}
OFFLINE, UPPER = "offline optimum", "upper bound"
NEAR = 0.05  # less is "close" and "similar", more is "clearly" and "much": the paper puts no numbers to them
SHORT = 2.0  # windows [slots] up to which the optimum must be near
SAME = 0.01  # curves that differ by less cannot be told apart
WINDOW = "mean availability window size [slots]"
VALUE = "utility gain (total value of all jobs)"


# runs ------------------------------------------------------------------------------------------------


def _play(
    run: Run, policies: Mapping[str, str], grid: Mapping[str, Sequence[float]], **parameters: Any
) -> Evaluation:
    """Run policies and the heuristics under the reading of this run.

    With a single resource it makes no difference: all tasks need the same, and none fits after a misfit.
    """
    episodes, jobs = run.size(10, 10, 2), run.size(100, 100, 20)
    options = {}
    if "single" not in parameters:
        parameters["heavy"] = run.choice(OPEN["HEAVY"])
        if "model" in parameters and run.choice(OPEN["MISFIT"]):
            options = {name: {"skip": True} for name in HEURISTICS}
    own = {"jobs": jobs, **parameters}
    return run.play(ID, {**policies, **HEURISTICS}, episodes, grid, parameters=own, options=options)


def _windows(run: Run) -> dict[str, list[float]]:
    every = [float(window) for window in range(1, 16)]
    return {"windows": run.size([1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0], every, [1.0, 6.0])}


def _few_windows(run: Run) -> dict[str, list[float]]:
    return {"windows": run.size([1.0, 6.0, 15.0], [1.0, 6.0, 15.0], [1.0, 6.0])}


def _places(played: Evaluation) -> list[float]:
    """Return the swept values."""
    return [float(value) for setting, _ in played.parts() for value in setting.values()]


def _values(played: Evaluation, policy: str, metric: str = "value") -> Floats:
    """Return a metric of a policy's runs [places, episodes]."""
    return np.array([played.metric(policy, metric, **setting) for setting, _ in played.parts()])


def _lead(run: Run, played: Evaluation, policy: str, rival: str) -> Floats:
    """Return by how much a policy has more value than a rival [places, episodes].

    It is a share of the rival's value, at each place or, if differences are compared, at the first.
    """
    own, other = _values(played, policy), _values(played, rival)
    lead: Floats = (own - other) / (other if run.choice(OPEN["IMPROVEMENT"]) == "share" else other[:1])
    return lead


def _leads(run: Run, played: Evaluation, policies: Iterable[str], rival: str) -> dict[str, Floats]:
    """Return the leads of policies by what they are called."""
    share = run.choice(OPEN["IMPROVEMENT"]) == "share"
    base = "" if share else f" (of {rival}'s value at {_places(played)[0]:g})"
    return {f"lead of {policy}{base}": _lead(run, played, policy, rival) for policy in policies}


def _gap(played: Evaluation, policy: str) -> Floats:
    """Return by which share of a policy's value the bound is above it [places, episodes]."""
    gap: Floats = _values(played, policy, "bound") / _values(played, policy) - 1.0
    return gap


# statements ------------------------------------------------------------------------------------------


def _better(played: Evaluation, claim: str, policies: Iterable[str], by: float = NEAR) -> Judged:
    """Judge that policies have more value than both heuristics in every setting."""
    said = [Statement("", policy, tuple(HEURISTICS), "value", by) for policy in policies]
    return judge_better(played, claim, *said)


def _rising(played: Evaluation, claim: str, found: Mapping[str, Floats], unit: str = POINTS) -> Judged:
    """Judge that every one of several quantities [places, episodes], by name, rises along the x axis."""
    places = _places(played)
    what, more = f"from {places[0]:g} to {places[-1]:g}", ""
    if unit == POINTS:
        ends = (f"{name} {100 * v[0].mean():.1f}% to {100 * v[-1].mean():.1f}%" for name, v in found.items())
        more = ", ".join(ends)
    rises = [grows(name, values, unit) for name, values in found.items()]
    return judge_claim(claim, rises, what=what, more=more)


def _more_with_window(played: Evaluation, **others: Floats) -> Judged:
    values = {policy: _values(played, policy) for policy in played.policies} | others
    return _rising(played, "all algorithms have more value where windows are longer", values, PERCENT)


def _level(played: Evaluation, claim: str, name: str, own: Floats, other: Floats) -> Judged:
    """Judge that the means of two tables [places, episodes] are within NEAR of each other at every place."""
    rows = zip(_places(played), own, other, strict=False)
    return judge_claim(claim, [excess(name, mine, its, f"at {x:g}") for x, mine, its in rows], level(NEAR))


def _alike(played: Evaluation) -> Judged:
    own, other = (_values(played, policy) for policy in ("primal-dual", "m-greedy"))
    claim = "the two versions of Algorithm 2 perform alike"
    return _level(played, claim, "primal-dual against m-greedy", own, other)


# figures ---------------------------------------------------------------------------------------------


def _coinciding(played: Evaluation) -> list[str]:
    """Name the curves that cannot be told apart, and where."""
    told = []
    means = {policy: _values(played, policy).mean(axis=1) for policy in played.policies}
    for one, other in itertools.combinations(means, 2):
        apart = np.abs(means[one] / means[other] - 1.0)
        near = apart < SAME
        if near.any():
            places = ", ".join(f"{x:g}" for x, same in zip(_places(played), near, strict=True) if same)
            where = "everywhere" if near.all() else f"at {places}"
            told.append(f"{one} and {other} coincide {where}: they differ by {apart[near].max():.1%} at most")
    return told


def _outcome(played: Evaluation, x: str, bound: str, said: Sequence[Judged], sizes: str = "") -> Outcome:
    """Return a figure of one panel with all policies and the bound."""
    table = played.summary("bound")
    rows = table[table["policy"] == played.policies[0]]
    mean, low, high = (rows[name].tolist() for name in ("mean", "low", "high"))
    series = [
        *lines(played, played.swept[0]),
        Series(bound, _places(played), mean, low, high, bound=True),
    ]
    own = f"{played.episodes} draws of {played.parameters['jobs']} jobs{sizes}"
    return Outcome([Panel(x, VALUE, series)], said, own, _coinciding(played))


@figure("fig2a")
def _continuous(run: Run) -> Outcome:
    grid = _windows(run)
    played = _play(run, CONTINUOUS, grid)
    few = {"windows": run.size([1.0, 6.0, 15.0], grid["windows"], [1.0, 6.0])}
    logarithmic = _play(run, CONTINUOUS, few, utility="log")
    bounds, own = _values(played, "Algorithm 1", "bound"), _values(played, "Algorithm 1")
    short = sum(window <= SHORT for window in _places(played))
    said = [
        _better(played, "Algorithm 1 has much more value than both heuristics at every window", CONTINUOUS),
        _more_with_window(played, **{OFFLINE: bounds}),
        _level(
            played,
            "Algorithm 1 is close to the offline optimum where windows are short",
            "offline optimum against Algorithm 1",
            bounds[:short],
            own[:short],
        ),
        _rising(
            played,
            "the gap to the offline optimum grows with the window",
            {"gap": _gap(played, "Algorithm 1")},
        ),
        _better(logarithmic, "the order is the same with logarithmic utilities", CONTINUOUS, 0.0),
    ]
    return _outcome(played, WINDOW, OFFLINE, said)


@figure("fig2b")
def _discrete(run: Run) -> Outcome:
    played = _play(run, DISCRETE, _windows(run), model="discrete")
    logarithmic = _play(run, DISCRETE, _few_windows(run), model="discrete", utility="log")
    said = [
        _better(played, "both versions of Algorithm 2 have much more value than both heuristics", DISCRETE),
        _more_with_window(played),
        _alike(played),
        _better(logarithmic, "the order is the same with logarithmic utilities", DISCRETE, 0.0),
    ]
    return _outcome(played, WINDOW, UPPER, said)


@figure("fig2c")
def _heterogeneity(run: Run) -> Outcome:
    largest = run.size(
        [1.0, 2.0, 4.0, 8.0, 12.0, 16.0], [1.0, *(float(r) for r in range(2, 17, 2))], [1.0, 8.0]
    )
    grid = {"heterogeneity": largest}
    played = _play(run, DISCRETE, grid, model="discrete", windows=6.0)
    few = {"heterogeneity": run.size([1.0, 8.0, 16.0], [1.0, 8.0, 16.0], [1.0, 8.0])}
    both = {"": played}
    both[", with logarithmic utilities, too"] = _play(
        run, DISCRETE, few, model="discrete", windows=6.0, utility="log"
    )
    said = [
        _rising(
            one, f"the lead of Algorithm 2 over {rival} grows with R{too}", _leads(run, one, DISCRETE, rival)
        )
        for too, one in both.items()
        for rival in HEURISTICS
    ]
    x = "R (demands for the heavy resource are uniform in [1, R])"
    return _outcome(played, x, UPPER, [*said, _alike(played)], ", mean window of 6 slots")


@figure("fig2d")
def _single(run: Run) -> Outcome:
    played = _play(run, SINGLE, _windows(run), single=True)
    leads = _leads(run, played, SINGLE, "s-greedy")
    claim = "the lead of Algorithm 3 over the greedy algorithm grows with the window"
    logarithmic = _play(run, SINGLE, _few_windows(run), single=True, utility="log")
    said = [
        _rising(played, claim, leads),
        _rising(
            logarithmic,
            "this lead grows with logarithmic utilities, too",
            _leads(run, logarithmic, SINGLE, "s-greedy"),
        ),
    ]
    return _outcome(played, WINDOW, OFFLINE, said)
