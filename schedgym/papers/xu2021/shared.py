"""Series, panels and judged statements that several figures share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from schedgym.core.problem import Statement
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import HOLDS, IN_PART, NOT_REPRODUCED, Evaluation, Judged, Panel, Run, Series
from schedgym.papers.figures import band
from schedgym.papers.judging import Effect, against, judge_better
from schedgym.papers.xu2021.curves import Sizes
from schedgym.papers.xu2021.instances import GAMMA
from schedgym.papers.xu2021.readings import NORM
from schedgym.papers.xu2021.runs import OCORP, OCORP_M, RULES, SLOT
from schedgym.problems.flowtime.problem import PROBLEM

F8 = npt.NDArray[np.float64]

HOUR = 3600.0  # s
NAMES = {"ocorp": OCORP, "ocorp+m": OCORP_M, **{name: label for label, name in RULES.items()}}
#: classes of processing times [slots], some five of them per factor of ten
CLASSES = np.array([1, 2, 3, 5, 8, 12, 20, 35, 60, 101, 150, 250, 400, 650, 1000, 1500, 2200, 3400]) - 0.5

# rules of verdicts, where the paper names no number
MOSTLY = 0.95  # share that is "most"
LONGEST = 0.6  # of the longest processing time: about the paper's 20000 s, as in the metric waiting_longest


# what is drawn ----------------------------------------------------------------------------------------


def mean_curve(played: Evaluation, policy: str, name: str, label: str = "", factor: float = 1.0) -> Series:
    """Return the mean curve of a policy over time [s]; after its end, an episode keeps its last value."""
    step = played.values(policy, "step")[0]
    count = max(len(curve) for entry in played.policies for curve in played.values(entry, name))
    padded = [np.pad(curve, (0, count - len(curve)), mode="edge") for curve in played.values(policy, name)]
    return band(label or policy, np.arange(count) * step * SLOT, [factor * curve for curve in padded])


def norm_curves(played: Evaluation, policies: Sequence[str], fractional: str = "") -> list[Series]:
    """Return norms so far [s] of policies, one policy's fractional norm, and the paper's lower bound."""
    series = [mean_curve(played, policy, "flowtime", factor=SLOT) for policy in policies]
    if fractional:
        series.append(mean_curve(played, fractional, "fractional", f"{fractional}, fractional", SLOT))
    alone = mean_curve(played, policies[0], "alone", factor=SLOT)
    return [*series, Series("lower bound", alone.x, alone.y, bound=True)]


def work_panels(played: Evaluation, policies: Sequence[str]) -> list[Panel]:
    """Return the panel of offered and unfinished work over time [core-h], and one of the latter alone."""
    factor = SLOT / HOUR
    left = [mean_curve(played, policy, "unfinished", factor=factor) for policy in policies]
    offered = mean_curve(played, policies[0], "offered", "offered", factor)
    titles = ("offered and unfinished work", "unfinished work, enlarged")
    return [
        Panel("time [s]", "work [core-h]", series, title=title, kind="curves")
        for title, series in zip(titles, ([*left, offered], left), strict=True)
    ]


def by_class(label: str, episodes: Sequence[Sizes], value: str, factor: float = 1.0) -> Series:
    """Return the least, mean or greatest value over jobs of each class of sizes, averaged over draws.

    Draws without jobs in a class do not count there.

    Args:
        label: label of the series.
        episodes: values by size of each draw.
        value: "least", "mean" or "greatest".
        factor: factor by which values are multiplied.
    """
    found: dict[int, list[float]] = {}
    for sizes in episodes:
        place = np.digitize(sizes.size, CLASSES)
        for x in np.unique(place):
            here = place == x
            own = getattr(sizes, value)[here]
            if value == "mean":
                result = float(np.average(own, weights=sizes.jobs[here]))
            else:
                result = float(own.min() if value == "least" else own.max())
            found.setdefault(int(x), []).append(factor * result)
    places = sorted(found)
    ends = [bootstrap_interval(found[x], resamples=2000) for x in places]
    return Series(
        label,
        [_middle(x) * SLOT for x in places],
        [float(np.mean(found[x])) for x in places],
        [low for low, _ in ends],
        [high for _, high in ends],
    )


def _middle(place: int) -> float:
    """Return the geometric mean of the smallest and the greatest size of a class [slots]."""
    return float(np.sqrt((CLASSES[place - 1] + 0.5) * (CLASSES[place] - 0.5)))


def mean_of_sizes(sizes: Sizes, low: float, high: float = np.inf) -> float:
    """Return the mean over jobs of sizes from ``low`` to below ``high`` [slots]; nan if there are none."""
    here = (sizes.size >= low) & (sizes.size < high)
    return float(np.average(sizes.mean[here], weights=sizes.jobs[here])) if here.any() else float("nan")


def longest_value(sizes: Sizes) -> float:
    """Return the greatest value of jobs with at least 60% of the longest processing time."""
    return float(sizes.greatest[sizes.size >= LONGEST * sizes.size.max()].max())


def wait_panels(played: Evaluation, policies: Sequence[str]) -> list[Panel]:
    """Return panels of the greatest and the least waiting by size."""
    return [
        Panel(
            "processing time [s]",
            f"{value} waiting [s]",
            [by_class(policy, played.values(policy, "waiting"), value, SLOT) for policy in policies],
            title=f"({letter}) {value} waiting of a class of sizes",
            x_scale="log",
            kind="curves",
        )
        for letter, value in (("a", "greatest"), ("b", "least"))
    ]


# what is said -----------------------------------------------------------------------------------------


def metrics_of(played: Evaluation, policies: Sequence[str], metric: str) -> dict[str, F8]:
    """Return a metric of each draw, by policy."""
    return {policy: played.metric(policy, metric) for policy in policies}


def compare_metric(played: Evaluation, policy: str, rivals: Sequence[str], metric: str) -> list[Effect]:
    """Compare a policy's metric with that of others."""
    return against(policy, played.metric(policy, metric), metrics_of(played, rivals, metric))


