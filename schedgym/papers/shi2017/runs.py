"""Runs of the registered policies, under a reading, and how what they measure is compared and judged."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from schedgym.core.arrays import Floats
from schedgym.core.record import ScheduleRecord
from schedgym.papers import (
    HOLDS,
    IN_PART,
    NOT_JUDGED,
    NOT_REPRODUCED,
    Evaluation,
    Finding,
    Run,
    Verdict,
    judge,
)
from schedgym.papers.judging import (
    Effect,
    Rule,
    excess,
    excess_overall,
    judge_claim,
    larger,
    level,
    lower,
    pool,
)
from schedgym.papers.run import play_workload
from schedgym.papers.shi2017.instances import OPEN

SINGLE, ONLINE = "schedgym/SingleJob-v0", "schedgym/ParallelJCT-v0"

#: labels of the paper -> names of policies
TAPRA = {"TaPRA": "tapra", "TaPRA-fast": "tapra-fast"}
RIVALS = {"Min-Min": "min-min", "MM-GA": "mm-ga", "GSA": "gsa"}
GENETIC = ("MM-GA", "GSA")
SCHEDULERS = {"OnTaPRA": "ontapra", "SLF": "slf", "FCFS": "fcfs", "LLF": "llf"}
OTHERS = ("SLF", "FCFS", "LLF")
DRC = {True: "DRC", False: "NDRC"}

#: groups of labels, as claims.yaml names them
GROUPS = {"TAPRA": tuple(TAPRA), "RIVALS": tuple(RIVALS), "OTHERS": OTHERS}

#: by how much a rival's completion time exceeds TaPRA's (OnTaPRA's), as the paper states it [%]
STATED = {
    "Fig. 4(a)": {"Min-Min": 100, "MM-GA": 50, "GSA": 30},  # 200 tasks, 128 servers
    "Fig. 5(a)": {"Min-Min": 430, "MM-GA": 260, "GSA": 80},  # 100 tasks, 432 servers
    "Fig. 6(a)": {"SLF": 60, "FCFS": 60, "LLF": 170},  # with DRC
    "Fig. 6(a), without DRC": {"SLF": 5, "FCFS": 80, "LLF": 234},
}

LONGEST = 1e7  # s after which an episode is truncated: later than any ends
FAR = 2.0  # a difference this many times as large as the stated one is another number than the paper's


# runs ------------------------------------------------------------------------------------------------


class Sweep(NamedTuple):
    """Runs with one job, of growing size or on growing data centres."""

    played: Evaluation
    x: str
    places: list[int]

    def metric(self, name: str, place: int) -> Read:
        """Return the values of a metric by policy, at a place."""
        return metric(self.played, name, **{self.x: place})

    def seconds(self, place: int) -> Read:
        """Return the running times [s] by policy, at a place."""
        return seconds(self.played, **{self.x: place})


def _one_job(run: Run) -> dict[str, str]:
    """Label -> policy of single-job, under a reading."""
    return TAPRA | {label: name + run.choice(OPEN["SIZING"]) for label, name in RIVALS.items()}


def by_tasks(run: Run, policies: Mapping[str, str] | None = None) -> Sweep:
    """Plan jobs of 40 to 200 tasks on 128 servers, as in Fig. 4.

    Args:
        run: the run.
        policies: label -> policy; they are run as often as in the paper. None: all, on fewer draws if the run
            is small.
    """
    places = run.size([40, 70, 100, 150, 200], list(range(40, 201, 20)), [5, 10])
    size = {"arity": run.size(8, 8, 4), "server_caps": run.choice(OPEN["LIMITS"])}
    own, episodes = policies or _one_job(run), run.size(50 if policies else 10, 50, 2)
    played = run.play(SINGLE, own, episodes, {"tasks": places}, parameters=size)
    return Sweep(played, "tasks", places)


def by_servers(run: Run, policies: Mapping[str, str] | None = None) -> Sweep:
    """Plan jobs of 100 tasks on 54 to 432 servers, as in Fig. 5; trees are named by their servers.

    Arguments are those of :func:`by_tasks`.
    """
    arities = run.size([6, 8, 10, 12], [6, 8, 10, 12], [2, 4])
    size = {"tasks": run.size(100, 100, 10), "server_caps": run.choice(OPEN["LIMITS"])}
    own, episodes = policies or _one_job(run), run.size(50 if policies else 10, 50, 2)
    played = run.play(SINGLE, own, episodes, {"arity": arities}, parameters=size)
    frame = played.frame.rename(columns={"arity": "servers"})
    frame["servers"] = frame["servers"] ** 3 // 4
    observed = [
        dataclasses.replace(entry, setting={"servers": entry.setting["arity"] ** 3 // 4})
        for entry in played.observed
    ]
    named = dataclasses.replace(played, frame=frame, swept=("servers",), observed=observed)
    return Sweep(named, "servers", [arity**3 // 4 for arity in arities])


def play_jobs(
    run: Run,
    policies: Mapping[str, str],
    jobs: int,
    episodes: int,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    mar: bool,
    observe: Callable[[Any], Any] | None = None,
    **parameters: Any,
) -> Evaluation:
    """Run schedulers on many jobs, each to its end.

    Args:
        run: the run; its reading says at which threshold policies make the MAR test.
        policies: label -> name of a policy of parallel-jct.
        jobs: jobs of an episode.
        episodes: episodes of each policy.
        grid: parameter -> values; all combinations are run.
        mar: True if the policies make the MAR test.
        observe: called with the environment at the end of an episode; a function of a module.
        parameters: parameters of the environment.
    """
    options = {
        label: {"mar": mar or name.startswith("ontapra"), "max_percent": run.choice(OPEN["THRESHOLD"])}
        for label, name in policies.items()
    }
    given = {"jobs": jobs, "max_time": LONGEST, **parameters}
    return run.play(ONLINE, policies, episodes, grid, parameters=given, options=options, observe=observe)


def play_schedulers(run: Run, tasks: str = "") -> Evaluation:
    """Run all schedulers on the paper's number of jobs, planning by TaPRA-fast, with DRC and without.

    Args:
        run: the run; its reading says which schedulers make the MAR test.
        tasks: reading of the workload generator; "": that of the run.
    """
    jobs, episodes = run.size(540, 540, 12), run.size(6, 10, 2)
    given = {"mar": run.choice(OPEN["MAR"]), "reading": tasks or run.choice(OPEN["TASKS"])}
    return play_jobs(run, SCHEDULERS, jobs, episodes, {"drc": list(DRC)}, **given)


def play_planners(run: Run) -> Evaluation:
    """Run all schedulers with all planners, with DRC and without; all make the MAR test."""
    named = {f"{label} TaPRA": f"{name}-tapra" for label, name in SCHEDULERS.items()}
    named |= {f"{label} TaPRA-fast": name for label, name in SCHEDULERS.items()}
    for label in OTHERS:
        for planner in GENETIC:
            named[f"{label} {planner}"] = f"{SCHEDULERS[label]}-{RIVALS[planner]}{run.choice(OPEN['SIZING'])}"
    jobs, episodes = run.size(20, 540, 5), run.size(6, 10, 2)
    return play_jobs(run, named, jobs, episodes, {"drc": list(DRC)}, mar=OPEN["MAR"].value)


def run_alone(
    arity: int, capacity: float, load: float, *, policy: str = "ontapra", efficiency: float = 1.0, **more: Any
) -> ScheduleRecord:
    """Run one task alone on equal servers in the environment, and return its schedule.

    Args:
        arity: arity of the fat tree.
        capacity: capacity of its servers.
        load: load of the task.
        policy: policy of parallel-jct.
        efficiency: efficiency of the task on all servers.
        more: ``energy_cap_ratio`` or ``energy_seed`` of the workload; parameters of the environment.
    """
    from schedgym.problems.parallel_jct.workload import make_workload

    servers = arity**3 // 4
    caps = {name: more.pop(name) for name in ("energy_cap_ratio", "energy_seed") if name in more}
    row, cpu = np.full((1, servers), efficiency), np.full(servers, capacity)
    workload = make_workload([0.0], [0], [load], row, cpu, arity=arity, **caps)
    return play_workload(ONLINE, f"parallel-jct/{policy}", workload, {"arity": arity, **more})


# comparisons -----------------------------------------------------------------------------------------

#: label of a policy -> its episodes' values
Read = Callable[[str], Floats]


def metric(played: Evaluation, name: str, **setting: Any) -> Read:
    """Return the values of a metric by policy, in a setting."""
    return lambda label: played.metric(label, name, **setting)


def seconds(played: Evaluation, **setting: Any) -> Read:
    """Return the times [s] that policies took for all their decisions, in a setting."""
    observed = played.where(**setting).observed
    return lambda label: np.array([entry.seconds for entry in observed if entry.policy == label])


def median_interval(values: Sequence[float] | Floats) -> tuple[float, float]:
    """Return a distribution-free 95% interval of the median of episodes, between two order statistics.

    Returns:
        (low, high) in the unit of the values; (nan, nan) for fewer than six values.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    cut = int(binom.ppf(0.025, len(ordered), 0.5))
    if cut == 0:
        return float("nan"), float("nan")
    return float(ordered[cut - 1]), float(ordered[len(ordered) - cut])


