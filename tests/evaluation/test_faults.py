"""Faults: killed sweeps, dying workers, full disks and bad files lose nothing and end in one clear error."""

import contextlib
import dataclasses
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedgym import cli
from schedgym.errors import InvalidStore, RunAborted
from schedgym.evaluation import runner
from schedgym.evaluation.episodes import run_unit
from schedgym.evaluation.store import SCHEMA, Line, ResultsStore, Setting, Unit
from schedgym.evaluation.sweeps import make_spec, run_sweep
from tests.long import long, weekly
from tests.tables import entry

KILLS = 20


def spec(episodes=40, chunk=1):
    return make_spec({**entry(__file__, "tiny"), "episodes": episodes, "chunk": chunk})


def content(path):
    """Every unit of a store, by its key: what it is and all its numbers."""
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT key, policy, parameters, seed, first, episodes, status, mean, bound, metrics, data "
        "FROM results JOIN lines USING (line) JOIN settings USING (setting) LEFT JOIN outcomes USING (unit)"
    ).fetchall()
    connection.close()
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


# killed --------------------------------------------------------------------------------------------


KILLING = """
import os, random, signal, sys, time
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import run_sweep
from tests.evaluation.test_faults import content, spec

path, kills = sys.argv[1], int(sys.argv[2])
run_sweep(spec(episodes=1), path + ".warm", n_jobs=1)  # everything is imported and compiled: forks are quick
draw, told, hits = random.Random(8), set(), 0
for number in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        real = ResultsStore.add
        def add(self, unit, *given, **more):
            real(self, unit, *given, **more)
            os.write(writer, (unit.key + chr(10)).encode())
            return []
        ResultsStore.add = add
        run_sweep(spec(), path, n_jobs=1)
        os._exit(0)
    os.close(writer)
    heard = b""
    if number % 4:  # at some unit, else wherever: reading the store, planning, the first one
        for _ in range(draw.randrange(1, 30)):
            heard += os.read(reader, 65)
    time.sleep(draw.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    hits += os.WIFSIGNALED(status)
    with os.fdopen(reader, "rb") as stream:
        heard += stream.read()
    told |= set(heard.decode().split())
    if told:
        assert not (lost := told - set(content(path))), (number, lost)
print(hits, len(told))
"""


def script(text, *arguments, **more):
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], **more)


@long
def test_killed_at_random_points_a_sweep_loses_nothing_and_duplicates_nothing(tmp_path):
    path = tmp_path / "killed.db"
    result = script(KILLING, path, KILLS, timeout=300)
    assert result.returncode == 0, result.stderr
    hits, told = map(int, result.stdout.split())
    assert hits == KILLS and told > KILLS
    before = content(path)
    assert told <= len(before) <= told + KILLS  # of each run one unit at most was stored and not told
    last = run_sweep(spec(), path, n_jobs=1)
    assert last.skipped == len(before) and last.done == 2 * 3 * 3 * 40 - len(before)
    assert last.failed == []
    run_sweep(spec(), tmp_path / "whole.db", n_jobs=1)
    assert content(path) == content(tmp_path / "whole.db")


PARALLEL = """
import sys
from schedgym.evaluation.sweeps import run_sweep
from tests.evaluation.test_faults import spec
run_sweep(spec(episodes=100), sys.argv[1], n_jobs=2)
"""


@long
@weekly
def test_killed_with_its_workers_at_work(tmp_path):
    path = tmp_path / "killed.db"
    sweep = subprocess.Popen([sys.executable, "-c", PARALLEL, str(path)], cwd=Path(__file__).parents[2])
    began = time.monotonic()
    while not path.exists() or not counted(path):
        assert time.monotonic() - began < 120 and sweep.poll() is None
        time.sleep(0.05)
    workers = children(sweep.pid)
    assert workers
    sweep.kill()
    sweep.wait()
    before = content(path)
    last = run_sweep(spec(), path, n_jobs=1)  # at once: the lock died with its owner
    assert last.skipped == sum(row[3] < 40 for row in before.values())
    run_sweep(spec(), tmp_path / "whole.db", n_jobs=1)
    whole, found = content(tmp_path / "whole.db"), content(path)
    assert all(found[key] == whole[key] for key in whole)
    while any(map(alive, workers)):
        assert time.monotonic() - began < 180, "workers outlive the sweep"
        time.sleep(0.2)


@long
def test_terminated_a_sweep_ends_its_workers(tmp_path):
    path, config = tmp_path / "terminated.db", tmp_path / "sweep.yaml"
    long_units = {"name": "long", "seeds": [0, 1], "episodes": 10**5, "chunk": 10**5}
    long_units["experiments"] = [{"id": "schedgym/QueueDelay-v0", "policies": ["bf-exec"]}]
    config.write_text(json.dumps(long_units))
    command = [sys.executable, "-m", "schedgym", "sweep", str(config), "-o", str(path), "--n-jobs", "2"]
    sweep = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL)
    began = time.monotonic()
    try:
        while len(children(sweep.pid)) < 3:  # one is loky's, which tracks resources
            assert time.monotonic() - began < 120 and sweep.poll() is None
            time.sleep(0.05)
        workers = children(sweep.pid)
        sweep.terminate()
        assert sweep.wait(timeout=60) == 143
    finally:
        sweep.kill()
    ended = time.monotonic()
    while any(map(alive, workers)):  # whose units would have taken minutes
        assert time.monotonic() - ended < 30, "workers outlive the sweep"
        time.sleep(0.2)


