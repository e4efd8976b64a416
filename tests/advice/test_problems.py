"""Advice for the problems that a log feeds by its columns: deadlines, sites, work that may be interrupted."""

from __future__ import annotations

import dataclasses
import functools
import json

import numpy as np
import pandas
import pytest

import schedgym
from schedgym import cli
from schedgym.advice import logs
from schedgym.advice.reading import read_log
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.evaluation.runner import evaluate
from schedgym.traces.feed import round_slot, select
from tests.advice.test_advice import QUICK, log
from tests.long import long, some
from tests.tables import entry, table

SERVERS = {"servers": 3, "cpus": 8, "memory": 32}
FLOWTIME, VALUE, GEO = (get_problem(name) for name in ("flowtime", "partial-value", "geo"))
MACHINES = pandas.DataFrame({"region": [*"aabbc"], "cores": [8] * 5, "ram_gib": [32] * 5})


def with_deadlines(count=300, gap=1.5, seed=0):
    """A busy log whose jobs have deadlines and values."""
    rng = np.random.default_rng(seed)
    frame = log(count, gap, seed)
    due = frame["submit_time"] + frame["run_time"] * rng.uniform(1.5, 4, count)
    return frame.assign(deadline=due.round(3), value=rng.choice([1.0, 9.0], count))


