"""Figures of "Energy-aware Scheduling of Embarrassingly Parallel Jobs and Resource Allocation" (shi2017).

Two things that the paper leaves open decide its numbers, and each is shown both ways: how Min-Min, MM-GA and
GSA size tasks (as TaPRA does, by Eq. 16, or by equal shares of every limit), and whether the rivals of
OnTaPRA make its MAR test.

Running times are those of compiled code on a machine that may do other work. They are given as medians with
intervals from order statistics, and compared within episodes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from schedgym.core.problem import Statement
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import Judged, Outcome, Panel, Played, Run, Series, figure, get_paper
from schedgym.papers.figures import bound, lines
from schedgym.papers.judging import Comparison, compare, grows, judge_better, judge_claim, larger, level

__all__ = ["PAPER", "median_interval"]

F8 = npt.NDArray[np.float64]

PAPER = get_paper("shi2017")
OFFLINE, ONLINE = "schedgym/SingleJob-v0", "schedgym/ParallelJCT-v0"
TAPRA = {"TaPRA": "tapra", "TaPRA-fast": "tapra-fast"}
RIVALS = {"Min-Min": "min-min", "MM-GA": "mm-ga", "GSA": "gsa"}
GENETIC = ("MM-GA", "GSA")
SCHEDULERS = {"OnTaPRA": "ontapra", "SLF": "slf", "FCFS": "fcfs", "LLF": "llf"}
OTHERS = ("SLF", "FCFS", "LLF")
EQUAL, WITHOUT_MAR = ", equal shares", ", no MAR test"

#: label of a reading -> what it adds to the rivals' labels
SHARES = {"Eq. 16 for all": "", "equal shares for the rivals": EQUAL}
TESTS = {"MAR test for all": "", "MAR test for OnTaPRA only": WITHOUT_MAR}
DRC = {True: "DRC", False: "NDRC"}

ANY = 1.0  # factor of claims without a number
ALMOST = 0.05  # "almost the same", to which the paper puts this number elsewhere
SIMILAR = 0.10  # "similar", to which it puts none
FAR = 2.0  # a factor this many times as large as the stated one is another number than the paper's

JCT = "average JCT [s]"
LONGEST = 1e7  # s after which an episode is truncated: later than any ends

_SIZING = (
    "the paper does not say how Min-Min, MM-GA and GSA size tasks: once by Eq. 16, once by equal shares of "
    "every limit"
)
_SERVERS = "each server's own vCPU is a limit, too: the paper's list of limits leaves it out"
_SEARCH = "MM-GA and GSA have populations of 30 and 60 generations: the paper gives no sizes"
_CLOCK = "running times are medians, of compiled planners on a shared machine: only ratios are compared"
ONE_JOB = (
    _SIZING,
    _SERVERS,
    "an energy cap that no placement meets is drawn again: the paper does not say what it does then",
    _SEARCH,
    _CLOCK,
)
MANY_JOBS: tuple[str, ...] = (
    "DRC: running tasks share the capacity that no job has reserved, NDRC: they do not; the MAR test ends a "
    "round of launches when little capacity is available",
    "numbers of tasks: 70 times a Weibull variable of scale 0.5 and shape 0.8, at most 70: of the ways to "
    "read the paper's parameters the one in which jobs have to wait",
    "the paper describes the MAR test for OnTaPRA: once all schedulers make it, once OnTaPRA only",
    _SIZING,
    _SERVERS,
    "ticks of 10 s and a MAR threshold of 30% are ours: the paper gives neither",
    "FCFS also decides when tasks complete: by arrivals alone, as described, the last jobs never start",
    _SEARCH,
    _CLOCK,
)


# numbers ---------------------------------------------------------------------------------------------


def median_interval(values: Sequence[float] | F8, confidence: float = 0.95) -> tuple[float, float]:
    """Return a distribution-free confidence interval of the median between two order statistics.

    Args:
        values: one number per episode.
        confidence: least confidence, between 0 and 1.

    Returns:
        (low, high) in the unit of the values; (nan, nan) for too few values (of 95%: fewer than six).
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    cut = int(binom.ppf((1.0 - confidence) / 2.0, len(ordered), 0.5))
    if cut == 0:
        return float("nan"), float("nan")
    return float(ordered[cut - 1]), float(ordered[len(ordered) - cut])


