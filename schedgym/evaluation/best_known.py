"""Best known schedules: an offline local search in each episode, the counterpart of the bound.

A bound says what no schedule can reach; the best schedule that a search finds says what one can. What lies
between is not known: what a policy can still gain is at most its distance from the bound, and, by one that
knows the future, at least that from the best known schedule.

The search knows the whole episode: it plays it again and again. A schedule is written as random keys (Bean:
Genetic algorithms and random keys for sequencing and optimization, ORSA J. Computing 6, 1994): an offset for
each job (for each pair of a job, where pairs are scored) on the scores of a trained agent, and the agent's
own parameters. The compiled rollout of the agent's view makes the schedule of them, so every value is that of
a schedule which the environment itself carried out. The search starts at the agent, changes a few keys or
parameters at a time, and takes a change by late acceptance hill climbing (Burke and Bykov, The late
acceptance hill-climbing heuristic, European J. Operational Research 258, 2017): if it is no worse than the
current schedule, or than the one that was current some time ago. How large changes are is learned from those
that succeed.

It finds what the view can say. In view ``pick`` of ParallelJCT it orders the jobs, and OnTaPRA's planning
places their tasks. Where an agent's score has a very large weight, keys do not outweigh it. Where few jobs
wait, most changes of parameters change nothing and are taken: they can add up to scores beyond the bounds of
a view, which no key brings back. :func:`take_best` takes the best policy's schedule where the search does not
beat it.
"""

from __future__ import annotations

import dataclasses
import math
import re
import time
from typing import Any, cast

import numpy as np

from schedgym.agents.agent_policy import AgentPolicy
from schedgym.agents.files import Agent
from schedgym.agents.scorer import Scorer
from schedgym.core.arrays import Floats, Floats32
from schedgym.core.policy import Interface
from schedgym.core.rollouts import play_out
from schedgym.core.simulator import Simulator
from schedgym.errors import InvalidParameter
from schedgym.evaluation.comparison import Evaluation

BEST_KNOWN = "best-known"  # the label of its row
#: parameters that the search sets: all jobs are visible, and no other planner decides
SEARCHED = {"window": "all", "fallback": "none"}
ROWS = ("jobs", "tasks", "pairs")  # tokens whose rows are jobs
HISTORY = 10  # of late acceptance: as many steps ago a schedule was current that a change may be worse than
SIZES = 2.0 ** np.arange(-9, 6)  # standard deviations of a change of a key or a parameter
FORGET = 0.99  # of the successes of a size, when it is tried again
LEAST = 0.02  # share of the tries that goes to a size evenly
PARAMETERS = 0.15  # share of the changes that are of the agent's parameters
FEW = 0.5  # chance that a change of keys is not of one more job


@dataclasses.dataclass(frozen=True)
class Budget:
    """The length of a search: a number of schedules, or CPU seconds, without those of compiling.

    With a number of schedules the result is the same on every machine.

    Raises:
        InvalidParameter: if there is not exactly one of them, above 0.
    """

    evaluations: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.evaluations, self.seconds) if value is not None]
        if len(given) != 1 or not 0 < given[0] < math.inf:
            raise InvalidParameter("budget: must be a number of evaluations, or of CPU seconds, above 0")

    @staticmethod
    def parse(text: str) -> Budget:
        """The budget that a text names: "5000" evaluations, or "20s" of CPU time."""
        if re.fullmatch(r"\d+", text):
            return Budget(evaluations=int(text))
        if re.fullmatch(r"\d+(\.\d*)? *s", text):
            return Budget(seconds=float(text.rstrip(" s")))
        raise InvalidParameter(f"budget: must be a number such as 5000, or CPU seconds as 20s, got {text!r}")

    def __str__(self) -> str:
        if self.evaluations is not None:
            return f"{self.evaluations} evaluations"
        return f"{self.seconds:g} CPU seconds"


