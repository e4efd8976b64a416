"""Saving and restoring one environment: memory copies, for tree search and other searches in a simulator."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Integers
from schedgym.core.future import join_future
from schedgym.core.problem import Parameters
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT
from schedgym.core.tokens import tokens_of
from schedgym.core.workload import Workload
from schedgym.errors import InvalidParameter

Arrays = list[npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The state of one environment.

    Attributes:
        made: id and parameters of the environment.
        sizes: lengths of its arrays' dimensions.
        state: its arrays, but for those of the workload.
        jobs: the arrays of the workload; of all snapshots of an episode they are the same objects.
        loading: which workload that is: the same object for the same workload.
        given: the workloads that were given to it, for this episode, the next one and all that follow.
        seeding: seed, number of the next episode, whether it has been seeded.
    """

    made: tuple[str, Parameters]
    sizes: dict[str, int]
    state: Arrays
    jobs: Arrays
    loading: object
    given: tuple[Workload | None, ...]
    seeding: tuple[Any, ...]


def save(simulator: Simulator, index: int) -> Snapshot:
    """Copy the state of environment ``index``."""
    loading = simulator.loadings[index]
    kept = simulator.saved.get(index)
    if kept is None or kept[0] is not loading:
        kept = simulator.saved[index] = loading, [array[index].copy() for array in simulator.jobs]
    given = (mapping.get(index) for mapping in (simulator.loaded, simulator.once, simulator.repeated))
    seeding = tuple(array[index] for array in (simulator.seeds, simulator.episodes, simulator.seeded))
    state = [array[index].copy() for array, _ in simulator.changing]
    made = simulator.id, simulator.parameters
    return Snapshot(made, simulator.sizes, state, kept[1], loading, tuple(given), seeding)


def restore(simulator: Simulator, index: int, snapshot: Snapshot, seed: int | None = None) -> None:
    """Bring environment ``index`` to a saved state, of this or another simulator made alike.

    Args:
        simulator: the simulator.
        index: the environment.
        snapshot: the state.
        seed: by which :func:`resample` draws the jobs anew that have not arrived yet; None: they stay.

    Raises:
        InvalidParameter: before anything changes: if the state is of an environment with another id or other
            parameters, or nothing draws jobs, as the environment was made with a workload.
    """
    if seed is not None and simulator.source is None:
        raise InvalidParameter("resample: the environment was made with a workload, and has no generator")
    if snapshot.made != (simulator.id, simulator.parameters):
        raise InvalidParameter("restore: the state is of an environment with another id or other parameters")
    if snapshot.sizes is not simulator.sizes:
        simulator.reserve(**snapshot.sizes)
    for (array, declared), values in zip(simulator.changing, snapshot.state, strict=True):
        _put(array, index, values, declared.fill)
    if snapshot.loading is not simulator.loadings[index]:
        for array, values in zip(simulator.jobs, snapshot.jobs, strict=True):
            _put(array, index, values, 0.0)
        simulator.loadings[index] = snapshot.loading
    for mapping, workload in zip(
        (simulator.loaded, simulator.once, simulator.repeated), snapshot.given, strict=True
    ):
        if workload is not None:
            mapping[index] = workload
        else:
            mapping.pop(index, None)
    seeding = simulator.seeds, simulator.episodes, simulator.seeded
    for array, value in zip(seeding, snapshot.seeding, strict=True):
        array[index] = value
    if seed is not None:
        resample(simulator, index, seed)


def _put(array: Any, index: int, values: Any, fill: float) -> None:
    """Write values into row ``index`` of an array, whose rows may be longer: the rest is filled."""
    if array.shape[1:] != values.shape:
        array[index] = fill
        array[(index, *(slice(length) for length in values.shape))] = values
    else:
        array[index] = values


def _jobs_arrive(simulator: Simulator) -> bool:
    """Return False where there is one job, which has arrived."""
    return any(field.name == "arrival" for field in simulator.problem.schema.jobs)