def counted(path):
    with contextlib.suppress(sqlite3.Error, InvalidStore), ResultsStore(path) as store:
        return store._connection.execute("SELECT count(*) FROM results").fetchone()[0]
    return 0


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def deadly(context, unit):
    """Run a unit, but die in the second seed of one policy, always, and once in the third."""
    if unit.line.policy == "fcfs" and unit.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    once = Path(os.environ["SCHEDGYM_TEST_ONCE"])
    if unit.line.policy == "fcfs" and unit.seed == 2 and not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    return run_unit(context, unit)


@long
def test_a_worker_that_dies_is_reported_and_the_sweep_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("SCHEDGYM_TEST_ONCE", str(tmp_path / "once"))
    monkeypatch.setattr(runner, "run_unit", deadly)
    result = run_sweep(spec(2, None), tmp_path / "r.db", n_jobs=2)
    assert [(row["policy"], row["seed"]) for row in result.failed] == [("fcfs", 1)] * 2
    assert all(row["error"].startswith("worker died") for row in result.failed)
    assert all("\n" not in row["error"] for row in result.failed)
    assert (tmp_path / "once").exists() and result.done == 2 * 3 * 3 - 2
    monkeypatch.undo()
    again = run_sweep(spec(2, None), tmp_path / "r.db", n_jobs=1, retry_failed=True)
    assert (again.done, again.failed) == (2, [])


def falling(context, unit):
    """Run a unit, but kill the Ray cluster, whose raylet is the parent of its workers, in the third seed."""
    if unit.seed == 2:
        raylet = os.getppid()
        if "raylet" in Path(f"/proc/{raylet}/comm").read_text():  # else who adopts another unit's orphan
            os.kill(raylet, signal.SIGKILL)
        time.sleep(600)  # no result comes any more: a worker ends with its raylet
    return run_unit(context, unit)


@long
@weekly
def test_the_death_of_a_ray_cluster_ends_its_sweep_and_fails_no_unit(tmp_path, monkeypatch, capsys):
    ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    config, path = tmp_path / "sweep.yaml", tmp_path / "r.db"
    config.write_text(json.dumps(dataclasses.asdict(spec(2, None))))
    sweep = ["sweep", str(config), "-o", str(path)]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        monkeypatch.setattr(runner, "run_unit", falling)
        assert cli.main([*sweep, "--engine", "ray"]) == 1
    finally:
        ray.shutdown()
    told = capsys.readouterr()
    assert "units" not in told.out and told.err.count("error: the Ray cluster died; run this again") == 1
    before = content(path)
    assert len(before) < 2 * 3 * 3 and {row[5] for row in before.values()} <= {"done"}
    monkeypatch.undo()
    assert cli.main([*sweep, "--n-jobs", "1"]) == 0
    assert {row[5] for row in content(path).values()} == {"done"} and len(content(path)) == 2 * 3 * 3


# stores that cannot be -----------------------------------------------------------------------------


SETTING = Setting("queue-delay", "schedgym/QueueDelay-v0", {}, "mean_delay", "min", "1")
LINE = Line(SETTING, "fcfs", {}, None, "digest")


def fill(store, count, start=0, episodes=50):
    for seed in range(start, start + count):
        store.add(Unit(LINE, seed, 0, episodes), ["mean_delay"], np.full((episodes, 1), float(seed)))


@contextlib.contextmanager
def refused(message):
    with pytest.raises(InvalidStore, match=message) as caught:
        yield
    assert "\n" not in str(caught.value) and ".db" in str(caught.value)


