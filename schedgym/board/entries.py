"""The table of the board: entries, and the best known schedule of each instance.

The package knows of each instance what the paper's own algorithm reaches, the best value that is known, and a
bound (``best_known/SUITE.json``). For the test sets, the schedules of the best known values and the entries
are files of the repository's folder ``docs/board``: ``SUITE.npz`` and ``SUITE.json``, and a file for each
entry of others. No value is taken on trust: it is that of a schedule, which the judge has found valid.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.agents.agent_policy import AgentPolicy
from schedgym.agents.files import load_pretrained
from schedgym.board.judge import judge
from schedgym.board.suites import Instance, Suite, load_suite
from schedgym.core.files import atomic_write, read_archive
from schedgym.core.policy import make_policy
from schedgym.core.problem import get_problem
from schedgym.core.record import KINDS, ScheduleRecord
from schedgym.documents import build, placed
from schedgym.errors import InvalidFile, InvalidParameter, InvalidSchedule
from schedgym.evaluation.best_known import BEST_KNOWN, BestKnown, Budget
from schedgym.evaluation.episodes import checked_gap, lower_bound, make_env, play, slack_of
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.plan import acting_parameters, default_policies

TEST = "test"  # the set of which entries are, and whose best known schedules are kept
FOLDER = Path(__file__).parents[2] / "docs" / "board"
VALUES = Path(__file__).with_name("best_known")
LARGEST = 2**28  # bytes of the schedules of a set
SLOW = ("ontapra-tapra",)  # policies that take minutes for a set: left to whoever submits their schedules
LEAST = 1e-9  # share by which a schedule must be better than the best known one: more than rounding
COLUMNS = ("job", "server", "start", "end")


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known of an instance, in the unit of its objective.

    Attributes:
        reference: what the paper's own algorithm reaches.
        bound: on the optimum; None: none is known.
        best_known: the best value of a schedule that is known.
        by: name of the entry that found it.
        digest: SHA-256 of this schedule (:meth:`schedgym.core.record.ScheduleRecord.digest`).
    """

    reference: float
    bound: float | None
    best_known: float
    by: str
    digest: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row of the table: somebody's schedules of a test set, as the judge has found them.

    Attributes:
        suite: name of the suite.
        name: of the program or policy.
        by: who enters it.
        date: of the entry (UTC, ISO 8601).
        command: what made the schedules.
        digest: SHA-256 of the digests of all schedules.
        values: objective of each instance.
    """

    suite: str
    name: str
    by: str
    date: str
    command: str
    digest: str
    values: Sequence[float]


def read_entries() -> list[Entry]:
    """Return all entries of the repository, by suite and name."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        with placed(path.name):
            found += [build(Entry, row, "the entry") for row in json.loads(path.read_text(encoding="utf-8"))]
    return sorted(found, key=lambda entry: (entry.suite, entry.name))


# what is known --------------------------------------------------------------------------------


class _Standings:
    """What is known of instances of a set, and the schedules that show it, where they are kept.

    Args:
        suite: the suite.
        set: name of the set.
        instances: of the set.

    Attributes:
        better: the instances of which a better schedule than the best known one was taken.

    Raises:
        InvalidParameter: outside a checkout, for the set of the entries.
    """

    def __init__(self, suite: Suite, set: str, instances: Sequence[Instance]) -> None:
        if set == TEST and not FOLDER.is_dir():
            raise InvalidParameter(f"{FOLDER}: the board is kept in a checkout of the repository")
        self.suite, self.set, self.instances = suite, set, {own.index: own for own in instances}
        self.known = dict(enumerate(_all_known(suite.name).get(set, [])))
        self.schedules: dict[int, ScheduleRecord] = {}
        self.better: list[int] = []
        if set == TEST and (path := FOLDER / f"{suite.name}.npz").exists():
            self.schedules = load_schedules(path, instances)

    def take(self, name: str, schedules: Mapping[int, ScheduleRecord]) -> list[float]:
        """Judge somebody's schedules, by the index of their instance, and keep those that are the best.

        The first ones of all are those of the paper's algorithm.

        Returns:
            their objectives, by that index.

        Raises:
            InvalidSchedule: for a schedule that breaks a rule.
            RuntimeError: if one beats the bound: one of them is wrong.
        """
        return [self._take(self.instances[index], name, own) for index, own in sorted(schedules.items())]

    def _take(self, instance: Instance, name: str, schedule: ScheduleRecord) -> float:
        try:
            value = judge(instance, schedule)
        except InvalidSchedule as error:
            raise InvalidSchedule(f"{instance.name}: {error}") from None
        metric, old, workload = instance.objective, self.known.get(instance.index), instance.workload()
        if old is None:
            parameters = instance.problem.build(instance.id, instance.parameters)
            bound = lower_bound(instance.problem, workload, parameters)
            old = Known(value, bound, value, name, schedule.digest())
        if old.bound is not None:
            checked_gap(metric, old.bound, value, slack_of(workload), f"{instance.name}, {name}")
        if metric.sign * (old.best_known - value) > LEAST * abs(old.best_known):
            old = dataclasses.replace(old, best_known=value, by=name, digest=schedule.digest())
            self.better.append(instance.index)
        if old.digest == schedule.digest():
            self.schedules[instance.index] = schedule
        self.known[instance.index] = old
        return value

    def enter(
        self, name: str, by: str, command: str, schedules: Mapping[int, ScheduleRecord]
    ) -> Entry | None:
        """:meth:`take` schedules; return their entry, None unless there is one of each instance."""
        values = self.take(name, schedules)
        if len(values) < len(self.instances):
            return None
        digests = "".join(schedules[index].digest() for index in sorted(schedules))
        digest, date = hashlib.sha256(digests.encode()).hexdigest(), make_manifest()["date"]
        return Entry(self.suite.name, name, by, date, command, digest, values)

    def search(self, budget: Budget) -> None:
        """Search for better schedules, from the shipped agent on, in each instance."""
        searching = BestKnown(load_pretrained(self.suite.id), budget)
        self.take(BEST_KNOWN, _play(self.instances.values(), BEST_KNOWN, searching))

    def save(self) -> None:
        """Write what is known of the set, and if it is the test set, the schedules."""
        if self.set == TEST:
            save_schedules(FOLDER / f"{self.suite.name}.npz", self.schedules)
        content = {**_all_known(self.suite.name), self.set: [self.known[i] for i in self.instances]}
        plain = {name: [dataclasses.asdict(own) for own in listed] for name, listed in content.items()}
        _write(VALUES / f"{self.suite.name}.json", plain)
        _all_known.cache_clear()


