"""Advice on a cluster by its log: what is read, run and said; and whether a replay is credible."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

import schedgym
from schedgym import cli
from schedgym.advice import comparison, logs, page, replay, sentences, stretch, verdict
from schedgym.advice.stretch import find_stretch
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.evaluation import statistics
from schedgym.evaluation.canvas import svg_text
from schedgym.evaluation.statistics import Estimate
from schedgym.traces.base import Trace
from schedgym.traces.feed import select
from tests.commands import refused
from tests.long import long, some, weekly
from tests.tables import entry, table

PROBLEM = get_problem("queue-delay")
QUICK = {"agent": False, "n_jobs": 1, "progress": False}


def log(count=300, gap=4.0, seed=0):
    """A log of jobs with two resources, as a data frame."""
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "submit_time": np.cumsum(rng.exponential(gap, count)).round(3),
            "run_time": rng.lognormal(3.0, 1.0, count).round(3),
            "cpus": rng.integers(1, 5, count),
            "memory_gb": rng.integers(1, 9, count),
        }
    )


def trace(frame, servers=3, cores=8.0, memory=32.0, **more):
    """The same, as it is read."""
    return Trace(
        "made",
        arrival=frame["submit_time"],
        duration=frame["run_time"],
        cores=frame["cpus"],
        memory=frame["memory_gb"] * 1e9 / 2**30,
        machine_cores=np.full(servers, cores),
        machine_memory=np.full(servers, memory),
        **more,
    )


BUSY = log(gap=4.0)


def test_an_idle_log_is_said_to_be_idle_and_run_at_higher_loads():
    found = schedgym.advise(log(gap=25.0), servers=3, cpus=8, memory=32, **QUICK)
    assert found.verdict.startswith("Next to nothing waits at the log's own load")
    factors = [one.factor for one in found.ramp]
    assert factors == [1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0][: len(factors)]
    assert found.ramp[-1].differ and not any(one.differ for one in found.ramp[:-1])
    assert f"begin to differ at {factors[-1]:g} times that load, where: " in found.verdict
    roomy = schedgym.advise(log(20), servers=50, cpus=8, memory=32, **QUICK)
    assert [one.factor for one in roomy.ramp] == [1.5, 2.0, 4.0]
    assert "all its jobs at once would take" in roomy.verdict


def compared(waits, size=5):
    """Comparison of policies by the mean waits of their windows, the first of which is the reference."""
    outcomes = {name: np.repeat(np.asarray(means, dtype=float), size) for name, means in waits.items()}
    windows = tuple(slice(i, i + size) for i in range(0, len(next(iter(outcomes.values()))), size))
    run = logs.Run(outcomes, windows, None, dict.fromkeys(outcomes, 0.0))
    return comparison.LoadComparison(1.0, next(iter(waits)), run, dict.fromkeys(outcomes, ""))


@long
@weekly
def test_the_best_of_several_policies_is_tested_for_being_chosen():
    rng = np.random.default_rng(1)
    false = single = 0
    for _ in range(40):  # all policies are alike
        waits = {f"p{i}": rng.normal(100, 10, 20) for i in range(8)}
        found = compared(waits)
        best = found.table().iloc[0]["policy"]
        alone = statistics.bootstrap_interval(waits[best] - waits["p0"])[1] < 0
        text = sentences.say_best(found)
        assert (" *" in str(page._comparison(found, ""))) == found.differ
        single += alone
        false += "serves this cluster best: a job waits" in text
    assert single >= 6 and false <= 2
    better = compared({"fcfs": rng.normal(100, 10, 20), "other": rng.normal(50, 10, 20)})
    assert better.differ and sentences.say_best(better).startswith("other serves this cluster best")


def test_an_interval_beside_a_gain_never_includes_none(monkeypatch):
    rng = np.random.default_rng(1)
    base = rng.normal(100, 10, 20)
    found = compared({"fcfs": base, "other": base - 50 + rng.normal(0, 5, 20)})
    assert "50" in sentences.say_best(found) and "%, 20 windows" in sentences.say_best(found)
    own = found.means.against("other", "fcfs")
    spread = dataclasses.replace(own, relative=Estimate(own.relative.value, -0.7, 0.0))  # not the other
    monkeypatch.setattr(type(found.means), "against", lambda *_: spread)
    assert " s less, 20 windows of the log)" in sentences.say_best(
        found
    ) and ".. 70%" not in sentences.say_best(found)


def test_idle_goes_by_the_median_duration_and_not_by_the_agent():
    frame = log(101).assign(run_time=[10.0] * 100 + [1e6])
    found = compared({"fcfs": [0.5, 0.5], "agent": [0.5, 0.5]})
    assert not comparison.is_idle(trace(frame), found), "the mean duration is 1000 times the usual one"
    assert comparison.is_idle(trace(frame), compared({"fcfs": [0.0, 0.001], "agent": [50, 60]}))


def test_the_ramp_and_the_verdict_look_at_the_same_log(monkeypatch):
    monkeypatch.setattr(verdict, "cut", lambda trace, seed, *_: logs.cut(trace, seed, 100, 100))
    seen = []

    def note(whole, one, idle=comparison.is_idle):
        seen.append(len(whole.arrival))
        return idle(whole, one)

    monkeypatch.setattr(verdict, "is_idle", note)
    monkeypatch.setattr(sentences, "is_idle", note)
    schedgym.advise(log(gap=25.0), servers=3, cpus=8, memory=32, **QUICK)
    assert len(seen) > 2 and set(seen) == {300}
    few = schedgym.advise(log(4, gap=1e4), servers=3, cpus=8, memory=32, **QUICK)
    assert few.ramp == () and few.verdict.endswith("higher load cannot be told from so few jobs.")
    assert few.verdict.startswith("Next to nothing waits")


def test_the_seed_is_passed_on_and_checked(monkeypatch):
    seeds = []
    sweep = logs.compare
    monkeypatch.setattr(logs, "compare", lambda *a, **how: seeds.append(how["seed"]) or sweep(*a, **how))
    schedgym.advise(BUSY, servers=3, cpus=8, memory=32, seed=7, **QUICK)
    replay(trace(BUSY, start=trace(BUSY).arrival), seed=8)
    assert seeds == [7, 8]
    for seed in (-1, 1.5, True):
        with pytest.raises(InvalidParameter, match="seed: must be a whole number from 0"):
            schedgym.advise(BUSY, servers=3, cpus=8, memory=32, seed=seed, **QUICK)


def test_rows_that_are_left_out_are_said_with_their_first_line():
    frame = BUSY.assign(cpus=BUSY["cpus"].astype(float))
    frame.loc[[4, 9], "cpus"] = [50.0, 60.0]
    frame.loc[[4, 9], "run_time"] = [2.0, 1.5]
    frame.loc[20, "run_time"] = np.nan
    frame.loc[30, "run_time"] = 0.0
    read = schedgym.advise(frame, servers=3, cpus=8, memory=32, **QUICK).read
    text = "\n".join(read)
    assert "rows: 300, of which 296 are jobs" in text
    assert "1 row: run_time empty (first in line 21)" in text
    assert "1 row: execution <= 0 (first in line 31)" in text
    assert (
        "2 rows: fits no machine: the largest needs 60 cores, 0.9313 GiB (first in line 5); 190 core-s"
        in text
    )


# parts of a long log ---------------------------------------------------------------------------


def test_a_part_begins_with_the_jobs_that_run_then():
    whole = trace(log(1000))
    parts = logs.cut(whole, seed=1, most=200)
    (part,) = parts
    assert part.first % 200 == 0 and part.first > 0 and part.carried > 0
    begin = whole.arrival[part.first]
    running = (whole.arrival < begin) & (whole.arrival + whole.duration > begin)
    running[part.first :] = False
    assert part.carried == running.sum()
    assert (part.trace.arrival[: part.carried] == begin).all()
    rest = (whole.arrival + whole.duration)[running] - begin
    assert part.trace.duration[: part.carried] == pytest.approx(rest)
    own = slice(part.first, part.first + 200)
    assert (part.trace.arrival[part.carried :] == whole.arrival[own]).all()
    assert (part.trace.cores[part.carried :] == whole.cores[own]).all()


def test_outcomes_are_those_of_the_log_s_own_jobs(monkeypatch):
    whole = trace(log(1000))
    parts = logs.cut(whole, most=300, part=100)
    found = logs.run(PROBLEM, parts, {"fcfs": "fcfs"}, progress=False)
    assert [len(waits) for waits in found.outcomes.values()] == [300]
    assert sum(window.stop - window.start for window in found.windows) == 300
    assert {0, 100, 200} <= {window.start for window in found.windows}
    assert found.bound is not None and found.bound <= found.outcomes["fcfs"].mean()
    text = "\n".join(schedgym.advise(whole, **QUICK).read)
    assert "sampled" not in text
    monkeypatch.setattr(verdict, "cut", lambda trace, seed, *_: logs.cut(trace, seed, 300, 100))
    assert "sampled: 300 of the 1000 jobs, in 3 parts" in "\n".join(schedgym.advise(whole, **QUICK).read)


def test_a_load_scales_the_gaps_between_arrivals_only():
    whole = trace(BUSY)
    once, twice = (
        logs.run(PROBLEM, logs.cut(whole), {"bf-exec": "bf-exec"}, f, progress=False) for f in (1, 2)
    )
    frame = BUSY.assign(submit_time=BUSY["submit_time"] / 2)
    own = logs.run(PROBLEM, logs.cut(trace(frame)), {"bf-exec": "bf-exec"}, progress=False)
    assert twice.outcomes["bf-exec"] == pytest.approx(own.outcomes["bf-exec"], abs=1e-6)
    assert twice.means("bf-exec").mean() > once.means("bf-exec").mean()


# recorded starts -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fcfs", "easy-backfill"])
def test_a_replay_finds_the_waits_of_the_policy_that_made_them(policy):
    whole = trace(BUSY)
    waits = logs.run(PROBLEM, logs.cut(whole), {policy: policy}, progress=False).outcomes[policy]
    start = whole.arrival + waits
    start[7] = np.nan  # not recorded
    found = replay(trace(BUSY, start=start, origin="2024-03-04T08:00:00+00:00"))
    table = found.table().set_index("policy")
    assert found.nearest == policy and found.credible and table.loc[policy, "jobs"] == 299
    assert table.loc[policy, "p90 |error|"] == pytest.approx(0.0, abs=1e-6)
    other = ({"fcfs", "easy-backfill"} - {policy}).pop()
    assert table.loc[other, "p90 |error|"] > 1.0
    hours = found.by_hour()
    assert hours["jobs"].sum() == 299 and hours["hour"].tolist() == [8]
    assert "explains the waits to a factor of 2" in found.verdict


def test_a_replay_that_explains_nothing_says_so():
    whole = trace(log(gap=60.0), servers=9)
    late = replay(trace(log(gap=60.0), servers=9, start=whole.arrival + 500.0))
    assert not late.credible and "causes that the model does not have" in late.verdict
    early = replay(trace(BUSY, start=trace(BUSY).arrival))
    assert not early.credible and "the cluster did better than the model" in early.verdict
    with pytest.raises(InvalidParameter, match="no recorded starts"):
        replay(whole)
    with pytest.raises(InvalidParameter, match="no job of the log fits any of them, 100% of the work"):
        replay(trace(BUSY, cores=0.25, start=trace(BUSY).arrival))


def test_advice_has_the_replay_where_starts_are_recorded():
    frame = BUSY.assign(start_time=BUSY["submit_time"] + 30.0)
    found = schedgym.advise(frame, servers=3, cpus=8, memory=32, **QUICK)
    assert found.replay is not None and found.replay.verdict in str(found)
    assert found.content()["replay"]["by_hour"][0]["jobs"] == 300
    frame.loc[:20, "start_time"] = frame["submit_time"] - 1.0
    found = schedgym.advise(frame, servers=3, cpus=8, memory=32, **QUICK)
    assert (
        found.replay is None and "start: before the submission in 21 of 300 jobs, not compared" in found.read
    )


# formats that are known ------------------------------------------------------------------------


def sacct(count=120):
    """What ``sacct --parsable2`` prints of jobs on two machines, with steps and one job that still runs."""
    lines = ["JobID|Submit|Start|Elapsed|State|AllocCPUS|ReqMem"]
    for i in range(count):
        at = pandas.Timestamp("2024-05-01 08:00:00") + pandas.Timedelta(seconds=40 * i)
        begun = at + pandas.Timedelta(seconds=5)
        fields = [
            at.isoformat(),
            begun.isoformat(),
            f"00:0{1 + i % 9}:30",
            "COMPLETED",
            str(1 + i % 4),
            "4G",
        ]
        lines.append("|".join([str(100 + i), *fields]))
        lines.append("|".join([f"{100 + i}.batch", *fields]))
    lines.append("999|2024-05-01T10:00:00|Unknown|00:00:00|PENDING|1|4G")
    return "\n".join(lines) + "\n"


def test_an_export_of_slurm(tmp_path):
    (tmp_path / "jobs.txt").write_text(sacct())
    found = schedgym.advise(tmp_path / "jobs.txt", servers=2, cpus=8, memory=64, **QUICK)
    text = "\n".join(found.read)
    assert "of which 120 are jobs" in text and "120 rows: job step (first in line 3)" in text
    assert "1 row: unfinished" in text and "from 2024-05-01 08:00:00 UTC" in text
    assert found.replay is not None and found.replay.dated
    assert found.replay.by_hour()["hour"].tolist() == [8, 9]
    assert found.replay.recorded.tolist() == [5.0] * 120


def test_an_export_of_kubernetes(tmp_path):
    lines = ["NAMESPACE,POD,creationTimestamp,startTime,completionTime,cpuRequest,memoryRequest,phase"]
    for i in range(120):
        at = pandas.Timestamp("2024-05-01 08:00:00") + pandas.Timedelta(seconds=40 * i)
        ends = (at + pandas.Timedelta(seconds=s) for s in (0, 5, 65 + i))
        times = [one.strftime("%Y-%m-%dT%H:%M:%SZ") for one in ends]
        if i == 7:
            times[2] = ""
        fields = [*times, "500m" if i % 2 else "2", "512Mi" if i % 3 else "4Gi", "Succeeded"]
        lines.append(",".join(["batch", f"job-{i}", *fields]))
    (tmp_path / "pods.csv").write_text("\n".join(lines) + "\n")
    found = schedgym.advise(tmp_path / "pods.csv", servers=2, cpus=4, memory=16, **QUICK)
    workload = found.comparison.run.records["fcfs"][0].workload
    assert set(4 * workload.jobs["cpu"]) == {0.5, 2.0} and set(16 * workload.jobs["memory"]) == {0.5, 4.0}
    assert set(np.diff(np.sort(workload.jobs["execution"]))) == {1.0, 2.0}, "60 s and more, of all but one"
    gap = "left out: 1 row: completionTime empty (first in line 9); an unknown amount of work"
    assert gap in found.read
    assert found.replay is not None and found.replay.recorded.tolist() == [5.0] * 119


def test_the_columns_that_a_known_format_found_are_said(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text("".join(line.rpartition("|")[0] + "\n" for line in sacct().splitlines()))
    read = schedgym.advise(path, servers=2, cpus=8, **QUICK).read
    assert "memory: the log has none; jobs take none" in read
    (columns,) = (line for line in read if line.startswith("columns: "))
    assert "cpus = AllocCPUS [cores]" in columns and "memory" not in columns


def test_the_load_and_the_sizes_of_machines_are_said_in_their_unit():
    once = BUSY.assign(submit_time=0.0)
    found = schedgym.advise(once, servers=3, cpus=8, memory=32, **QUICK)
    assert "offered load: unknown, as all jobs come at once" in "\n".join(found.read)
    few = trace(log(20, gap=1e4))
    nothing = select(few, slice(None), cores=0 * few.cores, memory=0 * few.memory)
    found = schedgym.advise(nothing, **QUICK)
    assert "offered load: none, as jobs take nothing" in "\n".join(found.read)
    assert found.verdict.startswith("Next to nothing waits at the log's own load, whatever the policy")
    shares = select(trace(BUSY), slice(None), unit="slots")
    text = "\n".join(schedgym.advise(shares, servers=3, cpus=3, **QUICK).read)
    assert (
        "3 machines, cpus 9 [slots], memory not limited" in text
        and "more than any machine has, one cpus 4" in text
    )
    with pytest.raises(InvalidParameter, match=r"one job up to cpus 4 \[slots\]"):
        schedgym.advise(select(shares, slice(None), machine_cores=[], machine_memory=[]), **QUICK)


@pytest.mark.parametrize("named", [{}, {"format": "slurm"}], ids=["recognised", "named"])
def test_a_known_format_keeps_its_filters_and_columns_under_what_is_given(tmp_path, named):
    path = tmp_path / "jobs.txt"
    lines = sacct().splitlines()
    parts = ["Partition", *("ab"[i % 4 == 1] for i in range(1, len(lines)))]  # a job and its step differ
    lines = [f"{line}|{part}" for line, part in zip(lines, parts, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    how = {"servers": 2, "cpus": 8, "memory": 64, **named, **QUICK}
    found = schedgym.advise(path, where={"Partition": ["a"]}, **how)
    text = "\n".join(found.read)
    assert "of which 60 are jobs" in text and "120 rows: job step" in text and "1 row: unfinished" in text
    assert "60 rows: Partition is another (first in line 2)" in text and "as sacct --parsable2" in text
    found = schedgym.advise(path, columns={"cpus": "AllocCPUS*2"}, **how)
    assert "of which 120 are jobs" in "\n".join(found.read)
    assert "cpus = AllocCPUS*2 [cores]" in "\n".join(found.read) and found.replay is not None
    found = schedgym.advise(path, columns="duration=60", **how)
    assert "duration = 60 [s]" in "\n".join(found.read)
    with pytest.raises(TraceFormatError, match="jobs.txt:1: Queue: missing column"):
        schedgym.advise(path, where={"Queue": ["a"]}, **how)


def test_a_format_that_assumes_something_is_not_taken_unasked(tmp_path):
    path = tmp_path / "llm.csv"
    rows = "".join(f"2023-11-16 18:17:{i:02d}.9799600,9,{100 + i}\n" for i in range(40))
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    with pytest.raises(
        TraceFormatError, match="azure-llm, which assumes one core a request.*give the format"
    ):
        schedgym.advise(path, servers=2, **QUICK)
    asked = schedgym.advise(path, servers=2, format="azure-llm", **QUICK)
    given = schedgym.advise(path, servers=2, columns={"duration": "0.02*GeneratedTokens"}, **QUICK)
    assert asked.verdict == given.verdict
    assert any(line.startswith("assumed, as the log does not tell: one core") for line in asked.read)
    both = schedgym.advise(path, servers=2, format="azure-llm", columns="duration=9", **QUICK)
    assert "assumed, where no column is given: one core a request" in "\n".join(both.read)
    assert "every job takes 1 core" in "\n".join(given.read)


def test_a_table_that_only_looks_like_a_format_is_read_by_its_names(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("creation_time,scheduled_time,deletion_time,cpu_request,mem_gb\n0,1,5,2,3\n1,2,9,2,3\n")
    found = schedgym.advise(path, servers=2, cpus=4, memory=8, **QUICK)
    assert found.read[0] == "log.csv: columns by their names"
    assert "The log is too short for intervals: they need two windows of jobs." in found.notes


# public traces ---------------------------------------------------------------------------------

DATA = os.environ.get("SCHEDGYM_DATA", "")
PUBLIC = entry(__file__, "test_public_traces")


@long
@pytest.mark.skipif(not DATA, reason="SCHEDGYM_DATA names no folder with the public traces")
@pytest.mark.parametrize(("name", "given", "read", "verdict"), PUBLIC.values(), ids=PUBLIC)
def test_public_traces(monkeypatch, name, given, read, verdict):
    monkeypatch.chdir(DATA)
    found = schedgym.advise(Path(name), **given, **QUICK)
    for part in read:
        assert part in "\n".join(found.read)
    assert found.verdict.startswith(verdict)


# arguments, and the command line ---------------------------------------------------------------


@pytest.mark.parametrize(("given", "match"), table(__file__, "test_arguments_that_contradict_each_other"))
def test_arguments_that_contradict_each_other(given, match):
    with pytest.raises(InvalidParameter, match=match):
        schedgym.advise(BUSY, **given)


@pytest.mark.parametrize("name", ["machines", "columns", "where", "format"])
def test_a_trace_is_not_read_again(name):
    for value in ({"a": "b"}, pandas.DataFrame({"cores": [8], "ram_gib": [32]})):
        with pytest.raises(InvalidParameter, match=f"{name}: is for logs that are read"):
            schedgym.advise(trace(BUSY), **{name: value})


def test_an_unknown_argument_and_a_broken_table():
    with pytest.raises(TypeError, match="unexpected keyword argument 'server'"):
        schedgym.advise(BUSY, server=3)
    with pytest.raises(TraceFormatError, match=r"data frame:5: cpus: must be a number, got 'x'"):
        schedgym.advise(BUSY.assign(cpus=[*"1234x", *"1" * 295]), servers=1, cpus=9)


def test_the_command_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BUSY.assign(start_time=BUSY["submit_time"] + 9, state="DONE").to_csv("log.csv", index=False)
    (tmp_path / "m.csv").write_text("name,cores,memory_gib\n" + "a,8,32\n" * 3)
    arguments = ["advise", "log.csv", "--machines", "m.csv", "--no-agent", "--n-jobs", "1"]
    assert cli.main([*arguments, "--where", "state=DONE|OLD", "--json", "o.json"]) == 0
    out = capsys.readouterr().out
    for text in table(__file__, "test_the_command_line"):
        assert text in out
    content = json.loads((tmp_path / "o.json").read_text())
    assert content["verdict"] in out.replace("\n", " ") and content["manifest"]["seeds"] == [0]
    assert {row["policy"] for row in content["loads"][0]["policies"]} == set(PROBLEM.module("log").POLICIES)


@pytest.mark.parametrize("gap", some([25.0, 4.0]))
def test_the_page_has_all_of_it(tmp_path, monkeypatch, capsys, gap):
    monkeypatch.chdir(tmp_path)
    frame = log(gap=gap).assign(state="<b>odd</b>")
    frame.assign(start_time=frame["submit_time"] + 9).to_csv("<log>.csv", index=False)
    machines = ["--servers", "3", "--cpus", "8", "--memory", "32", "--no-agent", "--n-jobs", "1"]
    assert cli.main(["advise", "<log>.csv", *machines, "--report", "page.html"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    page = html.unescape((tmp_path / "page.html").read_text())
    assert "<svg" in page and "://" not in re.sub(r"<svg.*?</svg>|xmlns\S+", "", page, flags=re.S)
    assert "&lt;log&gt;.csv" in (tmp_path / "page.html").read_text()
    cells = re.findall(r"<t[dh][^>]*>([^<]+)</t[dh]>", page)
    assert len(cells) > 80
    for text in (*cells, *re.findall(r"<li>(.+)</li>", page)):
        assert " ".join(text.split()) in out, text
    assert ("multiple of the log's load" in page) == (gap > 20)
    assert page.count("<svg") == 3 and page.count("prefers-color-scheme: dark") == 4
    assert re.search(r"under [\w-]+ and under fcfs:\s+jobs \d+ to \d+, counted from 0, the window with", page)
    assert ("times the log's load.\nA job" in page) == (gap > 20)


def test_the_picture_of_the_stretch_is_small(monkeypatch):
    found = schedgym.advise(trace(BUSY), **QUICK)
    run, begin = found.comparison.run, found.stretch.span[0]
    best = found.comparison.table()["policy"][0]
    assert list(found.stretch.records) == [best, "fcfs"] and best != "fcfs"
    whole = len(svg_text(page.draw_schedule(found, "fcfs")))
    monkeypatch.setattr(stretch, "MOST", 5)
    short = find_stretch(run, logs.cut(trace(BUSY)), ["fcfs"], "fcfs")
    record = short.records["fcfs"]
    assert ((record.start > begin) & (record.start <= short.span[1])).sum() == 5
    few = dataclasses.replace(found, stretch=short)
    assert len(svg_text(page.draw_schedule(few, "fcfs"))) < 0.75 * whole


def test_the_stretch_of_a_sampled_log_counts_in_its_part(monkeypatch):
    whole = trace(log(count=400, gap=2.0))
    parts = logs.cut(whole, 0, 100, 50)
    assert len(parts) == 2 and parts[1].carried
    ran = logs.run(PROBLEM, parts, {"fcfs": "fcfs"}, progress=False)
    monkeypatch.setattr(type(ran), "means", lambda self, policy: np.arange(len(self.windows)))
    found = find_stretch(ran, parts, ["fcfs"], "fcfs")
    first = parts[1].carried + 50 - (ran.windows[-1].stop - ran.windows[-1].start)
    assert found.text.startswith(f"jobs {first} to {parts[1].carried + 49}, ")
    assert found.text.endswith("of a part of the log that was sampled")
    assert found.span[0] == found.records["fcfs"].workload.jobs["arrival"][first] > 0


@pytest.mark.parametrize(
    ("text", "more", "message"), table(__file__, "test_bad_input_is_one_line_and_nothing_is_written")
)
def test_bad_input_is_one_line_and_nothing_is_written(capsys, tmp_path, monkeypatch, text, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(text)
    given = [] if "--machines" in more else ["--servers", "2"]
    assert refused(capsys, "advise", "log.csv", *given, "--json", "out.json", *more).startswith(message)
