"""Runs: scale, seed and reading of claims and figures, and what the policies did that they ran."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from schedgym.core.policy import make_policy
from schedgym.core.random import EVALUATION_SEEDS
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.comparison import Evaluation
from schedgym.evaluation.engines import Engine, make_engine
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.runner import compare
from schedgym.evaluation.store import ResultsStore
from schedgym.papers.readings import OpenPoint

T = TypeVar("T")
Observer = Callable[[Any], Any]

#: small: seconds for the claims of a paper, minutes for all figures; paper: the sizes of the paper; tiny: the
#: smallest sizes, to test the code
SCALES = ("small", "paper", "tiny")


def play_workload(
    id: str, policy: str, workload: Workload, parameters: Mapping[str, Any] | None = None, **options: Any
) -> ScheduleRecord:
    """Run a registered policy on one workload, and return its checked schedule.

    Args:
        id: environment id.
        policy: full name of the policy.
        workload: the workload.
        parameters: parameters of the environment.
        options: options of the policy.
    """
    env = make_env(id, parameters)
    play(env, make_policy(policy, **options), label=policy, workload=workload)
    return env.record()


@dataclasses.dataclass
class Run:
    """Scale, seed, reading and processes of claims and figures; episodes that several of them need run once.

    Attributes:
        scale: one of ``SCALES``.
        seed: seed of all random numbers.
        n_jobs: number of processes; -1: one per core.
        progress: True to show a progress bar; None: only if stderr is a terminal.
        rng: random numbers of one claim or figure; see :meth:`alone`.
        reading: open point of the paper -> choice; other points have their defaults.
        all_readings: True if figures run all readings at the papers' sizes, too.
        engine: runs the episodes.
        store: of the episodes that were run; None: they are run again when they are needed again.
        spent: CPU seconds of the episodes, run now or before, by their keys in the store.
        ran: CPU seconds of those that were run for this claim or figure.

    Raises:
        UnknownName: there is no such scale.
        InvalidParameter: a seed out of range.
    """

    scale: str = "small"
    seed: int = 0
    n_jobs: int = 1
    progress: bool | None = None
    rng: np.random.Generator = dataclasses.field(default_factory=lambda: np.random.default_rng(0), repr=False)
    reading: Mapping[str, str] = dataclasses.field(default_factory=dict)
    all_readings: bool = False
    engine: Engine | None = dataclasses.field(default=None, repr=False)
    store: ResultsStore | None = dataclasses.field(default=None, repr=False)
    spent: dict[str, float] = dataclasses.field(default_factory=dict, repr=False)
    ran: float = 0.0

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise UnknownName("scale", self.scale, SCALES)
        if not 0 <= self.seed < EVALUATION_SEEDS:
            raise InvalidParameter(f"seed: must be from 0 to {EVALUATION_SEEDS - 1}, got {self.seed}")
        if self.engine is None:
            self.engine = make_engine("local", self.n_jobs, stays=True)  # many runs follow each other

    @property
    def small(self) -> bool:
        """True if the run must be short."""
        return self.scale != "paper"

    def alone(self, stream: str, reading: Mapping[str, str] | None = None) -> Run:
        """Return a copy for one claim or figure; it shares the runs made so far.

        Args:
            stream: name of its stream of random numbers.
            reading: open point -> choice; None: the defaults.
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(stream.encode())])
        return dataclasses.replace(self, rng=rng, reading=reading or {}, ran=0.0)

    def choice(self, point: OpenPoint) -> Any:
        """Return the value of the choice that is made at an open point of the paper."""
        return point.choices[self.reading.get(point.name, point.default)]

    def size(self, small: T, paper: T, tiny: T) -> T:
        """Return the value for the scale of this run."""
        return {"small": small, "paper": paper, "tiny": tiny}[self.scale]

    def play(
        self,
        id: str,
        policies: Sequence[str] | Mapping[str, str],
        episodes: int | None,
        grid: Mapping[str, Sequence[Any]] | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        observe: Observer | None = None,
    ) -> Evaluation:
        """Run policies on the same workloads: :func:`~schedgym.evaluation.runner.compare`.

        Episodes that were run before, for another claim, figure or reading, are not run again.

        Args:
            id: environment id.
            policies: names, or label -> name.
            episodes: episodes of each setting; None: all windows of a trace.
            grid: parameter -> values; all combinations are run.
            parameters: parameters of all settings.
            options: label -> options of the policy.
            observe: called with the environment at the end of an episode; must be a function of a module.
        """
        played = compare(
            id,
            policies,
            grid,
            episodes,
            self.seed,
            observe=observe,
            store=self.store,
            engine=self.engine,
            parameters=parameters,
            options=options,
            progress=self.progress,
        )
        self.spent |= played.spent
        self.ran += played.ran
        return played