def with_sites(count=900, gap=0.9, seed=0):
    """A log of tasks of jobs, each with the sites that hold its data."""
    rng = np.random.default_rng(seed)
    frame = log(count, gap, seed).assign(cpus=1, memory_gb=2)
    regions = rng.choice(["a|b", "b|c", "c", "a;c"], count)
    return frame.assign(job_id=np.sort(rng.integers(0, count // 6, count)), region=regions)


def feed_of(problem, frame, **how):
    """The log as the problem takes it."""
    return problem.module("log").feed(read_log(frame, how).trace)


# which problem ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "how", "name"),
    [
        (log(40), SERVERS, "queue-delay"),
        (log(40).assign(preemptible="yes"), SERVERS, "flowtime"),
        (log(40).assign(preemptible=["yes", "no"] * 20), SERVERS, "queue-delay"),
        (log(40), {**SERVERS, "preemptible": True}, "flowtime"),
        (with_deadlines(40), SERVERS, "partial-value"),
        (with_deadlines(40), {**SERVERS, "problem": "queue-delay"}, "queue-delay"),
        (with_sites(40), {"machines": MACHINES}, "geo"),
        (with_sites(40), SERVERS, "queue-delay"),
    ],
    ids=["none", "column", "mixed", "option", "deadlines", "asked", "sites", "no sites of machines"],
)
def test_the_problem_follows_from_the_columns(frame, how, name):
    found = schedgym.advise(frame, **how, **QUICK)
    assert found.problem == name and found.content()["problem"] == name
    assert name not in found.others and "parallel-jct" in found.others
    assert f"The log feeds {name}; " in str(found)
    if "problem" in how:
        assert "partial-value is asked for by --problem partial-value" in str(found)


@pytest.mark.parametrize(("problem", "columns", "match"), table(__file__, "WHY_NOT"))
def test_a_log_that_does_not_feed_a_problem_is_told_why(problem, columns, match):
    frame = (with_sites if columns == "sites" else log)(40)
    if isinstance(columns, dict):
        frame = frame.assign(**{name: (own * 40)[:40] for name, own in columns.items()})
    with pytest.raises(InvalidParameter, match=match):
        schedgym.advise(
            frame.assign(submit_time=frame["submit_time"] + 2), problem=problem, **SERVERS, **QUICK
        )


@pytest.mark.parametrize(
    ("median", "span", "slot"),
    [(600, 1e4, 60), (50, 1e4, 5), (5, 1e4, 1), (0.3, 1, 0.02), (600, 1e6, 120), (1, 5e8, 86400)],
)
def test_slots_follow_from_durations_and_stay_few(median, span, slot):
    frame = log(2).assign(submit_time=[0.0, span], run_time=float(median))
    assert round_slot(read_log(frame, SERVERS).trace, 0.1, 1e4) == pytest.approx(slot)


def test_a_job_that_is_longer_than_the_log_takes_no_more_slots_than_that():
    frame = log(3).assign(submit_time=[0.0, 50.0, 1e3], run_time=[10.0, 10.0, 1e7])
    assert round_slot(read_log(frame, SERVERS).trace, 0.1, 1e4) == 1200  # 1e7 s in 1e4 slots: 1000 s at least


def test_deadlines_in_the_far_future_are_near_enough():
    """A log whose jobs need not end soon takes as many steps as any other, and says what it counts."""
    frame = with_deadlines(40)
    far = frame.assign(deadline=frame["deadline"].where(frame.index != 7, 1e9))
    feed = feed_of(VALUE, far, **SERVERS)
    assert feed.lines[-1] == "deadlines: 1 are 40000 slots or more after the submission, and count as that"
    workload = VALUE.module("log").workload_of(feed.trace, feed.slot)
    assert workload.jobs["deadline"].max() == 40_000 + workload.jobs["arrival"][7] - 1
    near = frame.assign(deadline=frame["deadline"].where(frame.index != 7, 1e4))
    found, other = (schedgym.advise(one, **SERVERS, **QUICK).comparison for one in (far, near))
    assert found.table()["mean"].tolist() == other.table()["mean"].tolist()


# the workloads ---------------------------------------------------------------------------------


def test_jobs_with_deadlines_in_slots():
    frame = pandas.DataFrame(entry(__file__, "test_jobs_with_deadlines_in_slots"))
    feed = feed_of(VALUE, frame, **SERVERS)
    assert feed.slot == 10 and [(one.reason, one.count) for one in feed.left_out] == [
        ("no deadline", 1),
        ("deadline not after the submission", 1),
    ]
    workload = VALUE.module("log").workload_of(feed.trace, feed.slot)
    jobs = workload.jobs
    assert jobs["arrival"].tolist() == [1, 3, 4]
    assert jobs["deadline"].tolist() == [20, 3, 90], "one slot at least"
    assert jobs["tasks"].tolist() == [10, 10, 11] and (jobs["parallelism"] == 1).all()
    assert (jobs["value"] * jobs["tasks"]).tolist() == pytest.approx([3, 1, 2])
    assert jobs["demand"].tolist() == [[2, 1], [1, 2], [4, 3]]
    assert workload.cluster["capacity"].tolist() == [24, 96]
    alone = VALUE.module("log").alone(workload)
    assert alone.tolist() == pytest.approx([3, 0.1, 2]), "the second job has one slot of ten"
    assert "makes 4.23% more work" in " ".join(feed.lines)


def test_gpus_are_a_resource_of_deadlines_and_none_of_the_other_problems():
    gpus = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], 60)
    four = {**SERVERS, "gpus": 4}
    feed = feed_of(VALUE, with_deadlines(60).assign(gpus=gpus), **four)
    workload = VALUE.module("log").workload_of(feed.trace, feed.slot)
    assert workload.cluster["capacity"].tolist() == [24, 96, 12]
    assert sorted(workload.jobs["demand"][:, 2]) == sorted(gpus)
    found = schedgym.advise(with_deadlines(60).assign(gpus=gpus), **four, **QUICK)
    assert "types of GPUs, fragmentation among the GPUs of a node, and limits of sharing one" in found.limits
    machines = MACHINES.assign(gpus=[4, 0, 4, 0, 4])
    for frame, how in ((log(60), {**four, "preemptible": True}), (with_sites(60), {"machines": machines})):
        found = schedgym.advise(frame.assign(gpus=gpus), **how, **QUICK)
        assert found.problem in ("flowtime", "geo") and "gpus = gpus [GPUs]" in found.read[1]
        assert "GPUs and other resources than cpus and memory" in found.limits


