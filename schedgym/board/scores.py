"""Scores of candidates: 0 is the paper's own algorithm, 1 the best known schedule.

The score of an instance is (reference - value) / (reference - best known), whether less is better or more. A
difference of reference and best known below LEAST of what the reference usually is, in the mean over the
set's instances of the same size, counts as that much: where the paper's algorithm is the best that is known,
or nearly, the best known schedule has less than 1. A score has no lower end: of a candidate that is much
worse than the paper's algorithm, a few instances may decide the mean. An instance that was refused has the
paper's own schedule and the score 0. The score of a set is the mean, with a bootstrap interval: the instances
are paired, as the reference met the same ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from schedgym.board.entries import Known, known
from schedgym.board.judge import judge
from schedgym.board.suites import Instance, load_suite
from schedgym.board.walls import Limits, play
from schedgym.core.record import ScheduleRecord
from schedgym.errors import InvalidSchedule, SchedgymError
from schedgym.evaluation.statistics import Estimate, estimate_difference
from schedgym.evaluation.wording import estimate_text, four_digits

LEAST = 0.01
FAILED = -1.0  # what a refused instance, or a program that is none, is to a searcher
SHOWN = 5  # instances that a feedback names


@dataclasses.dataclass(frozen=True)
class Result:
    """What a candidate has reached in an instance.

    Attributes:
        instance: the instance.
        known: what is known of it.
        usual: the reference's mean over the set's instances of its size: :func:`facts_of`.
        value: the objective; of a refused instance that of the paper's own algorithm.
        schedule: a valid schedule; None: the instance was refused.
        refusal: why it was refused, "" if it was not.
    """

    instance: Instance
    known: Known
    usual: float
    value: float
    schedule: ScheduleRecord | None = None
    refusal: str = ""

    @property
    def score(self) -> float:
        """:func:`score_of` the value."""
        return score_of(self.value, self.known, self.usual, self.instance.objective.sign)


@dataclasses.dataclass(frozen=True)
class Report:
    """What a candidate has reached in a set of a suite.

    Attributes:
        candidate: its name.
        suite: name of the suite.
        set: name of the set.
        results: of each instance.
        decisions: number of decisions.
        seconds: CPU time that the candidate took for them [s].
        missing: what this system could not restrict, a text each.
    """

    candidate: str
    suite: str
    set: str
    results: tuple[Result, ...]
    decisions: int
    seconds: float
    missing: tuple[str, ...]

    @property
    def refused(self) -> list[Result]:
        """The results of the instances that were refused."""
        return [result for result in self.results if result.refusal]

    @property
    def sizes(self) -> dict[str, list[Result]]:
        """Name of each size -> its results."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            found.setdefault(result.instance.size, []).append(result)
        return found

    @property
    def combined_score(self) -> float:
        """The mean of what the scores are to a search, from FAILED: it shall not learn to crash.

        A score has no lower end, so that a negative one, s, counts as s / (1 - s): any schedule beats none.
        """
        scores = [FAILED if own.refusal else own.score / (1.0 - min(own.score, 0.0)) for own in self.results]
        return float(np.mean(scores))

    def feedback(self) -> str:
        """A text for a searcher: where the candidate loses."""
        reference, metric = load_suite(self.suite).reference, self.results[0].instance.objective
        lines = [
            f"score {estimate_text(estimate_score(self.results))} on {len(self.results)} instances of "
            f"{self.suite}/{self.set} (0: {reference}, the paper's own algorithm; 1: the best known schedule)"
        ]
        lines += [f"{size}: {estimate_text(estimate_score(own))}" for size, own in self.sizes.items()]
        for result in sorted(self.results, key=lambda result: result.score)[:SHOWN]:
            facts = {metric.name: result.value, reference: result.known.reference}
            facts |= {"best known": result.known.best_known, "score": result.score}
            values = ", ".join(f"{name} {four_digits(value)}" for name, value in facts.items())
            lines.append(f"{result.instance.name} ({result.instance.size}): {values}")
        lines += [f"refused: {result.instance.name}: {result.refusal}" for result in self.refused[:SHOWN]]
        if len(self.refused) > SHOWN:
            lines.append(f"refused: {len(self.refused)} instances in all")
        return "\n".join(lines)

    def content(self) -> dict[str, Any]:
        """The report as JSON data."""
        return {
            "combined_score": self.combined_score,
            "candidate": self.candidate,
            "suite": self.suite,
            "set": self.set,
            "score": dataclasses.asdict(estimate_score(self.results)),
            "ratio_to_bound": ratio_to_bound(self.results),
            "refused": len(self.refused),
            "decisions": self.decisions,
            "seconds": self.seconds,
            "not_restricted": list(self.missing),
            "feedback": self.feedback(),
            "instances": [
                {
                    "instance": result.instance.name,
                    "size": result.instance.size,
                    "score": result.score,
                    result.instance.objective.name: result.value,
                    **dataclasses.asdict(result.known),
                    "refusal": result.refusal,
                }
                for result in self.results
            ],
        }