def resample(simulator: Simulator, index: int, seed: int | None) -> None:
    """Draw the jobs that have not arrived yet in environment ``index`` anew, from its generator.

    Jobs that have arrived stay as they are, also in what the agent does not see of them: how long they take,
    and what is drawn for them later.

    Args:
        simulator: the simulator.
        index: an environment whose episode has begun.
        seed: the jobs come from episode 0 of this seed; None: no more jobs arrive.
    """
    module = simulator.problem.module("workload")
    if not _jobs_arrive(simulator):
        return
    time, arrived = simulator.now(index)
    drawn = None if seed is None else module.generate(seed, 0, simulator.source)
    workload = simulator.workload(index)
    instants = [name for name in ("deadline",) if name in workload.jobs]
    joined = join_future(module.SCHEMA, workload, drawn, time, arrived, instants)
    known = {"job": arrived, "task": arrived}
    if joined.tasks:
        known["task"] = int((joined.tasks["job"] < arrived).sum())
    one = np.arange(simulator.num_envs) == index
    present = save(simulator, index)
    simulator.begin_again(one)
    before = [array[index].copy() for array, _ in simulator.changing]
    simulator.load(index, joined)
    simulator.begin_again(one)
    for (array, declared), now, then in zip(simulator.changing, present.state, before, strict=True):
        first = str(declared.dimensions[0]) if declared.dimensions else ""
        if declared.dtype.names:
            _carry_numbers(array[index], now, then)
        elif first in known:  # of each job or task, or a list of those that have arrived
            array[index, : known[first]] = now[: known[first]]
        else:
            _put(array, index, now, declared.fill)


def _carry_numbers(begun: Any, now: Any, then: Any) -> None:
    """Write the present numbers into a record of another workload, whose episode has just begun.

    Args:
        begun: the record at the beginning of the other workload's episode.
        now: at present.
        then: at the beginning of the present episode. What differs between the two beginnings follows from
            the workload, and is what is left of it where it has changed since.
    """
    for name in begun.dtype.names:
        if np.array_equal(begun[name], then[name]):
            begun[name] = now[name]
        elif not np.array_equal(now[name], then[name]):
            begun[name] += now[name] - then[name]


class Model:
    """What a policy that plans knows of an environment: copies of it at present, with no or another future.

    Jobs that have arrived are in the copies as they are in the environment, those that have not are not.

    Args:
        simulator: of one environment whose episode has just begun. It shows all jobs that have arrived, and
            hides nothing of them.
        clairvoyant: True leaves the jobs in the copies that have not arrived yet, which no policy may know.
    """

    def __init__(self, simulator: Simulator, clairvoyant: bool = False) -> None:
        self._simulator, self._clairvoyant = simulator, clairvoyant
        self._exact: Simulator | None = None
        self._copies: dict[str, Simulator] = {}

    @property
    def arrived(self) -> int:
        """The number of jobs that have arrived."""
        return self._simulator.now(0)[1] if _jobs_arrive(self._simulator) else 1

    @property
    def numbers(self) -> Integers | None:
        """The jobs of the rows that a scorer scores first; None: row i is job i."""
        path = tokens_of(self._simulator.problem.name).numbers
        return operator.attrgetter(path)(self._simulator.arrays)[0] if path else None

    @property
    def observation(self) -> dict[str, npt.NDArray[Any]]:
        """The observation in exact units, live buffers; see :meth:`show_exact`."""
        assert self._exact is not None
        return {name: array[0] for name, array in self._exact.observation.items()}

    def show_exact(self) -> None:
        """Show exact units, too: from the beginning of the episode on; :meth:`follow` is told its actions."""
        own = self._simulator
        parameters = dataclasses.replace(cast(Any, own.parameters), observation="dict")
        self._exact = exact = _make_alike(own, parameters, 1)
        exact.load(0, own.workload(0))
        exact.begin_again(np.ones(1, dtype=bool))

    def follow(self, action: Any) -> None:
        """Take the action that the environment is about to take, where exact units are shown.

        Raises:
            InvalidAction: for an action that the environment refuses, too.
        """
        if self._exact is not None:
            self._exact.write(action)
            if self._exact.step(np.full(1, ACT, dtype=np.int8)) < 0:
                raise self._exact.refusal(0, "action")

    def copies(self, count: int, seed: int | None = None, exact: bool = False) -> Simulator:
        """The environment at present, ``count`` times in one simulator, which the next call uses again.

        Args:
            count: number of copies; all have the same future.
            seed: see :func:`resample`.
            exact: True for observations in exact units.
        """
        own = self._exact if exact else self._simulator
        assert own is not None
        kind = own.interface.observation
        if kind not in self._copies or self._copies[kind].num_envs != count:
            self._copies[kind] = _make_alike(own, own.parameters, count)
        copies = self._copies[kind]
        restore(copies, 0, save(own, 0))
        if not self._clairvoyant:
            resample(copies, 0, seed)
        for array in (*copies.jobs, *(array for array, _ in copies.changing)):
            array[1:] = array[:1]
        return copies


def _make_alike(simulator: Simulator, parameters: Parameters, count: int) -> Simulator:
    """A simulator of ``count`` environments of the same id."""
    make: Any = simulator.problem.module("simulator").make_simulator
    return cast(Simulator, make(parameters, count, simulator.id))