#: label of a policy -> its episodes' values
Read = Callable[[str], F8]


def _metric(played: Played, metric: str, **setting: Any) -> Read:
    return lambda label: played.metric(label, metric, **setting)


def _seconds(played: Played, **setting: Any) -> Read:
    """Read the time [s] that policies took for all their decisions."""
    observed = played.where(**setting).observed
    return lambda label: np.array([entry.seconds for entry in observed if entry.policy == label])


def _medians_of(name: str, own: F8, other: F8) -> Comparison:
    """Compare times by the median of the ratios of the episodes, minus 1, with its interval."""
    ratios = own / other - 1.0
    return Comparison(name, float(np.median(ratios)), *median_interval(ratios))


def _against(
    read: Read,
    more: Iterable[str],
    less: Iterable[str],
    stated: Mapping[str, float] | float = ANY,
    make: Callable[[str, F8, F8], Comparison] = compare,
) -> list[Comparison]:
    """Judge for each pair of policies if one is larger than the other by the factor that the paper states.

    Args:
        read: values by label.
        more: labels of the policies with the larger values.
        less: labels of the policies with the smaller values.
        stated: the factor, or factors by the name of either policy.
        make: makes a comparison.
    """
    found = []
    for low in less:
        for high in more:
            names = [label.removesuffix(EQUAL).removesuffix(WITHOUT_MAR) for label in (high, low)]
            known = dict.fromkeys(names, stated) if isinstance(stated, float) else stated
            factor = next((known[name] for name in names if name in known), ANY)
            found.append(_larger(make(" against ".join(names), read(high), read(low)), factor))
    return found


def _larger(found: Comparison, stated: float) -> Comparison:
    """Judge by the stated factor, if there is one: a factor FAR from it does not confirm the number."""
    rule = larger(stated - 1.0, FAR * stated - 1.0 if stated != ANY else math.inf)
    return dataclasses.replace(found, verdict=rule(found))


def _at(place: str, found: Iterable[Comparison]) -> list[Comparison]:
    return [dataclasses.replace(entry, place=f"at {place}") for entry in found]


def _add(labels: Iterable[str], suffix: str) -> list[str]:
    return [label + suffix for label in labels]


def _told(stated: Mapping[str, float]) -> str:
    """Write the stated factors of a claim."""
    return ", ".join(f"{name} {factor:.3g}" for name, factor in stated.items()) + " times"


# Figs. 4 and 5: one job ------------------------------------------------------------------------------


class _Sizes(NamedTuple):
    """Runs with one job, of growing size or on growing data centres."""

    played: Played
    x: str
    places: list[int]
    episodes: int

    def metric(self, name: str, place: int) -> Read:
        return _metric(self.played, name, **{self.x: place})

    def seconds(self, place: int) -> Read:
        return _seconds(self.played, **{self.x: place})


def _sizes(run: Run, x: str, places: list[int], **parameters: int) -> _Sizes:
    policies = {**TAPRA, **RIVALS, **{label + EQUAL: f"{name}-equal" for label, name in RIVALS.items()}}
    episodes = run.size(10, 50, 2)
    played = run.play(OFFLINE, policies, episodes, {x: places}, parameters=parameters)
    return _Sizes(played, x, places, episodes)


