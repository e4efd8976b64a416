"""The panels of the figures of guan2022: axes, marks and curves as in the thesis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import Evaluation, Outcome, Panel, Run, Series
from schedgym.papers.figures import band, bound
from schedgym.papers.guan2022.runs import RESPONSE, SPREADS, Trace, facebook, google
from schedgym.papers.registry import figures_of

F8 = npt.NDArray[np.float64]

figure = figures_of("guan2022")

SKEW_AXIS, SITES_AXIS = "Zipf skew parameter", "number of available sites"

Make = Callable[[Run, Trace], Outcome]


def register_pair(first: str, second: str) -> Callable[[Make], Make]:
    """Decorate a function that makes a figure of a trace: first of Google's stand-in, then of Facebook."""

    def enter(make: Make) -> Make:
        for name, trace in ((first, google), (second, facebook)):

            def make_one(run: Run, trace: Trace = trace) -> Outcome:
                return make(run, trace)

            figure(name)(make_one)
        return make

    return enter


def _means(played: Evaluation, x: str) -> list[Series]:
    """Mean responses over the only swept parameter; intervals leave out what an episode's policies share."""
    places = sorted({entry.setting[x] for entry in played.observed})
    values = {
        policy: np.array([played.metric(policy, RESPONSE, **{x: place}) for place in places])
        for policy in played.policies
    }
    common = np.mean(list(values.values()), axis=(0, 1))
    series = []
    for policy, own in values.items():
        low, high = zip(*(bootstrap_interval(v - common + common.mean()) for v in own), strict=True)
        series.append(Series(policy, places, own.mean(axis=1).tolist(), low, high))
    return series


def by_utilization(played: Evaluation, x: str, x_label: str) -> list[Panel]:
    """Mean responses over a swept parameter, a panel for each utilisation."""
    panels = []
    for i, utilization in enumerate(dict.fromkeys(entry.setting["utilization"] for entry in played.observed)):
        part = played.where(utilization=utilization)
        series = [*_means(part, x), bound(part, x)]
        title = f"({'abcd'[i]}) utilisation {100 * utilization:.0f}%"
        panels.append(Panel(x_label, "average job response time [s]", series, title=title))
    return panels


def _visible(curves: Sequence[F8]) -> slice:
    """Return the places at which curves of shares are neither all 0 nor all 1, and one more at each end."""
    table = np.array(curves)
    inside = np.flatnonzero((table.max(axis=0) > 0.002) & (table.min(axis=0) < 0.998))
    if not len(inside):
        return slice(None)
    return slice(max(int(inside[0]) - 1, 0), int(inside[-1]) + 2)


def _curves(
    x: str, y: str, title: str, x_scale: str, places: F8, curves: Mapping[str, Sequence[F8]]
) -> Panel:
    seen = _visible([np.mean(own, axis=0) for own in curves.values()])
    series = [band(label, places[seen], [own[seen] for own in shares]) for label, shares in curves.items()]
    return Panel(x, y, series, title, kind="curves", x_scale=x_scale)


def response_curves(title: str, places: F8, curves: Mapping[str, Sequence[F8]]) -> Panel:
    """Draw distributions of responses, from the shares of each episode at ``places`` [s], by label."""
    return _curves("job response time [s]", "share of the jobs", title, "log", places, curves)


def deviation_panel(title: str, curves: Mapping[str, Sequence[F8]]) -> Panel:
    """Draw distributions of the deviation over time, from the shares of each episode at SPREADS, by label."""
    x = "standard deviation of the jobs' allocations [slots]"
    return _curves(x, "share of the time", title, "linear", SPREADS, curves)


def closeness(panels: Sequence[Panel], groups: Mapping[str, Sequence[str]] | None = None) -> str:
    """Say how far apart the curves of panels are, so that lines on top of one another are understood.

    Args:
        panels: curves over the same places each.
        groups: name -> labels of curves that lie close together; None: all curves of a panel do.
    """
    said = []
    for name, labels in (groups or {"a panel": [own.label for own in panels[0].series]}).items():
        tables = ([own.y for own in panel.series if own.label in labels] for panel in panels)
        apart = round(100 * max(float(np.ptp(table, axis=0).max()) for table in tables))
        said.append(f"the curves of {name} lie at most {apart} point{'s' * (apart != 1)} apart")
    return f"{' and '.join(said)}, so that they cover each other"
