"""Engines: every unit comes back once, with its result or its error, whatever happens to its worker."""

import faulthandler
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from gymnasium.error import DependencyNotInstalled

from schedgym.errors import InvalidParameter, RunAborted, UnknownName
from schedgym.evaluation import engines
from schedgym.evaluation.engines import Failure, make_engine
from tests.long import long, weekly


def work(unit):
    """Square a number; -1 raises, -2 exits, -3 kills its process, ("once", path) does that the first time,
    -4 raises an interrupt, -5 returns what cannot be sent."""
    if unit == -1:
        raise ZeroDivisionError("minus one")
    if unit == -2:
        raise SystemExit(3)
    if unit == -3:
        os.kill(os.getpid(), signal.SIGKILL)
    if unit == -4:
        raise KeyboardInterrupt
    if unit == -5:
        return threading.Lock()
    if isinstance(unit, tuple):
        if not Path(unit[1]).exists():
            Path(unit[1]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "at last"
    return unit * unit


def check_results(engine, tmp_path):
    again = ("once", str(tmp_path / "tried"))
    units = [*range(8), -3, -1, again, -2, -4, -5, *range(8, 12)]
    results = list(engine.run(work, units))
    assert len(results) == len(units) and {unit for unit, _ in results} == set(units)
    found = dict(results)
    assert all(found[n] == n * n for n in range(12))
    assert isinstance(found[-1], Failure) and found[-1].error.startswith("Traceback")
    assert "ZeroDivisionError: minus one" in found[-1].error
    assert isinstance(found[-2], Failure) and "SystemExit: 3" in found[-2].error
    with pytest.raises(RunAborted, match="worker died, also when tried again"):
        found[-3].reraise()
    assert isinstance(found[-4], Failure) and "KeyboardInterrupt" in found[-4].error
    assert isinstance(found[-5], Failure) and "cannot pickle" in found[-5].error
    assert found[again] == "at last"


def test_two_processes_and_one_that_dies(tmp_path):
    check_results(make_engine("local", 2), tmp_path)


@long
def test_a_worker_that_waited_too_long_is_replaced(monkeypatch):
    """A worker that ended by itself, and one that was killed while it had nothing to do."""
    monkeypatch.setattr(engines, "IDLE", 0.2)
    pool = engines._Processes(2)
    worker = pool.submit(sleep, 0.0)
    pool.wait([worker])
    time.sleep(2.0)
    again = pool.submit(sleep, 0.0)
    assert pool.result(again) != pool.result(worker)
    os.kill(pool.result(pool.submit(sleep, 0.0)), signal.SIGKILL)
    time.sleep(1.0)
    assert pool.result(pool.submit(sleep, 0.0)) > 0
    pool.close()


@long
@weekly
@pytest.mark.parametrize("n_jobs", [2, 1])
def test_a_unit_that_takes_too_long_costs_only_itself(n_jobs):
    """Also with one process, and where the interpreter never gets to run: the worker is replaced."""
    check_limit(make_engine("local", n_jobs, 8.0))


def check_limit(engine):
    late = ["sleep", "compiled", "stopped", "without timers"]
    results = dict(engine.run(stuck, [1, *late[:2], 2, *late[2:], 3]))
    assert {unit: results.pop(unit) for unit in (1, 2, 3)} == {1: 1, 2: 2, 3: 3}
    assert results == dict.fromkeys(late, Failure("TimeoutError: took longer than 8 s"))


def stuck(unit):
    if unit == "without timers":
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
    if unit == "compiled":
        sum(range(10**12))  # holds the interpreter's lock
    if unit == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if isinstance(unit, str):
        time.sleep(600)
    return unit


@long
def test_a_worker_that_is_stopped_before_it_takes_its_unit(monkeypatch):
    monkeypatch.setattr(engines, "START", 1.0)
    pool = engines._Processes(1)
    first = pool.submit(sleep, 0.0)
    pool.wait([first])
    os.kill(worker := pool.result(first), signal.SIGSTOP)
    stopped = pool.submit(sleep, 0.0)
    while not pool.kill_late([stopped], 2.0):
        assert pool.wait([stopped], 0.1) == []
    assert pool.result(pool.submit(sleep, 0.0)) != worker
    pool.close()


@long
def test_the_start_of_a_worker_is_not_part_of_its_units_time():
    pool = engines._Processes(1)
    unit = pool.submit(sleep, 60.0)
    assert pool.kill_late([unit], 0.0) == []
    while not pool.kill_late([unit], 0.0):
        assert pool.wait([unit], 0.1) == []
    pool.close()


def test_an_interrupt_of_the_user_is_no_failure(interruptible):
    def interrupted(unit):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        list(make_engine("local", 1).run(interrupted, [1]))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (result,) = dict(make_engine("local", 1).run(work, [-4])).values()
    assert isinstance(result, Failure) and "KeyboardInterrupt" in result.error


def test_to_be_terminated_is_no_failure():
    def end(number, frame):
        raise SystemExit(143)

    def terminated(unit):
        signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SystemExit):
            list(make_engine("local", 1).run(terminated, [1]))
        assert signal.getsignal(signal.SIGTERM) is end
    finally:
        signal.signal(signal.SIGTERM, before)