def test_a_disk_that_fills_up_under_a_sweep(tmp_path):
    path = tmp_path / "r.db"
    run_sweep(spec(1), tmp_path / "warm.db", n_jobs=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
    try:
        with refused("cannot be written"):
            run_sweep(spec(), path, n_jobs=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    before = content(path)
    last = run_sweep(spec(), path, n_jobs=1)
    assert 0 < last.skipped == len(before) and last.done == 2 * 3 * 3 * 40 - len(before)


@contextlib.contextmanager
def unprivileged():
    """As somebody whom permissions bind, where the tests run as root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def folder():
    """A folder that everybody can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)
        Path(name).chmod(0o777)


def test_a_read_only_store(folder):
    path = folder / "r.db"
    with ResultsStore(path, "w") as store:
        fill(store, 2)
    path.chmod(0o444)
    with unprivileged(), refused("cannot be written: attempt to write a readonly database"):
        ResultsStore(path, "w")
    folder.chmod(0o555)
    with unprivileged():
        with refused("cannot be written: Permission denied"):
            ResultsStore(path, "w")
        with refused("cannot be written: Permission denied"):
            ResultsStore(folder / "new.db", "w")
        with ResultsStore(path) as store:  # where nothing can be written there is yet reading
            frame = store.frame()  # of pandas, which another user could not import
    assert isinstance(frame, pd.DataFrame) and len(frame) == 100


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (SCHEMA + 1, f"written by a newer schedgym .schema {SCHEMA + 1}; this version knows {SCHEMA}"),
        (SCHEMA - 1, f"of schema {SCHEMA - 1}, which is not read: run its sweep again"),
    ],
)
def test_a_store_of_another_schema(tmp_path, schema, text):
    path = tmp_path / "r.db"
    with ResultsStore(path, "w") as store:
        fill(store, 1)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()
    for mode in "rw":
        with refused(text):
            ResultsStore(path, mode)
    with refused(text):
        run_sweep(spec(1), path, n_jobs=1)


def names(path):
    return [path, *(Path(f"{path}{ending}") for ending in ("-wal", "-shm", ".lock"))]


#: what is done to a store while it is written -> how many of its units are then kept (None: no store is left)
TAKEN = {
    "file removed": (lambda path: path.unlink(), None),
    "all files removed": (lambda path: [name.unlink() for name in names(path)], None),
    "folder removed": (lambda path: shutil.rmtree(path.parent), None),
    "moved away": (lambda path: path.rename(path.parent.parent / "moved.db"), None),
    "another moved over it": (lambda path: path.with_name("other.db").replace(path), 30),
    "another copied over it": (lambda path: shutil.copyfile(path.with_name("other.db"), path), 5),
    "emptied": (lambda path: os.truncate(path, 0), 5),
    "log removed": (lambda path: names(path)[1].unlink(), 5),
    "log moved away": (lambda path: names(path)[1].rename(path.with_name("log")), 5),
}


@pytest.mark.parametrize("taken", TAKEN)
def test_a_store_that_is_taken_away_while_it_is_written(tmp_path, taken):
    """Noticed at the next write, and at the end; no other store is harmed, and what is at hand is kept."""
    path = tmp_path / "folder" / "r.db"
    path.parent.mkdir()
    with ResultsStore(path.with_name("other.db"), "w") as other:
        fill(other, 30, 100)
    take, kept = TAKEN[taken]
    with pytest.raises(RunAborted, match=r"r\.db(-wal)?: was removed, replaced or changed") as caught:
        with ResultsStore(path, "w") as store:
            fill(store, 5)
            store.check_files()
            take(path)
            with pytest.raises(RunAborted):
                store.check_files()
            fill(store, 1, 5)
    assert "\n" not in str(caught.value)
    place = tmp_path / "moved.db" if taken == "moved away" else path
    assert place.exists() == (kept is not None or taken == "moved away")
    if place.exists():
        with ResultsStore(place) as store:
            assert store.verify() == (kept or 5, [])
    if path.parent.exists():
        with ResultsStore(path, "w") as store:
            fill(store, 1, 5)


def test_a_store_that_is_written_anew_while_its_last_writer_lives(tmp_path):
    path = tmp_path / "r.db"
    with ResultsStore(path, "w") as first:
        fill(first, 3)
        for name in names(path):
            name.unlink()
        with ResultsStore(path, "w") as second:
            fill(second, 4)
            with pytest.raises(RunAborted):
                fill(first, 1, 3)
            first.close()
            with refused("another process is writing to it"):
                ResultsStore(path, "w")
            fill(second, 4, 4)
    with ResultsStore(path) as store:
        assert store.verify() == (8, [])


def test_files_that_are_no_stores(tmp_path):
    text, other, empty = tmp_path / "text.db", tmp_path / "other.db", tmp_path / "empty.db"
    text.write_text("name,value\n" * 500)
    empty.touch()
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE units(key)")
    connection.close()
    for path, modes in ((text, "rw"), (other, "rw"), (empty, "r")):
        before = path.read_bytes()
        for mode in modes:
            with refused("not a results store"):
                ResultsStore(path, mode)
        assert path.read_bytes() == before
    for mode in "rw":
        (tmp_path / "folder.db").mkdir(exist_ok=True)
        with refused("is a folder"):
            ResultsStore(tmp_path / "folder.db", mode)
    with pytest.raises(FileNotFoundError, match="there is no results store"):
        ResultsStore(tmp_path / "missing.db")
    with refused("cannot be written: No such file or directory"):
        ResultsStore(tmp_path / "no" / "r.db", "w")
    with ResultsStore(empty, "w") as store:
        fill(store, 1)
    assert {p.name for p in tmp_path.iterdir()} == {"text.db", "other.db", "empty.db", "folder.db"}