def test_jobs_that_may_be_interrupted_in_whole_cores_and_slots():
    frame = pandas.DataFrame(entry(__file__, "test_jobs_that_may_be_interrupted_in_whole_cores_and_slots"))
    machines = pandas.DataFrame({"cores": [4.5, 0.5], "memory_gib": [8.9, 8]})
    feed = feed_of(FLOWTIME, frame, machines=machines)
    assert feed.slot == 10 and "1 machines below one core or GiB" in feed.lines[-1]
    workload = FLOWTIME.module("log").workload_of(feed.trace, feed.slot)
    assert {name: values.tolist() for name, values in workload.jobs.items()} == {
        "arrival": [0, 0, 1],
        "processing": [10, 1, 6],
        "cpu": [1, 2, 4],
        "memory": [0, 1, 4],
    }
    assert workload.cluster["cpu"].tolist() == [4] and workload.cluster["memory"].tolist() == [8]
    more = (100 + 20 + 240) / (50 + 20 + 163.2) - 1
    assert f"makes {100 * more:.3g}% more work" in feed.lines[0]


def test_tasks_of_jobs_at_sites():
    frame = pandas.DataFrame(entry(__file__, "test_tasks_of_jobs_at_sites"))
    machines = pandas.DataFrame({"region": [*"abbc"], "cores": [5, 2, 3, 1], "memory": [1, 1, 1, 1]})
    feed = feed_of(GEO, frame, machines=machines)
    assert [(one.reason, one.count) for one in feed.left_out] == [
        ("no site", 1),
        ("no machine at its sites that holds the largest task", 2),
    ]
    assert "the first is at c" in feed.left_out[1].detail
    assert "slots: one holds the largest task, cpus 2 [cores, GiB]; sites: a 2, b 2" in feed.lines[0]
    workload = GEO.module("log").workload_of(feed.trace)
    assert workload.jobs["arrival"].tolist() == [0, 1]
    assert workload.tasks["job"].tolist() == [0, 0, 1]
    assert workload.tasks["duration"].tolist() == [9, 7, 8]
    assert workload.tasks["sites"].tolist() == [[1, -1], [0, 1], [0, 1]]
    assert workload.cluster["slots"].tolist() == [2, 2]
    with pytest.raises(
        InvalidParameter, match=r"16% of the work is of jobs with tasks that no machine .* at a, b"
    ):
        feed_of(GEO, frame.assign(duration_s=[9, 8, 7, 6, 5, 0.1]), machines=machines)
    frame.loc[3, "job_id"] = "y"  # which is left out as a whole
    with pytest.raises(InvalidParameter, match="50.5% of the work"):
        feed_of(GEO, frame, machines=machines)


def test_a_row_may_stand_for_several_tasks_of_a_job():
    frame = log(30).assign(task_count=3, region="a", cpus=1, memory_gb=1)
    feed = feed_of(GEO, frame, machines=MACHINES)
    assert len(feed.trace.arrival) == 90
    assert np.bincount(GEO.module("log").workload_of(feed.trace).tasks["job"]).tolist() == [3] * 30


# parts of a long log ---------------------------------------------------------------------------


def test_parts_have_all_tasks_of_their_jobs():
    trace = feed_of(GEO, with_sites(3000), machines=MACHINES).trace
    parts = logs.cut(trace, 0, 900, 300)
    assert len(parts) == 3 and any(part.carried for part in parts)
    for part in parts:
        own = np.unique(part.trace.job[part.carried :])
        assert np.isin(trace.job, own).sum() == len(part.trace.arrival) - part.carried
        assert not np.isin(own, part.trace.job[: part.carried]).any() and part.jobs == len(own)
    found = logs.run(GEO, parts, {"fcfs": "fcfs"}, progress=False)
    assert len(found.outcomes["fcfs"]) == sum(part.jobs for part in parts)
    assert found.bound is not None and found.alone <= found.bound <= found.outcomes["fcfs"].mean()