def test_one_process_is_this_one():
    results = dict(make_engine("local", 1).run(lambda unit: (unit, os.getpid()), [1, 2]))
    assert results == {1: (1, os.getpid()), 2: (2, os.getpid())}
    assert "ZeroDivisionError" in dict(make_engine("local", 1).run(work, [-1]))[-1].error


def test_units_are_taken_when_there_is_room_for_them():
    taken = []
    units = (taken.append(n) or n for n in range(100))
    results = make_engine("local", 2).run(work, units)
    next(results)
    assert len(taken) <= 4
    results.close()
    assert len(taken) <= 4


def sleep(seconds):
    time.sleep(seconds)
    return os.getpid()


def test_to_close_the_iterator_ends_the_workers():
    results = make_engine("local", 2).run(sleep, [0.0, 60.0, 60.0])
    _, worker = next(results)
    began = time.monotonic()
    results.close()
    assert time.monotonic() - began < 20
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_what_is_refused(monkeypatch):
    with pytest.raises(UnknownName, match="did you mean 'local'"):
        make_engine("locale")
    for n_jobs in (0, -2, True, 1.5):
        with pytest.raises(InvalidParameter, match="n_jobs"):
            make_engine("local", n_jobs)
    for limit in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidParameter, match="unit_timeout: must be > 0"):
            make_engine("local", 1, limit)


def test_ray_says_what_to_install_where_it_is_missing(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyNotInstalled, match=r"schedgym\[ray\]"):
        make_engine("ray")


@pytest.fixture
def cluster():
    """A Ray cluster of two cores on this machine, started and stopped here."""
    ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()
    assert not ray.is_initialized()


@long
def test_a_ray_cluster(cluster, tmp_path):
    check_results(make_engine("ray"), tmp_path)
    assert cluster.is_initialized()  # not ours to stop
    with pytest.raises(InvalidParameter, match="n_jobs"):
        make_engine("ray", 0)
    check_results(make_engine("ray", 1), tmp_path / "..")


@long
@weekly
def test_a_unit_that_takes_too_long_on_a_ray_cluster(cluster):
    check_limit(make_engine("ray", limit=8.0))
    # the last of these wait for a core for longer than the limit
    results = list(make_engine("ray", 8, 10.0).run(sleep, [4.0] * 8))
    assert len(results) == 8 and all(isinstance(worker, int) for _, worker in results)


@long
@weekly
def test_a_sweep_on_a_ray_cluster(cluster, tmp_path):
    from schedgym.evaluation.store import ResultsStore
    from schedgym.evaluation.sweeps import run_sweep
    from tests.evaluation.test_faults import spec

    assert run_sweep(spec(2), tmp_path / "ray.db", engine="ray").done == 36
    assert run_sweep(spec(2), tmp_path / "local.db", n_jobs=1).done == 36
    keys = ["tasks", "policy", "seed", "episode", "metric"]
    frames = [ResultsStore(tmp_path / name).frame().sort_values(keys) for name in ("ray.db", "local.db")]
    assert frames[0].reset_index(drop=True).equals(frames[1].reset_index(drop=True))


class Unsendable(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def fail(unit):
    raise Unsendable(unit, 2) if unit == "unsendable" else InvalidParameter(unit)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_exception_of_a_unit_is_raised_where_it_is_asked_for(n_jobs):
    results = dict(make_engine("local", n_jobs).run(fail, ["bad", "unsendable"]))
    with pytest.raises(InvalidParameter, match="bad") as raised:
        results["bad"].reraise()
    assert n_jobs == 1 or "in fail" in raised.value.__notes__[0]  # the traceback of the other process
    with pytest.raises(Unsendable if n_jobs == 1 else RunAborted, match="unsendable"):
        results["unsendable"].reraise()


def test_workers_that_stay_serve_the_next_run():
    engine = make_engine("local", 2, stays=True)
    workers = [{worker for _, worker in engine.run(sleep, [0.5, 0.5])} for _ in range(2)]
    assert workers[0] == workers[1] and len(workers[0]) == 2
    results = engine.run(sleep, [0.0, 60.0])
    assert next(results)[1] in workers[0]
    results.close()
    assert workers[0].isdisjoint(worker for _, worker in engine.run(sleep, [0.0]))
