"""Best known schedules and entries: what is kept is what the judge finds, and only better ones are taken."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from schedgym.board import entries
from schedgym.board.entries import known, load_schedules, read_entries, save_schedules
from schedgym.board.judge import judge
from schedgym.board.suites import Instance, load_suite, suites
from schedgym.cli import main
from schedgym.core.policy import make_policy
from schedgym.core.record import ScheduleRecord
from schedgym.errors import InvalidFile, InvalidParameter, InvalidSchedule
from schedgym.evaluation.best_known import Budget
from schedgym.evaluation.episodes import make_env, play
from tests.long import long
from tests.tables import table

#: suites that are filled
KEPT = [name for name in suites() if (entries.FOLDER / f"{name}.npz").exists()]


def test_suites_are_filled() -> None:
    assert set(suites()) == set(KEPT)


def schedule_of(instance: Instance, policy: str) -> ScheduleRecord:
    env = make_env(instance.id, instance.parameters)
    play(env, make_policy(policy, instance.problem.name), seed=instance.seed)
    return env.record()


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=long)])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_known_of_the_kept_schedules_is_what_the_judge_finds(name: str, every: int) -> None:
    instances = load_suite(name).instances("test")
    schedules = load_schedules(entries.FOLDER / f"{name}.npz", instances)
    assert list(schedules) == list(range(50))
    for instance in instances[::every]:
        told, schedule = known(instance), schedules[instance.index]
        assert judge(instance, schedule) == pytest.approx(told.best_known, rel=1e-12)
        sign = instance.objective.sign
        assert sign * told.best_known <= sign * told.reference
        assert told.bound is None or sign * told.bound <= sign * told.best_known * (1 + sign * 1e-9)


@pytest.mark.parametrize("name", KEPT)
def test_entries_are_of_the_reference_the_agent_and_others(name: str) -> None:
    suite = load_suite(name)
    own = {entry.name: entry for entry in read_entries() if entry.suite == name}
    assert {suite.reference, "agent"} <= own.keys()
    told = [known(instance) for instance in suite.instances("test")]
    assert list(own[suite.reference].values) == pytest.approx([one.reference for one in told])
    sign = suite.instances("test")[0].objective.sign
    for entry in own.values():
        pairs = zip(entry.values, told, strict=True)
        assert all(sign * (one.best_known - value) <= 1e-9 * abs(value) for value, one in pairs), entry.name


@pytest.mark.parametrize("name", ["QueueDelay-1", "ParallelJCT-1"])
def test_schedules_come_back(name: str, tmp_path: Path) -> None:
    suite = load_suite(name)
    instances = suite.instances("test")
    written = {i: schedule_of(instances[i], suite.reference) for i in (1, 40)}
    save_schedules(tmp_path / "some.npz", written)
    found = load_schedules(tmp_path / "some.npz", instances)
    assert list(found) == [1, 40]
    for i, schedule in found.items():
        for column in entries.COLUMNS:
            assert np.array_equal(getattr(schedule, column), getattr(written[i], column))
        np.testing.assert_allclose(schedule.amount, written[i].amount, rtol=1e-9, atol=1e-9)
        assert judge(instances[i], schedule) == judge(instances[i], written[i])
    first = (tmp_path / "some.npz").read_bytes()
    save_schedules(tmp_path / "some.npz", found)
    assert (tmp_path / "some.npz").read_bytes() == first


@pytest.mark.parametrize(("name", "array"), [*table(__file__, "UNFIT"), ("final_time", [1j])])
def test_files_that_do_not_fit_are_refused(name: str, array: object, tmp_path: Path) -> None:
    instances, path = load_suite("QueueDelay-1").instances("test"), tmp_path / "some.npz"
    save_schedules(path, {0: schedule_of(instances[0], "bf-exec")})
    arrays = dict(np.load(path))
    arrays = arrays | {name: np.array(array)} if array is not None else {"index": arrays["index"]}
    np.savez(path, **arrays)
    with pytest.raises(InvalidFile, match="some.npz: (must hold|its arrays|index: names an instance)"):
        load_schedules(path, instances)


def test_of_two_schedules_of_an_instance_none_is_taken_silently(tmp_path: Path) -> None:
    instances, path = load_suite("QueueDelay-1").instances("test"), tmp_path / "some.npz"
    save_schedules(path, {0: schedule_of(instances[0], "bf-exec"), 1: schedule_of(instances[1], "bf-exec")})
    np.savez(path, **{**np.load(path), "index": np.zeros(2, dtype=int)})
    with pytest.raises(InvalidFile, match="some.npz: index: names an instance twice"):
        load_schedules(path, instances)


def test_a_file_without_schedules_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instances, path = load_suite("QueueDelay-1").instances("test"), tmp_path / "some.npz"
    save_schedules(path, {0: schedule_of(instances[0], "bf-exec")})
    np.savez(path, **{name: array[:0] for name, array in np.load(path).items()})
    told = ["--name", "a", "--by", "me", "--command", "c"]
    assert main(["board", "submit", "QueueDelay-1", str(path), *told]) == 2
    assert capsys.readouterr().err == f"error: {path}: holds no schedule\n"


@pytest.fixture(scope="module")
def by_edf() -> dict[int, ScheduleRecord]:
    instances = load_suite("PartialValue-1").instances("test")
    return {instance.index: schedule_of(instance, "edf") for instance in instances}


@pytest.fixture
def board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_edf: dict[int, ScheduleRecord]
) -> Iterator[Path]:
    """A board that knows what edf reaches."""
    suite = load_suite("PartialValue-1")
    bounds = iter([known(instance).bound for instance in suite.instances("test")])  # fifty take 3 s
    monkeypatch.setattr(entries, "lower_bound", lambda *_: next(bounds))
    for name in ("FOLDER", "VALUES"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(entries, name, tmp_path / name)
    entries._all_known.cache_clear()
    standings = entries._Standings(suite, "test", suite.instances("test"))
    standings.take("edf", by_edf)
    standings.save()
    yield tmp_path
    entries._all_known.cache_clear()


def test_better_schedules_are_taken_and_entered(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite, file = load_suite("PartialValue-1"), str(tmp_path / "mine.npz")
    instances = suite.instances("test")
    before = [known(instance) for instance in instances]
    assert all(one.reference == one.best_known and one.by == "edf" for one in before)
    mine = {instance.index: schedule_of(instance, "concave") for instance in instances}
    told = ["--by", "me", "--command", "schedgym run"]

    save_schedules(file, {3: mine[3]})  # of one instance: no entry
    assert main(["board", "submit", suite.name, file, "--name", "concave", *told]) == 0
    assert capsys.readouterr().out == "valid; 1 better than the best known\n"
    assert known(instances[3]).by == "concave" and known(instances[4]) == before[4]
    assert read_entries() == []

    save_schedules(file, mine)
    assert main(["board", "submit", suite.name, file, "--name", "concave", *told]) == 0
    after = [known(instance) for instance in instances]
    values = [judge(instance, mine[instance.index]) for instance in instances]
    assert [one.best_known for one in after] == pytest.approx(
        [max(value, one.reference) for value, one in zip(values, before, strict=True)]
    )
    (entry,) = read_entries()
    digests = "".join(mine[i].digest() for i in range(50))
    assert entry.digest == hashlib.sha256(digests.encode()).hexdigest()
    assert (entry.name, entry.by, entry.command, entry.values) == ("concave", "me", "schedgym run", values)

    more = dataclasses.replace(mine[3], amount=2.0 * mine[3].amount)
    with pytest.raises(InvalidSchedule, match="PartialValue-1/test/3: job .* gets more tasks than it"):
        entries.enter(suite, {3: more}, "mine", "me", "")
    for name in ("concave", "Concave", "best-known", "../mine", ""):  # best-known is the search
        with pytest.raises(InvalidParameter, match="name: "):
            entries.enter(suite, mine, name, "you", "")
    assert json.loads((board / "VALUES" / "PartialValue-1.json").read_text())["test"][3]["by"] == "concave"


@long
def test_the_board_is_kept_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "FOLDER", tmp_path / "nowhere")
    with pytest.raises(InvalidParameter, match="nowhere: the board is kept in a checkout"):
        entries.enter(load_suite("PartialValue-1"), {}, "mine", "me", "")


@long
def test_a_search_improves_what_is_known(board: Path) -> None:
    suite = load_suite("PartialValue-1")
    before = [known(instance).best_known for instance in suite.instances("test")]
    count = entries.improve(suite, Budget(evaluations=3))
    after = [known(instance).best_known for instance in suite.instances("test")]
    assert count == sum(new > old for new, old in zip(after, before, strict=True)) > 40
    schedules = load_schedules(board / "FOLDER" / "PartialValue-1.npz", suite.instances("test"))
    for instance in suite.instances("test")[::10]:
        assert judge(instance, schedules[instance.index]) == known(instance).best_known


def test_nothing_is_known_of_secret_instances_before_they_are_played() -> None:
    instance = load_suite("QueueDelay-1").instances("secret", "a phrase")[0]
    told = known(instance)
    assert told.reference == judge(instance, schedule_of(instance, "bf-exec"))
    assert told.best_known <= told.reference and told.bound is not None


def test_instances_are_written_as_workload_files(tmp_path: Path) -> None:
    from schedgym.core.workload_files import load_workload

    assert main(["board", "instances", "SingleJob-1", "-o", str(tmp_path / "own")]) == 0
    assert len(list((tmp_path / "own").iterdir())) == 50
    instance = load_suite("SingleJob-1").instances("test")[9]
    assert load_workload(tmp_path / "own" / "SingleJob-1-test-9.json") == instance.workload()