def medians_of(name: str, own: Floats, other: Floats) -> Effect:
    """Compare times by the median of the ratios of the episodes, minus 1, with its interval."""
    ratios = own / other - 1.0
    return Effect(name, float(np.median(ratios)), *median_interval(ratios))


def as_stated(percent: float) -> Rule:
    """Return the rule for a difference that the paper states as a number.

    "holds" if the difference is significant and at least the stated one but less than FAR times as large, or
    if it is at least half of it and its interval contains it; "in part" if it is at least half of it; a
    larger one does not confirm the number.

    Args:
        percent: the difference [%].
    """
    by = percent / 100.0

    def rule(found: Effect) -> str:
        if not found.above or found.value < by / 2.0:
            return NOT_REPRODUCED
        if by <= found.value < FAR * by or found.low <= by <= found.high:
            return HOLDS
        return IN_PART if found.value < by else NOT_REPRODUCED

    return rule


def beyond(share: float) -> Rule:
    """Return a rule: "holds" if the whole interval is further from 0 than a share."""
    return lambda found: judge((found if found.value > 0.0 else -found).low > share)


def against(
    read: Read,
    more: Iterable[str],
    less: Iterable[str],
    stated: Mapping[str, float] | float | None = None,
    make: Callable[[str, Floats, Floats], Effect] = excess,
) -> list[Effect]:
    """Judge for each pair of policies if one is larger than the other, by as much as the paper states.

    Args:
        read: values by label.
        more: labels of the policies with the larger values.
        less: labels of the policies with the smaller values.
        stated: the difference [%], or differences by a word of either label; None: the paper states none.
        make: makes a comparison.
    """
    found = []
    for low in less:
        for high in more:
            made = make(f"{high} against {low}", read(high), read(low))
            found.append(dataclasses.replace(made, verdict=_rule_of(stated, made.name)(made)))
    return found