def test_what_runs_already_is_worth_the_share_that_is_left():
    trace = feed_of(VALUE, with_deadlines(1000), **SERVERS).trace
    (part,) = logs.cut(trace, 1, 200, 200)
    before = np.flatnonzero(trace.arrival < trace.arrival[part.first])
    assert part.carried > 0
    index = [int(i) for i in before if trace.arrival[i] + trace.duration[i] > trace.arrival[part.first]]
    left = part.trace.duration[: part.carried] / trace.duration[index]
    assert part.trace.value[: part.carried] == pytest.approx(trace.value[index] * left)


def test_deadlines_move_with_their_jobs_at_a_higher_load():
    feed = feed_of(VALUE, with_deadlines(), **SERVERS)
    (part,) = logs.cut(feed.trace)
    twice = logs._own(part, 2.0)
    slack = feed.trace.deadline - feed.trace.arrival
    assert twice.deadline - twice.arrival == pytest.approx(slack)
    assert twice.arrival[-1] - twice.arrival[0] == pytest.approx(
        (feed.trace.arrival[-1] - feed.trace.arrival[0]) / 2
    )


# what is said ----------------------------------------------------------------------------------


#: problem -> a busy log that feeds it, how it is read, and the metric of its outcome
BUSY = {
    "queue-delay": (log(gap=4.0), SERVERS, "mean_delay"),
    "partial-value": (with_deadlines(), SERVERS, "value"),
    "flowtime": (log(gap=2.5), {**SERVERS, "preemptible": True}, "mean_flowtime"),
    "geo": (with_sites(2400, 0.8), {"machines": MACHINES}, "mean_response"),
}


@functools.cache
def advised(name):
    """The advice for a busy log, which several tests look at."""
    frame, how, _ = BUSY[name]
    return schedgym.advise(frame, **how, **QUICK)


#: the others take a minute each, to compile all policies of which their advice speaks
busy = pytest.mark.parametrize("name", some(BUSY, late=3))


@busy
def test_a_busy_log_gets_the_means_of_an_evaluation_and_a_verdict(name):
    found, problem = advised(name), get_problem(name)
    frame, how, metric = BUSY[name]
    module = problem.module("log")
    given = {name: value for name, value in how.items() if name != "preemptible"}
    feed = feed_of(problem, frame, **given)
    workload, scale = module.workload_of(feed.trace, feed.slot), 1.0
    if problem is FLOWTIME:
        scale = feed.slot
    elif problem is VALUE:
        scale = 1 / len(feed.trace.arrival)
    evaluated = evaluate(
        module.ID,
        list(module.POLICIES),
        parameters=module.parameters(feed.trace),
        workloads=[workload],
        progress=False,
    )
    table = found.comparison.table().set_index("policy")
    values = evaluated[evaluated["metric"] == metric].set_index("policy")["value"]
    means = {policy: one.mean() for policy, one in found.comparison.run.outcomes.items()}
    assert means == pytest.approx((values * scale).to_dict(), rel=1e-9)
    sign = 1 if module.OUTCOME.better == "min" else -1
    best, bound = table.index[0], table["bound"].iloc[0]
    assert (sign * table["mean"]).is_monotonic_increasing and (sign * (table["mean"] - bound) > -1e-9).all()
    assert sign * bound >= sign * found.comparison.run.alone - 1e-9
    text = str(found)
    word = "less" if sign > 0 else "more"
    assert f"no policy has {word}" in text and f"mean {module.OUTCOME.name}" in text
    assert best != module.REFERENCE and f"{best} serves this cluster best: " in found.verdict
    relative = abs(table.loc[best, "relative"])
    assert f"{100 * relative:.3g}% {word} than under {module.REFERENCE}" in found.verdict
    assert found.replay is None and json.dumps(found.content())
    if name == "queue-delay":
        for metric, column in (("max_delay", "longest"), ("bound", "bound")):
            values = evaluated[evaluated["metric"] == metric].set_index("policy")["value"]
            assert table[column].to_dict() == pytest.approx(values.to_dict(), rel=1e-9, abs=1e-9)
        worse = found.comparison.against(best, table.index[1])[2] >= 0
        assert ("cannot be told from" in found.verdict) == worse and "20 windows" in found.verdict
        assert found.ramp == () and found.verdict in text
        assert f"offered load: cpus {100 * logs.loads(feed.trace)['cpus']:.3g}%" in " ".join(found.read)