def facts_of(instances: Sequence[Instance]) -> list[tuple[Known, float]]:
    """Of each instance of a set, what is known, and the mean of the absolute references of its size."""
    found = [known(instance) for instance in instances]
    usual: dict[str, list[float]] = {}
    for instance, own in zip(instances, found, strict=True):
        usual.setdefault(instance.size, []).append(abs(own.reference))
    return [(own, float(np.mean(usual[i.size]))) for i, own in zip(instances, found, strict=True)]


def score_of(value: float, known: Known, usual: float, sign: float) -> float:
    """The score of an objective's value in an instance.

    Args:
        value: the objective.
        known: what is known of the instance.
        usual: what the absolute reference usually is.
        sign: of the objective, :attr:`~schedgym.core.problem.Metric.sign`.
    """
    gain = sign * (known.reference - value)
    unit = max(sign * (known.reference - known.best_known), LEAST * usual)
    if unit > 0:
        return gain / unit
    return float(np.sign(gain))  # the paper's algorithm reaches 0, the best known value, in all of them


def estimate_score(results: Iterable[Result], others: Iterable[Result] = ()) -> Estimate:
    """The mean score with its interval; given others' results of these instances, how much higher it is."""
    return estimate_difference([own.score for own in results], [other.score for other in others] or 0.0)


def ratio_to_bound(results: Iterable[Result]) -> float:
    """The mean value over the mean bound; nan where a bound is missing or all are 0."""
    found = [(own.value, math.nan if own.known.bound is None else own.known.bound) for own in results]
    value, bound = np.mean(found, axis=0)
    return float(value / bound) if bound else math.nan


def run(
    candidate: str,
    suite: str,
    set: str = "test",
    phrase: str | None = None,
    limits: Limits | None = None,
) -> Report:
    """Play a candidate on a set of a suite behind walls, judge its schedules, and score them.

    Args:
        candidate: as of :func:`schedgym.board.walls.play`.
        suite: name of the suite.
        set: name of the set.
        phrase: of the secret set.
        limits: what the candidate may use.

    Raises:
        UnknownName: for an unknown suite or set.
        InvalidParameter: if the candidate cannot be loaded, or cannot act in the suite's environments.
        InvalidWorkload: if an instance cannot be made here as it was frozen.
    """
    instances = load_suite(suite).instances(set, phrase)
    played = play(candidate, instances, limits)
    results = []
    for number, (instance, facts) in enumerate(zip(instances, facts_of(instances), strict=True)):
        schedule = played.played[number]
        try:
            if isinstance(schedule, str):
                raise InvalidSchedule(schedule)
            results.append(Result(instance, *facts, judge(instance, schedule), schedule))
        except InvalidSchedule as error:
            results.append(Result(instance, *facts, facts[0].reference, refusal=str(error)))
    told = played.decisions, played.seconds, tuple(played.missing)
    return Report(candidate, suite, set, tuple(results), *told)


def evaluate_program(program: str, suite: str, set: str = "train") -> dict[str, Any]:
    """Score a program for a searcher.

    Args:
        program: path of a Python file with the class ``Candidate``.
        suite: name of the suite.
        set: name of the set.

    Returns:
        ``combined_score``, which is to be raised; ``error``, "" or why nothing was played; ``feedback``, a
        text; and, where something was played, ``refused``, the number of refused instances, and ``seconds``
        of CPU time.
    """
    try:
        report = run(f"{program}:Candidate", suite, set)
    except (SchedgymError, OSError) as error:
        return {"combined_score": FAILED, "error": str(error), "feedback": str(error)}
    first = report.refused[0].refusal if len(report.refused) == len(report.results) else ""
    return {
        "combined_score": report.combined_score,
        "refused": len(report.refused),
        "seconds": report.seconds,
        "error": first,
        "feedback": report.feedback(),
    }