def _rule_of(stated: Mapping[str, float] | float | None, name: str) -> Rule:
    """Return the rule for a comparison of a name, with arguments as in :func:`against`."""
    if stated is None:
        return larger()
    if isinstance(stated, Mapping):
        return as_stated(next(stated[word] for word in name.split() if word in stated))
    return as_stated(stated)


def at(place: str, found: Iterable[Effect]) -> list[Effect]:
    """Say of comparisons where they were made."""
    return [dataclasses.replace(entry, place=f"at {place}") for entry in found]


def found_by(
    found: Iterable[Effect],
    rule: Rule | None = None,
    *,
    what: str = "",
    more: str = "",
    timed: bool = False,
    **figures: Any,
) -> Finding:
    """Judge comparisons as :func:`~schedgym.papers.judging.judge_claim` does, and return the finding.

    Its figures are value and interval of each comparison, as shares, by name and place. Where the comparisons
    are ``timed``, it cannot be judged: running times of compiled code are not those of the paper's programs,
    whether they agree or not.
    """
    found = list(found)
    said = judge_claim("", found, rule, what=what, more=more)
    verdict = NOT_JUDGED if timed else Verdict(said.verdict)
    numbers = {
        f"{own.name} {own.place}".strip(): [_number(x) for x in (own.value, own.low, own.high)]
        for one in found
        for own in one.cases or (one,)
    }
    return Finding(verdict, said.measured, figures={**numbers, **figures})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Compare:
    """The claim that a metric of some policies is larger than that of others, as claims.yaml gives it.

    Attributes:
        pairs: labels of the policies with the larger values, and of those with the smaller ones, or names of
            GROUPS.
        stated: what the paper states of the difference: its name in STATED, or of an open point; differences
            by label [%], or one; None: nothing.
        within: the share within which the values are the same; None: they differ.
        by: the least share by which they differ; None: that of ``stated``, or any.
        what: text before the comparisons; "": the one that the runs give.
        apart: True to judge places one by one, as experiments of which the paper speaks one by one; False: by
            the mean over all of them.
    """

    pairs: Sequence[tuple[str | Sequence[str], str | Sequence[str]]]
    stated: str | Mapping[str, float] | float | None = None
    within: float | None = None
    by: float | None = None
    what: str = ""
    apart: bool = False

    def judge(self, run: Run, reads: Iterable[tuple[str, Read]], what: str) -> Finding:
        """Compare all pairs over all places, which have names if there are several."""
        stated, rule, contrary, reads = self.stated, None, lower(), list(reads)
        if isinstance(stated, str):
            point = OPEN["RESPECTIVELY"]
            stated = run.choice(point) if stated == point.name else STATED[stated]
        if self.within is not None:
            rule, contrary = level(self.within), beyond(self.within)
        elif self.by is not None:
            rule = larger(self.by)
        found = []
        for pair in self.pairs:
            more, less = (GROUPS[side] if isinstance(side, str) else side for side in pair)
            for low, high in itertools.product(less, more):
                name = f"{high} against {low}"
                settings = {f"at {place}" if place else "": (read(high), read(low)) for place, read in reads}
                whole, cases = excess_overall(name, settings)
                own = rule or _rule_of(stated, name)
                if self.apart:
                    found += [dataclasses.replace(case, verdict=own(case)) for case in cases]
                else:
                    found.append(pool(whole, cases, own, contrary))
        return found_by(found, what=self.what or what)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)
