"""Growth of an episode's time with its size: ``python -m benchmarks growth``.

The modules of ``benchmarks/problems`` list in ``GROWTH`` which sizes grow, with the exponents that the
algorithms lead one to expect. A policy's time is that of its decisions; the environment's is the rest: reset,
steps, observations. The exponent is the slope of log time over log size, fitted to the larger half of the
sizes, as constant costs dominate at small ones. It uses one process and one core, and takes the fastest of
three runs of a short episode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cases import Growth, axes
from schedgym.core.policy import make_policy
from schedgym.core.problem import get_problem
from schedgym.evaluation.bench import chosen, finish, timed_episode
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.plan import acting_parameters, default_policies

LIMIT = 10.0  # s that an episode may take
MARGIN = 0.3  # by which a fitted exponent may exceed the expected one
SHORT = 1.0  # s below which an episode is repeated
REPETITIONS = 3
LEAST = 2e-3  # s that the last time must reach for an exponent to mean anything


class Point(NamedTuple):
    """One episode.

    Attributes:
        size: the value of the quantity that grows.
        steps: number of decisions.
        policy: seconds of the policy's decisions.
        env: seconds of everything else.
    """

    size: int
    steps: int
    policy: float
    env: float


def grow(growth: Growth, policy: str, limit: float = LIMIT) -> Iterator[Point]:
    """Episodes of ever larger size, as long as the next should take at most ``limit`` seconds.

    Args:
        growth: the quantity that grows.
        policy: name of a policy of the problem.
        limit: [s]; the next time is extrapolated from the last two.
    """
    problem = get_problem(growth.id)
    last: Point | None = None
    slope = 1.0
    for size in growth.sizes:
        if last is not None and (last.policy + last.env) * (size / last.size) ** slope > limit:
            return
        acting = make_policy(policy, problem.name)
        parameters = acting_parameters(problem, growth.id, growth.parameters(size), acting)
        env = make_env(growth.id, parameters)
        if last is None:
            timed_episode(env, acting)  # compiles
        points = [Point(size, *timed_episode(env, acting))]
        while points[0].policy + points[0].env < SHORT and len(points) < REPETITIONS:
            points.append(Point(size, *timed_episode(env, acting)))
        point = min(points, key=lambda own: own.policy + own.env)
        if last is not None:
            ratio = (point.policy + point.env) / (last.policy + last.env)
            slope = max(1.0, math.log(ratio) / math.log(size / last.size))
        yield point
        last = point


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of log seconds over log size, for the larger half of the sizes; NaN for fewer than two."""
    count = max(2, (len(sizes) + 1) // 2)
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes[-count:]), np.log(seconds[-count:]), 1)[0])


def _verdict(points: Sequence[Point], expected: tuple[float, float]) -> tuple[float, float, str]:
    """The exponents of policy and environment, and a verdict on them in words."""
    sizes = [point.size for point in points]
    policy, env = (exponent(sizes, [point[i] for point in points]) for i in (2, 3))
    if len(points) < 2:
        return policy, env, "too slow to tell"
    above = [
        name
        for name, found, least, limit in (
            ("policy", policy, points[-1].policy, expected[0]),
            ("environment", env, points[-1].env, expected[1]),
        )
        if least >= LEAST and found > limit + MARGIN
    ]
    return policy, env, f"above: {', '.join(above)}" if above else "as expected"


def main(name: str | None = None, quick: bool = False, json: str | Path | None = None) -> dict[str, Any]:
    """Measure, print a table per axis, and write JSON if a file is named.

    Args:
        name: an environment id or a problem; None: all of them.
        quick: episodes of a second at most.
        json: file for the results.

    Returns:
        {"growth": rows}, a row per axis and policy, with its points.

    Raises:
        UnknownName: for a name that is neither.
    """
    limit = LIMIT / 10 if quick else LIMIT
    rows: list[dict[str, Any]] = []
    print(f"one process, one core; exponents of seconds per episode; sizes up to {limit:g} s an episode")
    for problem, id in chosen(name):
        for growth in axes(problem, id):
            print(f"\n{id}, {growth.name}: {growth.why}")
            print(f"{'policy':<16}{'policy':>8}{'expected':>10}{'env':>8}{'expected':>10}   largest episode")
            for policy in default_policies(problem, id, [growth.parameters(growth.sizes[0])]):
                expected = growth.expected.get(policy, growth.expected[""])
                points = list(grow(growth, policy, limit))
                found, env, verdict = _verdict(points, expected)
                last = points[-1]
                print(
                    f"{policy:<16}{found:>8.2f}{expected[0]:>10g}{env:>8.2f}{expected[1]:>10g}   "
                    f"{last.size:,}: {last.policy:.3g} + {last.env:.3g} s   {verdict}",
                    flush=True,
                )
                row: dict[str, Any] = {"id": id, "axis": growth.name, "policy": policy}
                row |= {"policy_exponent": found, "env_exponent": env}
                row |= {"expected": expected, "verdict": verdict}
                rows.append(row | {"points": [point._asdict() for point in points]})
    return finish("growth", rows, json)
