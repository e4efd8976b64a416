"""Runs of the registered policies on the stand-in for the paper's trace, and what is seen of an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats
from schedgym.core.workload import Workload
from schedgym.papers import Evaluation, Run
from schedgym.papers.xu2021.curves import (
    by_size,
    flowtime_curve,
    offered_curve,
    regret_curve,
    service_gaps,
    unfinished_curve,
    waiting,
)
from schedgym.papers.xu2021.instances import GAMMA, OPEN
from schedgym.problems.flowtime.metrics import fates, pieces
from schedgym.problems.flowtime.problem import PROBLEM, parse_servers
from schedgym.problems.flowtime.workload import tables

ID = "schedgym/FlowtimePacking-v0"
SLOT = 10.0  # s

OCORP, OCORP_M = "OCORP", "OCORP+M"
RULES = {"SRPT": "srpt", "SRVF": "srvf", "SVF": "svf", "SRF": "srf"}

ALPHAS = (0.0, 10.0, 100.0)  # the paper's
BEYOND = (1e4, 1e6)  # lambda moves by some t^2.5 a slot: these change the order of jobs with equal demands
VARIANCES = [0.2, 0.4, 0.6, 0.8, 1.0]

POINTS = 120  # of a curve, up to the last arrival
SHORT_JOBS = 10  # slots: 100 s
FEW_DRAWS = 5  # of the second stand-in at the small scale
TINY = {"jobs": 100, "horizon": 200, "servers": "16+8+8"}  # as busy as the others

# what is seen of an episode ---------------------------------------------------------------------------


def over_time_and_sizes(env: Any) -> dict[str, Any]:
    """Return curves of an episode, and values by size of jobs; an observer of :meth:`Run.play`.

    Curves begin in slot 0 and have a value every ``step`` slots; the last value is that at the end.

    Returns:
        step [slots]; flowtime and fractional (l2 norms so far, unfinished jobs with their ages, [slots]);
        alone (the same if every job took its processing time); offered and unfinished [core-slots];
        above_ages, above_finished: share of the slots in which the fractional norm is not below the actual
        one, of all jobs with their ages, and of the finished ones; done: share of the jobs finished by slot
        ``GAMMA``; spread: pooled standard deviation of the waiting of jobs of the same size [slots];
        waiting, gaps [slots], preemptions and migrations by size (:class:`Sizes`); at_rate: share of the
        jobs with at most one preemption in 100 s of their flowtime; untouched: share of the jobs of less than
        100 s that are not preempted.
    """
    record = env.record()
    final = int(record.final_time)
    own = tables(record.workload)
    arrival, length = own.arrival, own.processing.sum(axis=1)
    step = max(1, env.simulator.source.horizon // POINTS)
    _, completion = pieces(record)
    ended = completion >= 0
    flowtimes = np.where(ended, completion, final) - arrival
    actual = flowtime_curve(record)
    fractional = np.sqrt(regret_curve(record))
    finished = np.zeros(final)
    np.add.at(finished, completion[ended] - 1, flowtimes[ended].astype(np.float64) ** 2)
    finished = np.sqrt(np.cumsum(finished))
    slots = np.arange(step, final + step, step)
    ages = np.clip(slots[:, np.newaxis] - arrival, 0, length).astype(np.float64)
    fate = fates(record)
    preemptions = np.array(fate["preemptions"])
    waited = waiting(record)

    def sampled(curve: npt.NDArray[Any]) -> Floats:
        last = len(range(step, final + step, step))
        return np.concatenate([[0.0], curve[step - 1 :: step], curve[-1:]])[: last + 1]

    return {
        "step": step,
        "flowtime": sampled(actual),
        "fractional": sampled(fractional),
        "alone": np.concatenate([[0.0], np.sqrt((ages**2).sum(axis=1))]),
        "offered": sampled(offered_curve(record)),
        "unfinished": sampled(unfinished_curve(record)),
        "above_ages": float((fractional >= actual).mean()),
        "above_finished": float((fractional >= finished).mean()),
        "done": float((ended & (completion <= GAMMA)).mean()),
        "spread": _spread(record.workload, waited),
        "waiting": by_size(record.workload, waited),
        "gaps": by_size(record.workload, service_gaps(record)),
        "preemptions": by_size(record.workload, preemptions),
        "migrations": by_size(record.workload, fate["migrations"]),
        "at_rate": float((preemptions * SHORT_JOBS <= flowtimes).mean()),
        "untouched": float((preemptions[length < SHORT_JOBS] == 0).mean()),
    }


def _spread(workload: Workload, values: Floats) -> float:
    """Return the pooled standard deviation of a value around its means over jobs of the same size."""
    known = ~np.isnan(values)
    mean = by_size(workload, values)
    square = by_size(workload, values**2)
    return float(np.sqrt(((square.mean - mean.mean**2) * mean.jobs).sum() / known.sum()))


def declared_error(env: Any) -> dict[str, float]:
    """Return the variance of relative errors of declared demands; an observer of :meth:`Run.play`.

    Returns:
        the variance for cpu and, in 2D, for memory.
    """
    jobs = env.simulator.workload(0).jobs
    return {
        name: float(np.var(jobs[f"declared_{name}"] / jobs[name] - 1.0))
        for name in ("cpu", "memory")
        if f"declared_{name}" in jobs
    }


# runs -------------------------------------------------------------------------------------------------


def stand_in(run: Run, **more: Any) -> dict[str, Any]:
    """Return the parameters of the stand-in for the trace, with others."""
    return {**PROBLEM.presets[run.choice(OPEN["DEMANDS"])], **run.size({}, {}, TINY), **more}


def _draws(run: Run, small: int, paper: int = 100) -> int:
    """Return the number of draws; at the small scale the second stand-in, too, has some, but fewer."""
    usual = run.choice(OPEN["DEMANDS"]) == OPEN["DEMANDS"].value
    return run.size(small if usual else min(small, FEW_DRAWS), paper, 2)


def _chosen(run: Run) -> dict[str, Any]:
    """Return the options of the policies of the OCORP family under a reading."""
    options = {"lambda0": OPEN["START"], "gamma": OPEN["HORIZON"], "literal": OPEN["FILLING"]}
    return {name: run.choice(point) for name, point in options.items()}


def play(run: Run, kind: str) -> Evaluation:
    """Run OCORP, or OCORP+M in 2D, and the rules: Figs. 2 to 4 ("1d"), 8 to 10 ("2d"), 12 ("mapreduce")."""
    own, policy = (OCORP_M, "ocorp+m") if kind == "2d" else (OCORP, "ocorp")
    return run.play(
        ID,
        {own: policy, **RULES},
        _draws(run, {"1d": 20, "2d": 16, "mapreduce": 12}[kind]),
        parameters=stand_in(run, kind=kind),
        options={own: _chosen(run)},
        observe=over_time_and_sizes,
    )


def play_switching(run: Run) -> Evaluation:
    """Run OCORP and OCORP+ with the paper's values of alpha and some beyond: Figs. 5 to 7."""
    options = {alpha_label(alpha): {"alpha": alpha, **_chosen(run)} for alpha in (*ALPHAS, *BEYOND)}
    return run.play(
        ID,
        {OCORP: "ocorp", **dict.fromkeys(options, "ocorp+")},
        _draws(run, 12),
        parameters=stand_in(run, kind="1d"),
        options={OCORP: _chosen(run), **options},
        observe=over_time_and_sizes,
    )