@long
def test_an_idle_log_is_run_at_higher_loads_whatever_the_problem():
    found = schedgym.advise(with_deadlines(gap=30), **SERVERS, **QUICK)
    assert found.verdict.startswith("Next to nothing is lost at the log's own load")
    assert found.ramp[-1].differ and "Mean value gained at multiples of the log's load" in str(found)
    found = schedgym.advise(log(gap=30), preemptible=True, **SERVERS, **QUICK)
    assert found.verdict.startswith("Next to nothing waits at the log's own load") and found.ramp[-1].differ
    first = found.comparison.table().iloc[0]
    assert first["mean"] == pytest.approx(found.comparison.run.alone, rel=0.01)


@long
def test_every_agent_takes_part():
    for frame, how in (
        (log(60, gap=2.0), {"servers": 2, "cpus": 8, "memory": 32}),
        (log(60, gap=2.0), {"servers": 2, "cpus": 8, "memory": 32, "preemptible": True}),
        (with_deadlines(60), SERVERS),
        (with_sites(60), {"machines": MACHINES}),
    ):
        found = schedgym.advise(frame, **how, n_jobs=1, progress=False)
        assert "agent" in set(found.comparison.table()["policy"])
        assert any(note.startswith("The agent sees the first ") for note in found.notes)


def test_a_slight_gain_is_none():
    from tests.advice.test_advice import compared, sentences

    rng = np.random.default_rng(0)
    base = rng.normal(100, 10, 20)
    text = sentences.say_best(compared({"fcfs": base, "other": base * 0.995}))
    assert text.startswith("No policy serves this cluster better than fcfs by more than 1%: a job waits 98")


# the command line ------------------------------------------------------------------------------