def _on_servers(found: _Sizes) -> _Sizes:
    """Replace the swept arity of fat trees by their number of servers."""
    frame = found.played.frame.rename(columns={"arity": "servers"})
    frame["servers"] = frame["servers"] ** 3 // 4
    frame.attrs = {**found.played.frame.attrs, "swept": ["servers"]}
    observed = [
        dataclasses.replace(entry, setting={"servers": entry.setting["arity"] ** 3 // 4})
        for entry in found.played.observed
    ]
    places = [arity**3 // 4 for arity in found.places]
    return _Sizes(Played(frame, observed), "servers", places, found.episodes)


def _panels(found: _Sizes, x_label: str) -> list[Panel]:
    """Panels of JCT, vCPU and running time in two columns: rivals with Eq. 16, and with equal shares."""
    panels = []
    for letter, y_label in (("a", "JCT [s]"), ("b", "allocated vCPU"), ("c", "running time [s]")):
        for way, suffix in SHARES.items():
            labels = {label: label for label in TAPRA} | {label + suffix: label for label in RIVALS}
            if letter == "a":
                series = [*lines(found.played, found.x, labels=labels), bound(found.played, found.x)]
            elif letter == "b":
                series = lines(found.played, found.x, "allocated", labels=labels)
            else:
                reads = [found.seconds(place) for place in found.places]
                series = [
                    _medians(label, found.places, [read(own) for read in reads])
                    for own, label in labels.items()
                ]
            scale = "log" if letter == "c" else "linear"
            panels.append(Panel(x_label, y_label, series, title=f"({letter}) {way}", y_scale=scale))
    return panels


def _medians(label: str, x: Sequence[Any], episodes: Sequence[F8]) -> Series:
    """Return a series of medians with intervals, one place for each array of episodes."""
    low, high = zip(*(median_interval(values) for values in episodes), strict=True)
    return Series(label, x, [float(np.median(values)) for values in episodes], low, high)


def _smallest(found: _Sizes, way: str, suffix: str) -> Judged:
    said = Statement("", "TaPRA", tuple(_add(RIVALS, suffix)), "jct")
    return judge_better(found.played, f"TaPRA has the smallest JCT ({way})", said)


def _fast_alike(sizes: _Sizes) -> Judged:
    found = []
    for place in sizes.places:
        found += _at(f"{sizes.x} {place}", _against(sizes.metric("jct", place), ["TaPRA-fast"], ["TaPRA"]))
    return judge_claim("TaPRA-fast has almost the same JCT as TaPRA", found, level(ALMOST))


@figure(PAPER, "fig4", title="one job by number of tasks, on 128 servers", source="Fig. 4, section 6.1")
def _tasks(run: Run) -> Outcome:
    places = run.size([40, 70, 100, 150, 200], list(range(40, 201, 20)), [5, 10])
    found = _sizes(run, "tasks", places, arity=run.size(8, 8, 4))
    few, many = places[0], places[-1]
    middle = min(places, key=lambda place: abs(place - 100))
    jct = [found.metric("jct", place) for place in places]
    grown = [grows(label, [read(label) for read in jct]) for label in (*TAPRA, *RIVALS)]
    claim = "JCT grows with the number of tasks"
    said = [judge_claim(claim, grown, what=f"from {few} to {many}"), _fast_alike(found)]
    longer = {"Min-Min": 2.0, "MM-GA": 1.5, "GSA": 1.3}
    slower = {"Min-Min": 4500 / 6, "MM-GA": 4500 / 6, "GSA": 180 / 6}
    for way, suffix in SHARES.items():
        rivals = _add(RIVALS, suffix)
        seconds = found.seconds(middle)
        said += [
            _smallest(found, way, suffix),
            judge_claim(
                f"at {many} tasks JCT exceeds TaPRA's: {_told(longer)} ({way})",
                _against(jct[-1], rivals, ["TaPRA"], longer),
            ),
            judge_claim(
                f"with few tasks ({few}) TaPRA and TaPRA-fast allocate the most vCPU ({way})",
                _against(found.metric("allocated", few), TAPRA, rivals),
            ),
            judge_claim(
                f"with many tasks ({many}) all allocate similar amounts of vCPU ({way})",
                _against(found.metric("allocated", many), TAPRA, rivals),
                level(SIMILAR),
            ),
            judge_claim(
                f"at {middle} tasks planning takes longer than TaPRA and TaPRA-fast: {_told(slower)} ({way})",
                _against(seconds, rivals, TAPRA, slower, _medians_of),
            ),
        ]
    sizes = f"{found.episodes} draws of a job, {run.size(128, 128, 16)} servers"
    return Outcome(_panels(found, "number of tasks"), said, sizes, ONE_JOB)


@figure(PAPER, "fig5", title="one job of 100 tasks by number of servers", source="Fig. 5, section 6.1")
def _servers(run: Run) -> Outcome:
    tasks = run.size(100, 100, 10)
    found = _on_servers(_sizes(run, "arity", run.size([6, 8, 10, 12], [6, 8, 10, 12], [2, 4]), tasks=tasks))
    few, many = found.places[0], found.places[-1]
    jct, seconds = found.metric("jct", many), found.seconds(many)
    said = [_fast_alike(found)]
    longer = {"Min-Min": 5.3, "MM-GA": 3.6, "GSA": 1.8}
    more = {"Min-Min": 1.4, "MM-GA": 1.4, "GSA": 1.15}
    slower = {"Min-Min": 4700 / 33, "MM-GA": 4800 / 33, "GSA": 1000 / 33}
    for way, suffix in SHARES.items():
        rivals = _add(RIVALS, suffix)
        said += [
            _smallest(found, way, suffix),
            judge_claim(
                f"on {many} servers JCT exceeds TaPRA's: {_told(longer)} ({way})",
                _against(jct, rivals, ["TaPRA"], longer),
            ),
            judge_claim(
                f"on {few} servers all allocate similar amounts of vCPU ({way})",
                _against(found.metric("allocated", few), TAPRA, rivals),
                level(SIMILAR),
            ),
            judge_claim(
                f"on {many} servers TaPRA and TaPRA-fast allocate more: over {_told(more)} ({way})",
                _against(found.metric("allocated", many), TAPRA, rivals, more),
            ),
            judge_claim(
                f"on {many} servers planning takes longer than TaPRA: {_told(slower)} ({way})",
                _against(seconds, rivals, ["TaPRA"], slower, _medians_of),
            ),
        ]
    claim = f"on {many} servers TaPRA takes 2.2 times as long as TaPRA-fast"
    said.append(judge_claim(claim, _against(seconds, ["TaPRA"], ["TaPRA-fast"], 33 / 15, _medians_of)))
    sizes = f"{found.episodes} draws of a job of {tasks} tasks"
    return Outcome(_panels(found, "number of servers"), said, sizes, ONE_JOB)


# Fig. 6: many jobs -----------------------------------------------------------------------------------


def _by_planner(run: Run) -> Played:
    """Run every scheduler with every planner, all with the MAR test."""
    named = {f"{scheduler} TaPRA": f"{rule}-tapra" for scheduler, rule in SCHEDULERS.items()}
    named |= {f"{scheduler} TaPRA-fast": rule for scheduler, rule in SCHEDULERS.items()}
    for scheduler in OTHERS:
        for planner in GENETIC:
            name = f"{SCHEDULERS[scheduler]}-{RIVALS[planner]}"
            named |= {f"{scheduler} {planner}": name, f"{scheduler} {planner}{EQUAL}": f"{name}-equal"}
    return run.play(
        ONLINE,
        named,
        run.size(6, 10, 2),
        {"drc": list(DRC)},
        parameters={"jobs": run.size(20, 540, 5), "max_time": LONGEST},
        options={label: {"mar": True} for label in named},
    )


def _by_scheduler(run: Run) -> Played:
    """Run every scheduler with TaPRA-fast on the paper's number of jobs, with and without the MAR test."""
    return run.play(
        ONLINE,
        {**SCHEDULERS, **{label + WITHOUT_MAR: SCHEDULERS[label] for label in OTHERS}},
        run.size(6, 10, 2),
        {"drc": list(DRC)},
        parameters={"jobs": run.size(540, 540, 12), "max_time": LONGEST},
        options={label: {"mar": True} for label in SCHEDULERS},
    )


def _means(label: str, x: Sequence[str], episodes: Sequence[F8]) -> Series:
    """Return a series of means with intervals, one place for each array of episodes."""
    low, high = zip(*(bootstrap_interval(values) for values in episodes), strict=True)
    return Series(label, x, [float(values.mean()) for values in episodes], low, high)


def _limit(played: Played, drc: bool) -> Series:
    """Return the bound on the average JCT, which is the same for all schedulers."""
    values = _metric(played, "bound", drc=drc)(played.policies[0])
    made = _means("lower bound", list(SCHEDULERS), [values] * len(SCHEDULERS))
    return dataclasses.replace(made, bound=True)


def _bars(planners: Played, schedulers: Played) -> list[Panel]:
    """Panels of average JCT and running time in two columns: with DRC and without."""
    panels = []
    fewer, jobs = (played.frame.attrs["parameters"]["jobs"] for played in (planners, schedulers))
    for letter, suffix, y_label in (("a", "", JCT), ("b", "", "running time [s]"), ("a", EQUAL, JCT)):
        for drc, name in DRC.items():
            timed = letter == "b"
            read = _seconds(planners, drc=drc) if timed else _metric(planners, "average_jct", drc=drc)
            series = []
            for planner in (*TAPRA, *GENETIC):
                places = list(SCHEDULERS) if planner in TAPRA else list(OTHERS)
                own = planner if planner in TAPRA else planner + suffix
                values = [read(f"{place} {own}") for place in places]
                series.append((_medians if timed else _means)(planner, places, values))
            if not timed:
                series.append(_limit(planners, drc))
            title = f"({letter}) {name}, {fewer} jobs" + (", MM-GA and GSA by equal shares" if suffix else "")
            scale = "log" if timed else "linear"
            panels.append(Panel("", y_label, series, title=title, kind="bars", y_scale=scale))
    for drc, name in DRC.items():
        read = _metric(schedulers, "average_jct", drc=drc)
        without = [read(label + WITHOUT_MAR) for label in OTHERS]
        series = [
            _means("TaPRA-fast", list(SCHEDULERS), [read(label) for label in SCHEDULERS]),
            _means("TaPRA-fast, MAR test in OnTaPRA only", OTHERS, without),
            _limit(schedulers, drc),
        ]
        title = f"(a) {name}, {jobs} jobs, TaPRA-fast"
        panels.append(Panel("", JCT, series, title=title, kind="bars", y_scale="log"))
    return panels


def _of_schedulers(played: Played) -> list[Judged]:
    """Judge the paper's statements on the schedulers with TaPRA-fast."""
    said = []
    jct = {drc: _metric(played, "average_jct", drc=drc) for drc in DRC}
    over_ontapra = {
        True: {"SLF": 1.6, "FCFS": 1.6, "LLF": 2.7},
        False: {"SLF": 1.05, "FCFS": 1.8, "LLF": 3.34},
    }
    over_slf = {"FCFS": 1.8, "LLF": 3.25}
    without_drc = {"OnTaPRA": 1.7, "SLF": 1.15, "FCFS": 2.1, "LLF": 2.2}
    for way, suffix in TESTS.items():
        slf, fcfs, llf = rivals = _add(OTHERS, suffix)
        claim = f"OnTaPRA has the smallest average JCT ({way})"
        said.append(judge_better(played, claim, Statement("", "OnTaPRA", tuple(rivals), "average_jct")))
        for drc, stated in over_ontapra.items():
            claim = f"{DRC[drc]}: average JCT exceeds OnTaPRA's: {_told(stated)} ({way})"
            said.append(judge_claim(claim, _against(jct[drc], rivals, ["OnTaPRA"], stated)))
        lost = [
            _larger(compare(label, jct[False](own), jct[True](own)), without_drc[label])
            for label, own in zip(SCHEDULERS, ["OnTaPRA", *rivals], strict=True)
        ]
        said += [
            judge_claim(
                f"DRC: FCFS performs similarly to SLF ({way})",
                _against(jct[True], [fcfs], [slf]),
                level(SIMILAR),
            ),
            judge_claim(
                f"DRC: average JCT exceeds SLF's: LLF 1.8 times ({way})",
                _against(jct[True], [llf], [slf], {"LLF": 1.8}),
            ),
            judge_claim(
                f"NDRC: average JCT exceeds SLF's: {_told(over_slf)} ({way})",
                _against(jct[False], [fcfs, llf], [slf], over_slf),
            ),
            judge_claim(f"NDRC: average JCT exceeds that with DRC: {_told(without_drc)} ({way})", lost),
        ]
    return said


def _of_planners(played: Played) -> list[Judged]:
    """Judge the paper's statements on the planners."""
    jct = {drc: _metric(played, "average_jct", drc=drc) for drc in DRC}
    fast = []
    for label in SCHEDULERS:
        for drc in DRC:
            found = _against(jct[drc], [f"{label} TaPRA-fast"], [f"{label} TaPRA"])
            fast += _at(DRC[drc], found)
    said = [judge_claim("TaPRA-fast comes within about 5% of TaPRA's average JCT", fast, level(ALMOST))]
    above_tapra = {True: {"SLF": 1.8, "FCFS": 2.4}, False: {"SLF": 1.4, "FCFS": 1.4}}
    for way, suffix in SHARES.items():

        def own(*labels: str) -> list[str]:
            return [f"{label} {planner}" for label in labels for planner in TAPRA]

        def genetic(*labels: str, suffix: str = suffix) -> list[str]:
            return [f"{label} {planner}{suffix}" for label in labels for planner in GENETIC]

        exceeded = _against(jct[True], genetic(*OTHERS), own("OnTaPRA"), 2.0)
        claim = (
            f"DRC: average JCT exceeds OnTaPRA's: other schedulers with MM-GA or GSA 2 to 3.8 times ({way})"
        )
        said.append(judge_claim(claim, exceeded))
        for drc, stated in above_tapra.items():
            exceeded = []
            for label, factor in stated.items():
                exceeded += _against(jct[drc], genetic(label), own(label), factor)
            claim = f"{DRC[drc]}: with MM-GA and GSA average JCT exceeds that with TaPRA and TaPRA-fast"
            said.append(judge_claim(f"{claim}: {_told(stated)} ({way})", exceeded))
        worse = []
        for drc in DRC:
            worse += _at(DRC[drc], _against(jct[drc], own("LLF"), genetic("LLF")))
        said.append(judge_claim(f"in LLF, TaPRA and TaPRA-fast are worse than MM-GA and GSA ({way})", worse))
        worse = []
        for planner in GENETIC:
            slf, *others = (f"{label} {planner}{suffix}" for label in OTHERS)
            worse += _against(jct[True], [slf], others)
        said.append(judge_claim(f"DRC: with MM-GA and GSA, SLF is worse than FCFS and LLF ({way})", worse))
    return said


def _of_times(planners: Played, schedulers: Played) -> list[Judged]:
    """Judge the paper's statements on running times."""
    genetic, tapra, fast = [], [], []
    for drc in DRC:
        read, alone = _seconds(planners, drc=drc), _seconds(schedulers, drc=drc)
        for label in SCHEDULERS:
            own = [f"{label} {planner}" for planner in TAPRA]
            fast += _against(read, own[:1], own[1:], 10.0, _medians_of)
            if label in OTHERS:
                rivals = [f"{label} {planner}" for planner in GENETIC]
                genetic += _against(read, rivals, own, make=_medians_of)
        tapra += _against(read, ["OnTaPRA TaPRA"], [f"{label} TaPRA" for label in OTHERS], make=_medians_of)
        tapra += _against(alone, ["OnTaPRA"], OTHERS, make=_medians_of)
    return [
        judge_claim("MM-GA and GSA take longer than TaPRA and TaPRA-fast", genetic),
        judge_claim("with TaPRA and TaPRA-fast OnTaPRA takes longer than the others", tapra),
        judge_claim("TaPRA takes 10 times as long as TaPRA-fast in all schedulers", fast),
    ]


@figure(PAPER, "fig6", title="many jobs, by scheduler and planner", source="Fig. 6, section 6.2")
def _online(run: Run) -> Outcome:
    planners, schedulers = _by_planner(run), _by_scheduler(run)
    said = [*_of_schedulers(schedulers), *_of_planners(planners), *_of_times(planners, schedulers)]
    fewer, jobs = (played.frame.attrs["parameters"]["jobs"] for played in (planners, schedulers))
    sizes = f"{planners.frame.attrs['episodes']} draws of {fewer} jobs"
    remarks = MANY_JOBS
    if fewer < jobs:
        sizes += f", in the last row of {jobs}"
        remarks = (f"statements about planners are examined on {fewer} jobs, as GSA takes long", *remarks)
    return Outcome(_bars(planners, schedulers), said, sizes, remarks)