def alpha_label(value: float) -> str:
    """Return the label of OCORP+ with a value of alpha."""
    return f"alpha {value:,.0f}"


def play_wrong(run: Run, kind: str, variances: Sequence[float]) -> Evaluation:
    """Run OCORP, or OCORP+M in 2D, and the rules with wrong declarations: Fig. 11."""
    own, policy = (OCORP_M, "ocorp+m") if kind == "2d" else (OCORP, "ocorp")
    return run.play(
        ID,
        {own: policy, **RULES},
        _draws(run, 5, 50),  # ten settings, in each of which the bound of a draw takes seconds
        {"variance": list(variances)},
        parameters=stand_in(run, kind=kind, estimation=run.choice(OPEN["ESTIMATION"])),
        options={own: _chosen(run)},
        observe=declared_error,
    )


def sizes_of(played: Evaluation) -> str:
    """Describe the sizes of runs."""
    return f"{played.episodes} draws of {describe(played.parameters)}"


def describe(parameters: Mapping[str, Any]) -> str:
    """Describe the size of a workload that stands in for the trace."""
    servers = parse_servers(parameters["servers"])
    jobs = f"{parameters['jobs']:,} jobs that stand in for Google's"
    return f"{jobs}, in {parameters['horizon']:,} slots of 10 s on {sum(servers)} cores"