class BestKnown(AgentPolicy):
    """The search in the place of a policy, so that it is evaluated, validated and checked like one.

    It is none: it plays the episode many times before it ends. The same random numbers and number of
    evaluations give the same schedule.

    Args:
        agent: the agent from which the search starts.
        budget: its length in an episode.

    Raises:
        InvalidParameter: for an agent that has no compiled rollout.
    """

    def __init__(self, agent: Agent, budget: Budget) -> None:
        super().__init__(agent, BEST_KNOWN)
        self.budget = budget

    def acting_parameters(self, id: str, given: Any) -> dict[str, Any]:
        """The agent's parameters, but for those of SEARCHED."""
        found = super().acting_parameters(id, given)
        return {**found, **{name: value for name, value in SEARCHED.items() if name in found}}

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`."""
        super().reset(interface, rng)
        if not self._plays:
            raise InvalidParameter(
                f"{BEST_KNOWN}: {self.agent.name} does not play whole episodes in view {interface.view}"
            )
        self._rng = rng

    def _rollout(self, simulator: Simulator) -> float:
        """Search, and play what was found."""
        layout = self._prepare({name: array[0] for name, array in simulator.observation.items()})
        segment = layout.segments[0]
        if not segment.tokens or segment.tokens[0].key not in ROWS:
            raise InvalidParameter(f"{BEST_KNOWN}: the scores of view {layout.view} are not of jobs")
        assert self._scorer is not None
        climb = _Climb(simulator, self._scorer, self.agent.weights["theta"], self._rng)
        climb.run(self.budget)
        return climb.play(climb.best)


@dataclasses.dataclass(frozen=True)
class _Keys:
    """A schedule: parameters of the scorer, and the offsets of each job, [jobs, pairs of a job]."""

    theta: Floats32
    offsets: Floats


class _Climb:
    """Late acceptance hill climbing in the episode that a simulator of one environment has begun.

    Attributes:
        best: the best schedule so far.
        least: its cost.
        evaluations: schedules played.
    """

    def __init__(
        self, simulator: Simulator, scorer: Scorer, theta: Floats32, rng: np.random.Generator
    ) -> None:
        self.simulator, self.scorer, self.rng = simulator, scorer, rng
        problem = simulator.problem
        metric = problem.metric(problem.objective_of(simulator.parameters))
        self.index = simulator.metric_names.index(metric.name)
        self.sign = metric.sign
        segment = scorer.layout.segments[0]
        self.spread = scorer.spread()
        self.successes = np.ones((2, len(SIZES)))  # of parameters, and of keys
        jobs = segment.count // segment.width
        self.best = _Keys(theta, np.zeros((jobs, segment.width)))
        self.evaluations = 0
        self.least = self.cost(self.best)

    def play(self, keys: _Keys) -> float:
        """Play the episode from its beginning; return the sum of the rewards."""
        live = np.ones(1, dtype=bool)
        self.simulator.begin_again(live)
        scorer = self.scorer
        weights, offsets = scorer.weights(keys.theta, 1), keys.offsets.reshape(1, -1)
        total, _ = play_out(self.simulator, scorer.form, scorer.masks, weights, live, offsets)
        return float(total[0])

    def cost(self, keys: _Keys) -> float:
        """The objective, less is better; infinite if work is left that should not be."""
        self.evaluations += 1
        self.play(keys)
        if self.simulator.truncated[0]:
            return math.inf
        return self.sign * float(self.simulator.measure(np.ones(1, dtype=bool))[0, self.index])

    def change(self, keys: _Keys, kind: int, size: float) -> _Keys:
        """A schedule like this one: with other parameters (kind 0), or with other keys of a few jobs."""
        rng = self.rng
        if kind == 0:
            chosen = rng.random(self.scorer.size) < 1.0 / max(int(rng.integers(self.scorer.size + 1)), 1)
            steps = np.where(chosen, size * self.spread * rng.standard_normal(self.scorer.size), 0.0)
            return dataclasses.replace(keys, theta=(keys.theta + steps).astype(np.float32))
        jobs, width = keys.offsets.shape
        count = int(np.minimum(rng.geometric(FEW), jobs))
        reach = int(count * (jobs / count) ** rng.random())  # jobs near each other in number meet more often
        first = int(rng.integers(jobs - reach + 1))
        rows = first + rng.choice(reach, size=count, replace=False)
        offsets = keys.offsets.copy()
        if width > 1 and rng.random() < 0.5:
            offsets[rows, rng.integers(width, size=count)] += size * rng.standard_normal(count)
        else:
            offsets[rows] += size * rng.standard_normal((count, 1))
        return dataclasses.replace(keys, offsets=offsets)

    def run(self, budget: Budget) -> None:
        """Search until the budget is spent."""
        current, cost = self.best, self.least
        history = np.full(HISTORY, cost)
        began = time.process_time()  # the first schedule has compiled what is needed
        while not self._spent(budget, began):
            kind = int(self.rng.random() >= PARAMETERS) if self.scorer.size else 1
            chances = self.successes[kind] / self.successes[kind].sum()
            which = int(self.rng.choice(len(SIZES), p=LEAST + (1.0 - LEAST * len(SIZES)) * chances))
            tried = self.change(current, kind, float(SIZES[which]))
            new, at = self.cost(tried), self.evaluations % HISTORY
            better = new < cost
            self.successes[kind, which] = FORGET * self.successes[kind, which] + better
            if new <= cost or new <= history[at]:
                current, cost = tried, new
                if cost < self.least:
                    self.best, self.least = current, cost
            history[at] = min(history[at], cost)

    def _spent(self, budget: Budget, began: float) -> bool:
        if budget.evaluations is not None:
            return self.evaluations >= budget.evaluations
        return time.process_time() - began >= cast(float, budget.seconds)


def take_best(evaluation: Evaluation) -> Evaluation:
    """Give the search the values of the best policy in each episode where that beats it.

    Args:
        evaluation: results of policies, among which the search is :data:`BEST_KNOWN`.
    """
    found, name = evaluation.frame.copy(), evaluation.objective.name
    for _, part in evaluation.parts():
        for _, rows in part.groupby(["seed", "episode"]):
            costs = evaluation.objective.sign * rows[rows["metric"] == name].set_index("policy")["value"]
            if costs.min() < costs[BEST_KNOWN]:
                best = rows[rows["policy"] == costs.idxmin()].set_index("metric")["value"]
                places = rows.index[rows["policy"] == BEST_KNOWN]
                found.loc[places, "value"] = best.reindex(found.loc[places, "metric"]).to_numpy()
    return dataclasses.replace(evaluation, frame=found)


def distances(evaluation: Evaluation) -> list[tuple[dict[str, Any], str, float]]:
    """Compare the best policy with the best known schedules, in each setting of an evaluation that has both.

    Returns:
        the setting, the policy with the best mean, and its mean over the best known schedules', less 1.
    """
    found = []
    for setting, comparison in evaluation.comparisons():
        means = {label: float(table.mean()) for label, table in comparison.tables.items()}
        known = means.pop(BEST_KNOWN)
        policy = min(means, key=lambda label: comparison.metric.sign * means[label])
        found.append((setting, policy, means[policy] / known - 1.0 if known else math.nan))
    return found