@long
def test_the_command_line_for_a_value(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_deadlines().to_csv("log.csv", index=False)
    machines = ["--servers", "3", "--cpus", "8", "--memory", "32", "--no-agent", "--n-jobs", "1"]
    assert cli.main(["advise", "log.csv", *machines, "--json", "o.json", "--report", "page.html"]) == 0
    out = capsys.readouterr().out
    assert "mean value gained" in out and "values are means" in out.lower()
    content = json.loads((tmp_path / "o.json").read_text())
    assert (content["problem"], content["better"]) == ("partial-value", "max")
    assert {"p5", "least"} <= set(content["loads"][0]["policies"][0])
    assert "mean value gained, at its own load" in (tmp_path / "page.html").read_text()
    assert cli.main(["advise", "log.csv", *machines, "--preemptible", "--problem", "flowtime"]) == 0
    assert "mean flowtime" in capsys.readouterr().out


def test_a_column_of_a_common_name_that_holds_something_else_is_not_taken():
    frame = log(40).assign(preemptible="perhaps", value=0.0, deadline=9e9)
    read = read_log(frame, SERVERS).trace
    assert not len(read.preemptible) and not len(read.value)
    with pytest.raises(TraceFormatError, match="preemptible: must be yes or no, got 'perhaps'"):
        read_log(frame, {**SERVERS, "columns": "preemptible=preemptible"})


def test_a_selection_keeps_what_a_log_tells():
    trace = read_log(with_deadlines(40).assign(preemptible="no"), SERVERS).trace
    few = select(trace, slice(0, 5))
    assert len(few.value) == len(few.deadline) == len(few.preemptible) == 5


# found by reading ------------------------------------------------------------------------------


def test_a_log_in_which_nothing_waits_is_idle_whatever_its_windows():
    """Windows of 307 jobs are not equal: their means weigh as many jobs as they have."""
    frame = log(307, gap=3000.0).assign(cpus=1, memory_gb=1, preemptible="yes")
    frame["run_time"] = np.random.default_rng(3).lognormal(3.0, 2.0, 307).round() + 1
    found = schedgym.advise(frame, **SERVERS, **QUICK)
    run = found.comparison.run
    for policy in run.outcomes:
        assert run.means(policy).mean() == pytest.approx(run.outcomes[policy].mean(), rel=1e-12)
        assert run.means(policy).mean() == pytest.approx(run.alone, rel=1e-12)
    assert found.ramp and found.verdict.startswith("Next to nothing waits")


def test_a_pool_of_machines_takes_what_no_machine_does():
    frame = with_deadlines(40).assign(cpus=[20] + [1] * 39)
    pooled = schedgym.advise(frame, **SERVERS, **QUICK)
    assert len(pooled.comparison.run.outcomes["edf"]) == 40
    waits = schedgym.advise(frame, **SERVERS, **QUICK, problem="queue-delay")
    assert len(waits.comparison.run.outcomes["fcfs"]) == 40


def test_machines_too_small_for_whole_cores_are_refused():
    frame = log(40).assign(cpus=0.25, memory_gb=0.1)
    with pytest.raises(InvalidParameter, match="flowtime counts whole cores and GiB, and none has one"):
        schedgym.advise(frame, servers=4, cpus=0.5, memory=32, preemptible=True, **QUICK)
    with pytest.raises(InvalidParameter, match="flowtime counts whole cores and GiB, and none has one"):
        schedgym.advise(frame, servers=4, cpus=8, memory=0.5, preemptible=True, **QUICK)


def test_a_part_without_memory_is_of_the_log_s_kind(monkeypatch):
    frame = log(200).assign(memory_gb=[0] * 100 + [2] * 100)
    trace = read_log(frame, SERVERS).trace
    trace = dataclasses.replace(trace, preemptible=np.ones(200))
    feed = FLOWTIME.module("log").feed(trace)
    parts = logs.cut(feed.trace, 0, 150, 50)
    assert any(not part.trace.memory.any() for part in parts)
    ran = logs.run(FLOWTIME, parts, {"fifo": "fifo"}, progress=False, slot=feed.slot)
    assert np.isfinite(ran.outcomes["fifo"]).all()


@busy
def test_the_stretch_of_a_problem_is_of_its_worst_window(name):
    found = advised(name)
    run, (begin, end) = found.comparison.run, found.stretch.span
    outcome = found.comparison.outcome
    worst = run.windows[int(np.argmax(outcome.sign * run.means(found.comparison.reference)))]
    assert found.stretch.text.startswith(f"jobs {worst.start} to {worst.stop - 1}, ")
    for record in found.stretch.records.values():
        ends = {}
        for job, start, last in zip(record.job, record.start, record.end, strict=True):
            if worst.start <= job < worst.stop:
                assert start >= begin
                ends[job] = max(ends.get(job, 0.0), last)
        assert np.mean(np.array([*ends.values()]) <= end) >= 0.7


def test_counts_of_tasks_that_logs_of_hpc_have_are_not_taken_unasked():
    plain = log(40)
    frame = plain.assign(ntasks=8, job_name="train")
    for problem in ({}, {"problem": "queue-delay"}):
        found = schedgym.advise(frame, **SERVERS, **QUICK, **problem)
        assert len(found.comparison.run.outcomes["fcfs"]) == 40
    asked = read_log(frame, {**SERVERS, "columns": {"tasks": "ntasks"}}).trace
    assert len(asked.arrival) == 320