def judge_stated(run: Run, played: Evaluation, source: str, claim: str, metric: str = "") -> Judged:
    """Judge a statement that the problem declares.

    Args:
        run: the run, under a reading of the norm.
        played: the runs.
        source: the figure.
        claim: the claim in our words.
        metric: metric of the statement, which selects one of the figure's statements.
    """
    (found,) = (
        statement
        for statement in PROBLEM.statements
        if statement.source.endswith(source) and statement.metric == (metric or statement.metric)
    )
    own = run.choice(NORM) if found.metric == "l2" else found.metric
    rivals = tuple(NAMES[rival] for rival in found.rivals)
    return judge_better(played, claim, Statement("", NAMES[found.policy], rivals, own, found.by))


def tell_share(values: npt.ArrayLike, digits: int = 0) -> str:
    """Write the mean of the draws' shares in percent, with its interval."""
    shares = 100 * np.asarray(values, dtype=float)
    low, high = bootstrap_interval(shares)
    text = f"{float(np.mean(shares)):.{digits}f}%"
    return text if np.isnan(low) else f"{text} ({low:.{digits}f} to {high:.{digits}f})"


def tell_seconds(values: Sequence[float] | F8) -> str:
    """Write the mean [s] of values in slots, with its interval."""
    low, high = bootstrap_interval(values)
    text = f"{SLOT * float(np.mean(values)):,.0f} s"
    return text if np.isnan(low) else f"{text} ({SLOT * low:,.0f} to {SLOT * high:,.0f})"


def judge_least_work(run: Run, played: Evaluation, policy: str, source: str) -> Judged:
    """Judge that a policy always has the least unfinished work, by its mean and by the share of time."""
    stated = judge_stated(
        run,
        played,
        source,
        f"{policy} has the least unfinished work of all schemes at all times",
        "mean_unfinished",
    )
    own = np.array(mean_curve(played, policy, "unfinished").y)
    texts, always = [], True
    for rival in RULES.values():
        other = np.array(mean_curve(played, NAMES[rival], "unfinished").y)
        some = (own > 0) | (other > 0)
        held = float((own <= other)[some].mean())
        texts.append(f"{NAMES[rival]} {100 * held:.0f}%")
        always &= held == 1.0
    verdict = IN_PART if stated.verdict == HOLDS and not always else stated.verdict
    text = (
        f"{stated.measured}; share of the time in which its mean is at most that of the other scheme: "
        f"{', '.join(texts)}"
    )
    return Judged(stated.claim, text, verdict)


def judge_done(played: Evaluation, policy: str) -> Judged:
    """Judge that most jobs have finished by Gamma."""
    done = played.values(policy, "done")
    verdict = HOLDS if min(done) >= MOSTLY else IN_PART if float(np.mean(done)) >= MOSTLY else NOT_REPRODUCED
    text = f"{tell_share(done, 1)} of the jobs, and at least {tell_share([min(done)], 1)} in every draw"
    return Judged(f"most jobs have finished by Gamma = {GAMMA} slots under {policy}", text, verdict)
