"""Searches for instances in which a fair policy lacks a property, the smallest first.

Instances are enumerated by jobs, sites, groups, slots in all, and tasks in all, in this order. Within a step
(jobs, sites, groups, slots) the enumeration is complete up to names, since tasks of a group beyond the slots
of its sites change nothing. So an instance that is found is the smallest of all steps searched. Random
instances of up to 5 jobs and 4 sites follow.

A *flaw* is a function of a :class:`Batch`. It yields masks [B] of the instances that have the flaw, each with
entries that describe them: amounts [B, ...] in units, functions of the index in the batch, or values. Only
instances in which every job has tasks and every group is used are counted.

An instance is a dict of plain values: ``policy``, ``slots`` per site, ``groups`` (lists of sites, numbered
from 0), ``demand`` (tasks of each job in each group), and more by name; exact fractions are texts ("5/2").
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Flags, Integers
from schedgym.documents import read_yaml
from schedgym.papers import HOLDS, REFUTED, Finding, Shown, Verdict
from schedgym.papers.guan2022 import batches, model
from schedgym.papers.guan2022.batches import Batch, Groups
from schedgym.papers.registry import Claims

claim = Claims.of("guan2022")
OPEN = claim.points  # that the paper leaves open
NAMES = {"imf": "IMF", "amf": "AMF", "sig-amf": "SIG-AMF", "gamf": "GAMF", "sig-gamf": "SIG-GAMF"}
CLOSE = 1e-9  # of the solvers' floating-point shares, in slots
LEVELS = 1e-6  # levels of up to six jobs are multiples of 1/360 slots

SINGLE = ("imf", "amf", "sig-amf")  # policies for tasks with a single site
GENEROUS = ("amf", "gamf")  # no flaw is found even if a slot counts for any task of the job that could use it

Flaws = Iterator[tuple[Flags | np.bool_, Mapping[str, Any]]]
Flaw = Callable[[Batch], Flaws]

#: under ``any`` and ``one site``: numbers of jobs, sites and groups, and the most slots, small and paper
SIZES: dict[str, list[list[int]]] = read_yaml(Path(__file__).with_name("enumerated.yaml"))


class Step(NamedTuple):
    """Instances of one size: numbers of jobs, sites, groups and total slots; groups of one site, or any."""

    jobs: int
    sites: int
    kinds: int
    slots: int
    single: bool


def steps_of(policy: str, small: bool) -> list[Step]:
    """Return the sizes enumerated for a policy, smallest first; the last ones have groups of one site."""
    steps = []
    for jobs, sites, kinds, *tops in SIZES["one site" if policy in SINGLE else "any"]:
        top = tops[0] if small else tops[1]
        steps += [Step(jobs, sites, kinds, slots, policy in SINGLE) for slots in range(sites, top + 1)]
        if (jobs, sites, kinds) == (3, 3, 3) and policy not in SINGLE:
            most = 5 if small else 8
            steps += [Step(jobs, sites, kinds, slots, True) for slots in range(top + 1, most + 1)]
    return steps


def enumerate_instances(step: Step, beyond: int = 0) -> Iterator[tuple[Integers, Integers, Groups]]:
    """Yield all instances of a step in batches: demand [B, J, K], slots [B, M], groups."""
    for groups, slots in batches.settings(step.sites, step.kinds, step.slots, step.single):
        rows = batches.demand_rows(groups, slots, beyond)
        demand = rows[batches.job_multisets(len(rows), step.jobs)]
        yield demand, _repeat(slots, len(demand)), groups


def draw_instances(
    rng: np.random.Generator, single: bool, chunks: int, size: int
) -> Iterator[tuple[Integers, Integers, Groups]]:
    """Yield larger random instances: 2 to 5 jobs, up to 4 sites of 1 to 9 slots, up to 5 groups."""
    for _ in range(chunks):
        jobs, sites = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        groups = batches.single_sites(sites)
        if not single:
            lists = [g for n in range(1, sites + 1) for g in itertools.combinations(range(sites), n)]
            count = int(rng.integers(1, min(len(lists), 5) + 1))
            groups = tuple(lists[k] for k in sorted(rng.choice(len(lists), count, replace=False)))
        shape = (size, jobs, len(groups))
        demand = rng.integers(0, rng.integers(2, 11), shape) * (rng.random(shape) < 0.8)
        yield demand, rng.integers(1, 10, (size, sites)), groups


def _repeat(slots: Sequence[int], times: int) -> Integers:
    return np.repeat(np.array([slots], dtype=np.int64), times, axis=0)


def _amount(small: bool) -> tuple[int, int]:
    """Return the number of chunks of random instances, and the number of instances in each."""
    return (20, 500) if small else (150, 5000)


def texts(units: Iterable[int], jobs: int) -> list[str]:
    """Write amounts, given in units, as fractions of slots."""
    return [str(Fraction(int(x), batches.unit(jobs))) for x in units]


def _instance(policy: str, demand: Integers, slots: Sequence[int], groups: Groups) -> dict[str, Any]:
    return {
        "policy": policy,
        "slots": [int(u) for u in slots],
        "groups": [list(group) for group in groups],
        "demand": demand.tolist(),
    }


class Search(NamedTuple):
    """Result of a search: the smallest instance with a flaw (or None), and which instances were examined."""

    found: dict[str, Any] | None
    enumerated: int
    drawn: int
    steps: list[Step]

    def looked(self, what: str = "instances") -> str:
        """Describe in words which instances were examined; :meth:`complete` says it exactly."""
        jobs = sorted({step.jobs for step in self.steps})
        sites, slots = max(s.sites for s in self.steps), max(s.slots for s in self.steps)
        span = "1 job" if jobs == [1] else f"{' to '.join(map(str, sorted({jobs[0], jobs[-1]})))} jobs"
        text = f"{self.enumerated:,} {what} enumerated ({span}, up to {sites} sites, {slots} slots)"
        return text + (f" and {self.drawn:,} random ones (up to 5 jobs, 4 sites)" if self.drawn else "")

    def complete(self) -> dict[str, int]:
        """Return, by jobs, sites and groups in words, the total slots up to which all were enumerated."""
        return {
            f"{s.jobs} jobs, {s.sites} sites, {s.kinds} groups{' of one site' if s.single else ''}": s.slots
            for s in self.steps
        }

    def flaw(self, verdict: Verdict = REFUTED, more: str = "", **figures: Any) -> Finding:
        """Return the finding of a flaw: ``verdict`` with a counterexample, or that there is none."""
        if self.found is None:
            return self.nothing()
        text = f"the counterexample is the smallest in {self.looked()}" + (f"; {more}" if more else "")
        counted = {"enumerated": self.enumerated, "complete": self.complete()} | figures
        return Finding(verdict, text, counterexample=self.found, figures=counted)

    def nothing(self, more: str = "", **figures: Any) -> Finding:
        """Return the finding that there is no counterexample."""
        text = f"no counterexample in {self.looked()}" + (f"; {more}" if more else "")
        counted = {"enumerated": self.enumerated, "random": self.drawn, "complete": self.complete()}
        return Finding(HOLDS, text, figures=counted | figures)


def search(
    policy: str,
    flaw: Flaw,
    steps: Sequence[Step],
    rng: np.random.Generator | None = None,
    small: bool = True,
    beyond: int = 0,
) -> Search:
    """Find the smallest instance with a flaw among some steps, or else a random one.

    Args:
        policy: policy of the instances.
        flaw: the flaw that is searched for.
        steps: sizes that are enumerated, smallest first.
        rng: generator of the random instances; None: no random instances.
        small: True for fewer random instances.
        beyond: by how many tasks the demands of a group may exceed the slots of its sites.
    """
    enumerated = 0
    for number, step in enumerate(steps):
        best: dict[str, Any] | None = None
        for demand, slots, groups in enumerate_instances(step, beyond):
            found, looked = _first(Batch(policy, demand, slots, groups), flaw)
            enumerated += looked
            if found is not None and (best is None or _tasks(found) < _tasks(best)):
                best = found
        if best is not None:
            return Search(best, enumerated, 0, list(steps[: number + 1]))
    drawn = 0
    if rng is not None:
        for demand, slots, groups in draw_instances(rng, policy in SINGLE, *_amount(small)):
            found, looked = _first(Batch(policy, demand, slots, groups), flaw)
            drawn += looked
            if found is not None:
                return Search(found, enumerated, drawn, list(steps))
    return Search(None, enumerated, drawn, list(steps))


def _tasks(instance: Mapping[str, Any]) -> int:
    return sum(map(sum, instance["demand"]))


def _first(batch: Batch, flaw: Flaw) -> tuple[dict[str, Any] | None, int]:
    """Return the instance of a batch with the flaw and the fewest tasks, and the number of instances."""
    demand = batch.demand
    counts: Flags = (demand.max(axis=1) > 0).all(axis=1) & (demand.max(axis=2) > 0).all(axis=1)
    policy, demand, slots, groups = batch = batch._replace(demand=demand[counts], slots=batch.slots[counts])
    best: dict[str, Any] | None = None
    for mask, details in flaw(batch) if len(demand) else ():
        hits = np.flatnonzero(mask)
        if hits.size:
            b = int(hits[np.argmin(demand[hits].sum(axis=(1, 2)))])
            found = _instance(policy, demand[b], slots[b].tolist(), groups)
            for name, value in details.items():
                if isinstance(value, np.ndarray):
                    found[name] = texts(value[b], batch.jobs)
                else:
                    found[name] = value(b) if callable(value) else value
            if best is None or _tasks(found) < _tasks(best):
                best = found
    return best, len(demand)


# findings ------------------------------------------------------------------------------------------


def read_instance(instance: Shown) -> tuple[list[list[int]], list[int], list[list[int]], str]:
    """Return demand, slots, groups and policy of an instance that a finding shows."""
    return instance["demand"], instance["slots"], instance["groups"], instance["policy"]


def states(instance: Shown, **values: Fraction | Iterable[Fraction]) -> bool:
    """Return True if an instance states these values under their names; it may have no such entries."""
    shown = {name: str(x) if isinstance(x, Fraction) else [*map(str, x)] for name, x in values.items()}
    return all(instance.get(name, text) == text for name, text in shown.items())


# flaws ---------------------------------------------------------------------------------------------


def pareto(batch: Batch) -> Flaws:
    """Flaw: aggregates sum to less than the maximum flow; if not, none can grow unless another shrinks."""
    need = (batch.demand @ batches.outside_sets(batch.groups, batch.slots.shape[1])).sum(axis=1)
    most = (batches.capacities(batch.slots) + need).min(axis=1)  # that all jobs together can have, in slots
    yield batch.aggregates().sum(axis=1) != most * batches.unit(batch.jobs), {}


def _shared(batch: Batch) -> tuple[Integers, Callable[[int, Integers, Integers], Flags]]:
    """Return the aggregates [B, J] of a batch, and a function of a job, tasks [B, K] and amounts [B].

    It returns whether the tasks could use more of the job's allocation than the amount [B]: for SIG-GAMF in
    every matrix with these aggregates, for SIG-AMF in some matrix, for AMF and GAMF in some matrix even if
    the slots could run any of the tasks.
    """
    one = batches.unit(batch.jobs)
    if batch.policy == "imf":
        share = batches.water_shares(batch.demand, batch.slots)

        def uses_more(i: int, tasks: Integers, own: Integers) -> Flags:
            mask: Flags = np.minimum(share[:, i], tasks * one).sum(axis=1) > own
            return mask

        return share.sum(axis=2), uses_more
    shares = batch.shares()
    left = functools.cache(lambda i: batches.capacity_left(shares, (i,)))

    def more(i: int, tasks: Integers, own: Integers) -> Flags:
        if batch.policy in GENEROUS:
            most = (left(i) + tasks @ shares.outside * one).min(axis=1)
            return (most > own) & (shares.aggregate[:, i] > own)
        mask: Flags = batches.most_useful(shares, i, tasks) > own
        hits = np.flatnonzero(mask)
        if batch.policy == "sig-gamf" and hits.size:
            mask[hits] = batches.least_useful(shares.take(hits), i, tasks[hits]) > own[hits]
        return mask

    return shares.aggregate, more


def envy(batch: Batch) -> Flaws:
    """Flaw: job ``job`` could use more of the allocation of job ``envies`` than it has (:func:`_shared`)."""
    policy, demand, slots, groups = batch
    aggregates, more = _shared(batch)
    for i, other in itertools.permutations(range(batch.jobs), 2):

        def useful(b: int, i: int = i, other: int = other) -> str:
            rows, own = demand[b].tolist(), slots[b].tolist()
            ends = model.useful_range(rows, own, groups, policy, other, rows[i])
            return str(ends[policy != "sig-gamf"])

        details = {"job": i, "envies": other, "aggregates": aggregates, "useful": useful}
        yield more(other, demand[:, i], aggregates[:, i]), details


def below_floors(batch: Batch) -> Flaws:
    """Flaw: with AMF no matrix meets (4.3) and (4.4) (SIG-AMF's aggregates differ); with GAMF A_i < X_i."""
    free = batch.aggregates()
    if batch.policy == "amf":
        sig = batch.aggregates("sig-amf")
        yield (free != sig).any(axis=1), {"aggregates": free, "sig_amf": sig}
    else:
        floors = batches.isolated(*batch[1:])
        yield (free < floors).any(axis=1), {"aggregates": free, "isolated": floors}


def unfair(batch: Batch) -> Flaws:
    """Flaw: the aggregates are not max-min fair (Definition 4.1) among allocations with the floors."""
    yield ~batches.satisfies_definition(batch.shares()), {}


# lies ----------------------------------------------------------------------------------------------


def enumerate_lies(policy: str, steps: Sequence[Step]) -> Search:
    """Find the smallest instance among some steps in which a job gains by misreporting its demand.

    Misreports are all demands up to the slots of each group's sites, upward and downward, also in groups
    without tasks. Ties go to the lie that differs least from the truth.
    """
    enumerated = 0
    for number, step in enumerate(steps):
        best: dict[str, Any] | None = None
        least = (0, 0)
        for groups, slots in batches.settings(step.sites, step.kinds, step.slots, step.single):
            rows = batches.demand_rows(groups, slots)
            others = batches.job_multisets(len(rows), step.jobs - 1)
            demand = np.empty((len(rows), len(others), step.jobs, len(groups)), dtype=np.int64)
            demand[:, :, 0] = rows[:, None]
            demand[:, :, 1:] = rows[others]
            enumerated += len(rows) * (len(rows) - 1) * len(others)
            reports = demand.reshape(-1, step.jobs, len(groups))
            aggregates, more = _shared(Batch(policy, reports, _repeat(slots, len(reports)), groups))
            honest = aggregates[:, 0].reshape(len(rows), len(others))
            for r, row in enumerate(rows):
                tasks, own = np.broadcast_to(row, (len(reports), len(groups))), np.tile(honest[r], len(rows))
                mask = more(0, tasks, own).reshape(honest.shape)  # by report, and choice of the others' rows
                for lie, choice in np.argwhere(mask & (demand[r].max(axis=2) > 0).all(axis=1)):
                    truth = demand[r, choice]
                    size = int(truth.sum()), int(np.abs(rows[lie] - rows[r]).sum())
                    if best is None or size < least:
                        best, least = _instance(policy, truth, slots, groups), size
                        best |= {"job": 0, "report": rows[lie].tolist()}
        if best is not None:
            return Search(_with_gain(best), enumerated, 0, list(steps[: number + 1]))
    return Search(None, enumerated, 0, list(steps))


def draw_lies(policy: str, rng: np.random.Generator, small: bool) -> tuple[dict[str, Any] | None, int]:
    """Return a random instance in which a random lie gains, or None, and the number of lies tried."""
    tried = 0
    for demand, slots, groups in draw_instances(rng, policy in SINGLE, *_amount(small)):
        counts: Flags = (demand.max(axis=2) > 0).all(axis=1)
        demand, slots = demand[counts], slots[counts]
        if not len(demand):
            continue
        lies, own = demand.copy(), demand[:, 0]
        change = rng.integers(-5, 7, own.shape) * (rng.random(own.shape) < 0.6)
        lies[:, 0] = np.maximum(own + change, 0)
        tried += len(demand)
        batch = Batch(policy, demand, slots, groups)
        mask = _shared(batch._replace(demand=lies))[1](0, own, batch.aggregates()[:, 0])
        for b in np.flatnonzero(mask)[:1]:
            found = _instance(policy, demand[b], slots[b].tolist(), groups)
            return _with_gain(found | {"job": 0, "report": lies[b, 0].tolist()}), tried
    return None, tried


def _with_gain(found: dict[str, Any]) -> dict[str, Any]:
    """Add to a lie the aggregates with and without it, and how much the liar can use with it."""
    demand, slots, groups, policy, i = (found[key] for key in ("demand", "slots", "groups", "policy", "job"))
    lying = [found["report"] if x == i else row for x, row in enumerate(demand)]
    useful = model.useful_range(lying, slots, groups, policy, i, demand[i])[policy != "sig-gamf"]
    return found | {
        "aggregates": [str(x) for x in model.aggregates_of(demand, slots, groups, policy)],
        "aggregates_if_lying": [str(x) for x in model.aggregates_of(lying, slots, groups, policy)],
        "useful_if_lying": str(useful),
    }
