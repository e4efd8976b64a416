"""What it costs that candidates decide in a process of their own: ``python -m benchmarks board``.

The paper's own algorithm and the shipped agent play the test set of each suite twice, in the batches of
``schedgym board run``: apart as there, and in this process, where the same policies see the same observations
without a message between. All times are CPU seconds, of both processes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from schedgym.board.candidate import Expected, PolicyBatch, make_candidate
from schedgym.board.suites import Instance, load_suite, suites
from schedgym.board.walls import CandidateProcess, Limits, play_batch, prepare
from schedgym.core.arrays import Flags
from schedgym.core.simulator import Simulator
from schedgym.evaluation.bench import chosen, finish
from schedgym.evaluation.plan import acting_parameters

QUICK = 2  # instances of a size

#: of a batch, the seconds of all, those after the first step, and the number of decisions in these
Cost = dict[str, float]


def timed(decide: Any, simulator: Simulator, began: float, spent: Callable[[], float]) -> Cost:
    """Play a batch to its end, and say what it has cost.

    Args:
        decide: as of :func:`~schedgym.board.walls.play_batch`.
        simulator: of the batch.
        began: when everything began, by ``spent``.
        spent: the CPU seconds so far.
    """
    steps: list[float] = []

    def noted(live: Flags) -> Iterator[tuple[int, bytes, str]]:
        if len(steps) < 2:  # the first step loads kernels
            steps.append(spent())
        found: Iterator[tuple[int, bytes, str]] = decide(live)
        return found

    decisions = play_batch(simulator, noted, lambda index, played: None)
    ended = spent()
    first = simulator.num_envs if len(steps) > 1 else 0
    return {"seconds": ended - began, "deciding": ended - steps[-1], "decisions": decisions - first}


def play_here(candidate: str, batch: Sequence[Instance]) -> Cost:
    """The cost of a batch in this process."""
    began, first = time.process_time(), batch[0]
    policies = [make_candidate(candidate, first.id) for _ in batch]
    acting = acting_parameters(first.problem, first.id, first.parameters, policies[0])
    simulator = prepare(batch, acting)
    for place, policy in enumerate(policies):
        policy.reset(simulator.interface, np.random.default_rng(place))
    expected = Expected(simulator.action_shape, simulator.continuous)
    own = PolicyBatch(policies, simulator.observation, simulator.scalars, expected)

    def decide(live: Flags) -> Iterator[tuple[int, bytes, str]]:
        return ((index, own.decide(index), "") for index in np.flatnonzero(live).tolist())

    return timed(decide, simulator, began, time.process_time)


def play_apart(candidate: str, batch: Sequence[Instance]) -> Cost:
    """The cost of a batch whose candidate has a process of its own."""
    began = time.process_time()
    with contextlib.closing(CandidateProcess(candidate, batch[0], Limits(), len(batch))) as process:
        process.begin(prepare(batch, process.acting))
        return timed(process.decide, process.simulator, began, lambda: time.process_time() + process.seconds)


def main(id: str | None = None, quick: bool = False, json_file: str | None = None) -> None:
    """Measure, print a line for each suite and candidate, and write the results as JSON.

    Args:
        id: an id or a problem; None: all.
        quick: two instances of each size.
        json_file: where the results go.
    """
    asked = [own for _, own in chosen(id)]
    found = [suite for suite in map(load_suite, suites()) if suite.id in asked]
    rows: list[dict[str, Any]] = []
    pairs = [(suite, suite.reference) for suite in found] + [(suite, "pretrained") for suite in found]
    for suite, candidate in pairs:
        batches: dict[str, list[Instance]] = {}
        for instance in suite.instances("test"):
            batches.setdefault(instance.size, []).append(instance)
        row: dict[str, Any] = {"suite": suite.name, "candidate": candidate}
        for name, play in (("here", play_here), ("apart", play_apart)):
            play(candidate, next(iter(batches.values()))[:1])  # compiles: here, as apart no file is written
            measured = [play(candidate, own[: QUICK if quick else None]) for own in batches.values()]
            row[name] = {key: sum(one[key] for one in measured) for key in measured[0]}
        if row["apart"]["decisions"] != row["here"]["decisions"]:
            raise RuntimeError(f"{suite.name}, {candidate}: decides otherwise in a process of its own")
        rows.append(row)
        micros = {name: 1e6 * row[name]["deciding"] / row[name]["decisions"] for name in ("apart", "here")}
        told = ", ".join(
            f"{name} {row[name]['seconds']:.3g} s, {micros[name]:.3g} us a decision" for name in micros
        )
        print(f"{suite.name} {candidate}: {told}", flush=True)
        finish("board", rows, json_file)  # what is measured stays if the rest is cut off