@functools.cache
def _all_known(suite: str) -> dict[str, list[Known]]:
    """Set -> what is known of its instances; nothing before the suite is filled."""
    path = VALUES / f"{suite}.json"
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {set: [Known(**row) for row in rows] for set, rows in content.items()}


def known(instance: Instance) -> Known:
    """Return what is known of an instance.

    Of one that is not kept, such as that of a secret set, it is what the default policies of the id reach,
    which play it now.
    """
    if rows := _all_known(instance.suite).get(instance.set):
        return rows[instance.index]
    standings = _Standings(load_suite(instance.suite), instance.set, [instance])
    for name, policy in _policies(standings.suite):
        standings.take(name, _play([instance], name, policy))
    return standings.known[instance.index]


def _write(path: Path, content: Any) -> None:
    with atomic_write(path) as stream:
        json.dump(content, stream, indent=1, allow_nan=False)
        stream.write("\n")


# schedules ------------------------------------------------------------------------------------


def save_schedules(path: str | Path, schedules: Mapping[int, ScheduleRecord]) -> None:
    """Write schedules of a set, by the index of their instance, as a compressed numpy archive."""
    order = sorted(schedules)
    kept = [_hook(schedules[index], "compact") for index in order]
    arrays = {name: np.concatenate([getattr(own, name).ravel() for own in kept]) for name in KINDS}
    arrays["index"] = np.array(order)
    arrays["shape"] = np.array([own.amount.shape for own in kept])
    arrays["final_time"] = np.array([own.final_time for own in kept])
    with atomic_write(path, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # without the time: equal schedules are equal files
            entry.compress_type = zipfile.ZIP_LZMA
            with archive.open(entry, "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load_schedules(path: str | Path, instances: Sequence[Instance]) -> dict[int, ScheduleRecord]:
    """Read schedules of a set, by the index of their instance. They are not judged.

    Args:
        path: a file of :func:`save_schedules`.
        instances: those of the set.

    Raises:
        InvalidFile: if it is no such file, or names an instance twice, or one that the set has not.
        InvalidSchedule: if a row names a task or server that does not exist.
        OSError: if it cannot be read.
    """
    arrays = read_archive(path, LARGEST)
    kinds = KINDS | {"index": "i", "shape": "i", "final_time": "if"}
    if set(arrays) != set(kinds):
        raise InvalidFile(f"{path}: must hold columns of schedules, index, shape and final_time")
    shape, index, final = arrays["shape"], arrays["index"].ravel().tolist(), arrays["final_time"]
    if not index:
        raise InvalidFile(f"{path}: holds no schedule")
    known_types = all(arrays[name].dtype.kind in kind for name, kind in kinds.items())
    if not known_types or shape.shape != (len(index), 2) or final.shape != (len(index),):
        raise InvalidFile(f"{path}: its arrays do not belong together")
    if len(index) > len({instance.index for instance in instances} & set(index)):
        raise InvalidFile(f"{path}: index: names an instance twice, or one that the set has not")
    sizes = dict.fromkeys(COLUMNS, shape[:, 0]) | {"amount": shape.prod(axis=1)}
    possible = (shape >= 0) & (shape <= LARGEST)  # of larger numbers the product may overflow
    if not possible.all() or any(arrays[name].shape != (size.sum(),) for name, size in sizes.items()):
        raise InvalidFile(f"{path}: its arrays do not belong together")
    columns = {name: np.split(arrays[name], np.cumsum(size)[:-1]) for name, size in sizes.items()}
    found = {}
    for x, i in enumerate(index):
        own: dict[str, Any] = {name: column[x] for name, column in columns.items()}
        own |= {"amount": own["amount"].reshape(shape[x]), "final_time": float(final[x])}
        record = ScheduleRecord(workload=instances[i].workload(), truncated=False, **own)
        found[i] = _hook(record, "restore")
    return found


def _hook(record: ScheduleRecord, name: str) -> ScheduleRecord:
    """The record as a problem stores it ("compact"), or back again ("restore"), where it does so at all."""
    own = getattr(get_problem(record.workload.problem).module("metrics"), name, None)
    return record if own is None else own(record)


# entries --------------------------------------------------------------------------------------


def _policies(suite: Suite) -> Iterator[tuple[str, Any]]:
    """The default policies of the suite's id by name: the paper's own first, the shipped agent last."""
    problem, settings = suite.problem, [size.parameters for size in suite.sizes.values()]
    names = default_policies(problem, suite.id, settings)
    for name in dict.fromkeys([suite.reference, *names]):
        if name not in SLOW:
            yield name, make_policy(name, problem.name)
    yield "agent", AgentPolicy(load_pretrained(suite.id))


def _play(instances: Iterable[Instance], name: str, policy: Any) -> dict[int, ScheduleRecord]:
    """Let a policy play instances; return its schedules by the index of their instance.

    Those that leave work undone when the episode is cut off are left out.
    """
    environments: dict[str, Any] = {}
    schedules = {}
    for instance in instances:
        env = environments.get(instance.size)
        if env is None:
            parameters = acting_parameters(instance.problem, instance.id, instance.parameters, policy)
            env = environments[instance.size] = make_env(instance.id, parameters)
        played = play(env, policy, seed=instance.seed, label=name, check=False)  # the judge does
        if not played.truncated:
            schedules[instance.index] = env.record()
    return schedules


def enter(
    suite: Suite, schedules: Mapping[int, ScheduleRecord], name: str, by: str, command: str
) -> tuple[Entry | None, int]:
    """Judge somebody's schedules of a test set, enter them, and keep those better than the best known.

    Returns:
        the entry, which is written to the folder of the board; None unless there is a schedule of each
        instance; and the number of schedules that are better than the best known ones.

    Raises:
        InvalidSchedule: for the first schedule that breaks a rule.
        InvalidParameter: outside a checkout, or for a name that is taken, or that is none of a file.
    """
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise InvalidParameter(f"name: must be of letters, digits, dots, plus and minus signs, got {name!r}")
    taken = [entry.name for entry in read_entries() if entry.suite == suite.name] + [BEST_KNOWN]
    if name.lower() in map(str.lower, taken):  # some systems' files have names without upper case
        raise InvalidParameter(f"name: {suite.name} has an entry {name!r} already")
    standings = _Standings(suite, TEST, suite.instances(TEST))
    entry = standings.enter(name, by, command, schedules)
    if standings.better:
        standings.save()
    if entry is not None:
        _write(FOLDER / f"{suite.name}-{name}.json", [dataclasses.asdict(entry)])
    return entry, len(standings.better)


def fill(suite: Suite, budget: Budget) -> list[Entry]:
    """Let the default policies of the id and the shipped agent play the sets, and search on the test set.

    Better schedules than the best known ones are taken, others are kept; the entries of the policies and of
    the agent are written anew. A policy that leaves work undone in an instance has no entry.

    Args:
        suite: the suite.
        budget: of the search in each instance of the test set.
    """
    entries = []
    for set in sorted(suite.digests, key=lambda set: set != TEST):  # the test set first
        standings = _Standings(suite, set, suite.instances(set))
        for name, policy in _policies(suite):
            schedules = _play(standings.instances.values(), name, policy)
            entry = standings.enter(name, "schedgym", "schedgym board fill", schedules)
            if set == TEST and entry is not None:
                entries.append(entry)
        if set == TEST:
            standings.search(budget)
            _write(FOLDER / f"{suite.name}.json", [dataclasses.asdict(entry) for entry in entries])
        standings.save()
    return entries


def improve(suite: Suite, budget: Budget) -> int:
    """Search for better schedules of the test set; return how many there are.

    Args:
        suite: the suite.
        budget: of the search in each instance.
    """
    standings = _Standings(suite, TEST, suite.instances(TEST))
    standings.search(budget)
    if standings.better:
        standings.save()
    return len(standings.better)
