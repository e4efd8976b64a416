"""Section 6.2: the experiments with many jobs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.papers import CORRECTED, NOT_REPRODUCED, Evaluation, Finding, Run, Shown, judge
from schedgym.papers.exact import as_text
from schedgym.papers.judging import Effect, Rule, excess, larger, level
from schedgym.papers.searches import Sentences
from schedgym.papers.shi2017 import runs
from schedgym.papers.shi2017.instances import claim, find_flaw, found_correction, never_planned, read_job
from schedgym.papers.shi2017.model.one_job import SingleJob, tapra_fast

#: the ways to read "scale parameter A = 0.5 and scale parameter B = 0.8": factor, scale, shape
READINGS = {"scale-half": (1, 0.5, 0.8), "shape-half": (1, 0.8, 0.5), "x70": (70, 0.5, 0.8)}


def _with(planner: str, schedulers: Iterable[str]) -> list[str]:
    """Return the labels of schedulers with a planner."""
    return [f"{scheduler} {planner}" for scheduler in schedulers]


def _mean_tasks(factor: float, scale: float, shape: float, most: int) -> float:
    """Return the mean of min(ceil(factor W), most): the sum over k >= 0 of P(more than k tasks)."""
    return math.fsum(math.exp(-((k / (factor * scale)) ** shape)) for k in range(most))


def _confirm_weibull(shown: Shown) -> bool:
    """Confirm by the means of W, scale Gamma(1 + 1 / shape), which numbers of tasks exceed by less than 1."""
    means = []
    for factor, scale, shape in shown["readings"]:
        mean = factor * scale * math.gamma(1 + 1 / shape)
        means.append(mean)
    return (
        all(m <= float(stated) <= m + 1 for m, stated in zip(means[:2], shown["mean_tasks"], strict=False))
        and abs(float(shown["mean_tasks"][0]) - float(shown["mean_tasks"][1])) > 0.5
        and float(shown["mean_tasks"][2]) < means[2]  # cut at 70
    )


@claim("weibull", confirm=_confirm_weibull)
def _check_weibull(run: Run, say: Sentences) -> Finding:
    tasks = {name: _mean_tasks(*reading, 70) for name, reading in READINGS.items()}
    # offered load: arrivals x tasks x mean load over 54 x 10 vCPU, at efficiency 1
    load = {name: 0.15 * mean * 500 / 540 for name, mean in tasks.items()}
    drawn, capped = {}, {}
    for name, (factor, scale, shape) in READINGS.items():
        sample = np.ceil(factor * scale * run.rng.weibull(shape, 200_000))
        drawn[name], capped[name] = float(np.minimum(sample, 70).mean()), float((sample > 70).mean())
    off = max(abs(drawn[name] / tasks[name] - 1) for name in READINGS)
    best_rival = {}
    for name in READINGS:
        read = runs.metric(runs.play_schedulers(run, name), "average_jct", drc=True)
        found = runs.against(read, runs.OTHERS, ["OnTaPRA"])
        best_rival[name] = min(found, key=lambda own: own.value)
    numbers = {name: [own.value, own.low, own.high] for name, own in best_rival.items()}
    figures = {"mean_tasks": tasks, "load": load, "capped": capped, "best_rival": numbers}
    order = [name for name in READINGS if best_rival[name].above] == ["x70"]
    told = "; ".join(
        f"{name}: {tasks[name]:.2f} tasks, load {load[name]:.0%}, best rival {best_rival[name]}"
        for name in READINGS
    )
    shown = {
        "readings": [list(reading) for reading in READINGS.values()],
        "mean_tasks": [f"{mean:.4f}" for mean in tasks.values()],
    }
    verdict = NOT_REPRODUCED if off > 0.05 or not order else CORRECTED
    return say(verdict, figures, counterexample=shown, off=off, told=told)


def _confirm_never(shown: Shown) -> bool:
    (load,), (row,) = shown["load"], shown["efficiency"]
    least = min(load / Fraction(x) for x in row)
    return as_text(least) == shown["least"] and least > Fraction(11, 10) * load


@claim("simulation-ends", confirm=_confirm_never)
def _check_simulation_ends(run: Run, say: Sentences) -> Finding:
    never = {}
    for name, (factor, scale, shape) in READINGS.items():
        sample = 20_000 if run.small else 500_000
        count = np.clip(np.ceil(factor * scale * run.rng.weibull(shape, sample)), 1, 70).astype(int)
        job = np.repeat(np.arange(sample), count)
        load = 1 - run.rng.random(len(job))
        # the largest of 54 uniform numbers, by its distribution function
        largest = 0.1 + 0.9 * run.rng.random(len(job)) ** (1 / 54)
        ratio = np.bincount(job, load / largest) / np.bincount(job, load)
        share = float((ratio > 1.1).mean())
        never[name] = {"jobs": share, "runs_of_540": 1 - (1 - share) ** 540}
    played = runs.play_jobs(run, {"OnTaPRA": "ontapra"}, 100, 3, mar=True, reading="scale-half")
    finished = played.metric("OnTaPRA", "finished").tolist()
    figures = {"never": never, "finished_of_100": finished}
    told = ", ".join(f"{x['runs_of_540']:.0%} ({name})" for name, x in never.items())
    shown = {"load": [1], "efficiency": [["1/2"]], "least": 2}
    right = min(finished) >= 100 and all(x["jobs"] > 0 for n, x in never.items() if n != "x70")
    return say(CORRECTED if right else NOT_REPRODUCED, figures, counterexample=shown, told=told)


def _confirm_last_arrival(shown: Shown) -> bool:
    job = read_job(shown)
    drawn = Fraction(job.energy_cap) / sum(job.load)
    return tapra_fast(job) is None and 1 <= drawn and job.least_energy() <= Fraction(11, 10) * sum(job.load)


@claim("fcfs-arrivals", confirm=_confirm_last_arrival)
def _check_fcfs(run: Run, say: Sentences) -> Finding:
    waiting = []
    for _ in range(200 if run.small else 2_000):
        left = 0
        for later in range(10):  # the last ten jobs: a job has a draw at each later arrival, too
            loads = 1 - run.rng.random(30)
            ratio = (loads / (0.1 + 0.9 * run.rng.random(30) ** (1 / 54))).sum() / loads.sum()
            left += bool((1 + 0.1 * run.rng.random(later + 1) < ratio).all())
        waiting.append(left)
    share = float(np.mean(np.array(waiting) > 0))
    finished = runs.play_jobs(run, {"FCFS": "fcfs"}, 60, 3, mar=False).metric("FCFS", "finished").tolist()
    # one job with E_min = 1.087 load, which 87% of the draws do not admit
    alone: dict[str, int] = {}
    for name, seed in itertools.product(("fcfs", "slf"), range(8)):
        record = runs.run_alone(
            2, 10.0, 100.0, policy=name, efficiency=0.92, energy_seed=seed, max_time=5000.0
        )
        alone[name] = alone.get(name, 0) + (not record.truncated)
    figures = {"runs_with_a_job_left": share, "finished_of_60": finished, "alone_of_8": alone}
    never = {name: 8 - ended for name, ended in alone.items()}
    told: dict[str, Any] = {"left": 60 - min(finished), "never": never}
    if share == 0 or never["slf"]:
        return say(NOT_REPRODUCED, figures, **told)
    numbers = itertools.product((19, 20), (101, 106))
    cases = (SingleJob((1,), ((Fraction(x, 20),),), ((0,),), (1,), Fraction(cap, 100)) for x, cap in numbers)
    return found_correction(say, find_flaw(cases, never_planned), figures, **told)


# section 6.2.4: schedulers and planners, with DRC and without ----------------------------------------

WITHOUT_DRC = {"OnTaPRA": 70, "SLF": 15, "FCFS": 110, "LLF": 120}  # by how much each becomes longer [%]
OVER_SLF = {True: {"LLF": 80}, False: {"FCFS": 80, "LLF": 225}}  # with DRC, without [%]
SIMILAR = 0.10  # "similar", to which the paper puts no number


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Schedulers(runs.Compare):
    """A comparison of average JCTs.

    Attributes:
        planners: True for schedulers with all planners, on fewer jobs; False: all with TaPRA-fast.
        drc: with DRC, without it, or both.
    """

    planners: bool = False
    apart: bool = True
    drc: Sequence[bool] = tuple(runs.DRC)

    def __call__(self, run: Run) -> Finding:
        """Compare them with DRC and without."""
        played = runs.play_planners(run) if self.planners else runs.play_schedulers(run)
        reads = [
            (runs.DRC[drc] if len(self.drc) > 1 else "", runs.metric(played, "average_jct", drc=drc))
            for drc in self.drc
        ]
        return self.judge(run, reads, _jobs(played) if self.planners else "")


def _jobs(played: Evaluation) -> str:
    return f"{played.parameters['jobs']} jobs"


@claim("slf-approximates-sjf")
def _check_slf(run: Run, say: Sentences) -> Finding:
    from scipy.stats import spearmanr

    from schedgym.problems.single_job.topology import fat_tree_groups, group_limits
    from schedgym.solvers.planning import plan

    groups = fat_tree_groups(6)
    limits = group_limits(groups.matrix, groups.share, np.full(54, 10.0))
    loads, times = [], []
    for _ in range(100 if run.small else 2_000):
        count = min(math.ceil(35 * run.rng.weibull(0.8)), 70)  # times 70
        load, efficiency = 1000 * (1 - run.rng.random(count)), run.rng.uniform(0.1, 1.0, (count, 54))
        cap = max(1.1 * float(load.sum()), float((load / efficiency.max(axis=1)).sum()))
        found = plan(load, efficiency, groups.matrix, limits, cap)
        if found is not None:
            loads.append(float(load.sum()))
            times.append(found.jct)
    rank = float(spearmanr(loads, times).statistic)
    # 95% interval by Fisher's transformation
    low, high = (math.tanh(math.atanh(rank) + z / math.sqrt(len(loads) - 3)) for z in (-1.96, 1.96))
    return say(judge(low > 0.5), {"rank_correlation": [rank, low, high]}, plans=len(loads))


@claim("figure-6a-slf")
def _check_figure_6a_slf(run: Run) -> Finding:
    played, found = runs.play_schedulers(run), []
    for drc, stated in OVER_SLF.items():
        read = runs.metric(played, "average_jct", drc=drc)
        made = runs.against(read, ["FCFS", "LLF"], ["SLF"], {"FCFS": 0.0} | stated)
        if drc:
            made[0] = dataclasses.replace(made[0], verdict=level(SIMILAR)(made[0]))
        found += runs.at(runs.DRC[drc], made)
    return runs.found_by(found)


def _without_drc(played: Evaluation) -> list[Effect]:
    """Compare the average JCT of each scheduler without DRC with that with it."""
    read = {drc: runs.metric(played, "average_jct", drc=drc) for drc in runs.DRC}
    return [excess(label, read[False](label), read[True](label)) for label in runs.SCHEDULERS]


@claim("drc-impact")
def _check_drc_impact(run: Run) -> Finding:
    return runs.found_by(_without_drc(runs.play_schedulers(run)), larger(), what="without it")


@claim("drc-impact-numbers")
def _check_drc_numbers(run: Run) -> Finding:
    found = _without_drc(runs.play_schedulers(run))
    rules = {name: runs.as_stated(percent) for name, percent in WITHOUT_DRC.items()}
    return runs.found_by(found, lambda own: rules[own.name](own))


# Fig. 6(b): running times ----------------------------------------------------------------------------


def _times(played: Evaluation, labels: Iterable[str]) -> Floats:
    """Return the running times [s] of several schedulers, with DRC and without, one after the other."""
    return np.concatenate([runs.seconds(played, drc=drc)(label) for label in labels for drc in runs.DRC])


def _times_of_fast(run: Run, schedulers: Iterable[str], rule: Rule) -> Finding:
    """Judge how many times as long schedulers take with TaPRA as with TaPRA-fast."""
    played = runs.play_planners(run)
    found = []
    for name in schedulers:
        slow, fast = (_times(played, [f"{name} {planner}"]) for planner in runs.TAPRA)
        found.append(runs.medians_of(name, slow, fast))
    return runs.found_by(found, rule, what=_jobs(played), timed=True)


@claim("fast-10-times")
def _check_ten_times(run: Run) -> Finding:
    return _times_of_fast(run, ["OnTaPRA"], larger(9.0))


@claim("figure-6b")
def _check_figure_6b(run: Run) -> Finding:
    return _times_of_fast(run, runs.SCHEDULERS, runs.as_stated(900.0))


@claim("figure-6b-ontapra")
def _check_slowest(run: Run) -> Finding:
    planners, schedulers = runs.play_planners(run), runs.play_schedulers(run)
    found = []
    for planner, played, names in (
        ("TaPRA", planners, _with("TaPRA", runs.SCHEDULERS)),
        ("TaPRA-fast", schedulers, list(runs.SCHEDULERS)),
    ):
        own = _times(played, [name for name in names[:1] for _ in runs.OTHERS])
        found.append(runs.medians_of(f"with {planner}, {_jobs(played)}", own, _times(played, names[1:])))
    return runs.found_by(found, larger(), what="OnTaPRA against SLF, FCFS and LLF", timed=True)


@claim("figure-6b-genetic")
def _check_genetic_times(run: Run) -> Finding:
    played = runs.play_planners(run)
    found = []
    for pair in itertools.product(runs.GENETIC, runs.TAPRA):
        slow, fast = (_times(played, _with(planner, runs.OTHERS)) for planner in pair)
        found.append(runs.medians_of(" against ".join(pair), slow, fast))
    return runs.found_by(found, larger(), what=f"SLF, FCFS and LLF, {_jobs(played)}", timed=True)


claim.compare("many_jobs", _Schedulers)
