"""Logs as strangers have them: the load that is said is the one counted here, or the log is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas
import pytest

import schedgym
from schedgym import cli
from schedgym.advice.reading import read_log
from schedgym.errors import InvalidParameter, TraceFormatError
from schedgym.traces import inspect_trace, read_trace
from schedgym.traces.machines import place
from schedgym.traces.units import epoch_unit
from tests.commands import refused

RUN = ("--no-agent", "--n-jobs", "1")
CLOCK = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def times(count=200, gap=60.0, length=600.0, wait=30.0, seed=0):
    """Whole seconds of submission, start and end, and cores, of so many jobs."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(gap, count)).round()
    start = submit + rng.exponential(wait, count).round()
    end = start + rng.lognormal(np.log(length), 0.8, count).round() + 1
    return submit, start, end, rng.integers(1, 5, count)


def load(submit, duration, cores, capacity):
    """Core-seconds over those of the machines between the first and the last submission, in per cent."""
    return 100 * float((duration * cores).sum()) / (float(np.ptp(submit)) * capacity)


def advise(capsys, path, *more):
    """What the command prints, which must end with status 0."""
    assert cli.main(["advise", str(path), *RUN, *more]) == 0, capsys.readouterr().err
    return " ".join(capsys.readouterr().out.split())


def said_gpus(advice):
    """The load of GPUs that was said, with its sign."""
    return re.search(r"gpus ([0-9.]+%)", "\n".join(advice.read))[1]


def said_load(text):
    """The load that was said, in per cent."""
    return float(re.search(r"offered load: cpus ([0-9.e+]+)%", text)[1])


# jobs larger than a machine --------------------------------------------------------------------


def slurm(path, count=300):
    """An export in which 29% of the jobs ran on 2 to 8 nodes of 32 cores; returns the load of 24 of these."""
    submit, start, end, cores = times(count, 90.0, 3000.0)
    rng = np.random.default_rng(1)
    nodes = np.where(rng.permutation(count) < 0.29 * count, rng.integers(2, 9, count), 1)
    cores = np.where(nodes > 1, 32 * nodes, 8 * cores)
    lines = ["JobID|Submit|Start|Elapsed|State|AllocCPUS|ReqMem|NNodes"]
    begin = pandas.Timestamp("2024-05-01")
    for i in range(count):
        points = [(begin + pandas.Timedelta(seconds=one)).isoformat() for one in (submit[i], start[i])]
        clock = str(pandas.Timedelta(seconds=end[i] - start[i])).replace(" days ", "-")
        lines.append("|".join([str(i), *points, clock, "COMPLETED", str(cores[i]), "4Gn", str(nodes[i])]))
    path.write_text("\n".join(lines) + "\n")
    return load(submit, end - start, cores, 24 * 32)


def test_jobs_on_several_nodes_run_on_one_pool(tmp_path, capsys):
    path = tmp_path / "sacct.txt"
    true = slurm(path)
    text = advise(capsys, path, "--servers", "24", "--cpus", "32")
    assert said_load(text) == pytest.approx(true, rel=5e-3) and true > 100
    assert "rows: 300, of which 300 are jobs" in text
    assert "24 machines, 768 cores, memory not limited, as one pool, as 87 of 300 jobs ran on several" in text
    assert "fragmentation is not modelled" in text and "jobs that run on several machines" not in text
    line = refused(capsys, "advise", path, *RUN, "--servers", "24", "--cpus", "32", "--no-pool")
    assert re.search(r"87 of 300 jobs fit none of them, \d\d.\d% of the work \(.* core-seconds\)", line)
    assert "the largest needs 256 cores" in line and "--pool if a job may run across them" in line


def swf(path, header, count=120):
    """A log of the archive whose jobs take up to 336 processors; returns the load of 430."""
    submit, start, end, _ = times(count, 300.0, 3000.0)
    cores = np.random.default_rng(2).choice([1, 2, 8, 32, 128, 336], count)
    rows = (
        f"{i + 1} {submit[i]:.0f} {start[i] - submit[i]:.0f} {end[i] - start[i]:.0f} {cores[i]} -1 2000 "
        f"{cores[i]} 9000 -1 1 3 1 -1 1 -1 -1 -1"
        for i in range(count)
    )
    path.write_text("\n".join([*header, *rows]) + "\n")
    return load(submit, end - start, cores, 430)


@pytest.mark.parametrize(
    "header",
    [["; MaxNodes: 430", "; MaxProcs: 430"], ["; MaxProcs: 430"], ["; MaxNodes: 430"]],
    ids=["both", "processors", "nodes"],
)
def test_a_log_whose_header_has_nodes_of_one_processor(tmp_path, capsys, monkeypatch, header):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ctc.swf"
    true = swf(path, header)
    facts = inspect_trace(path)
    assert 100 * facts["offered_load"]["cores"] == pytest.approx(true) and facts["tasks"] == 120
    assert "jobs need more than any machine has, one 336 cores" in facts["pool"]
    if len(header) == 1:
        return
    assert said_load(advise(capsys, path)) == pytest.approx(true, rel=5e-3)
    compare = ("compare", "QueueDelay-v0", "--trace", path, "--tasks", "60", "--policies", "fcfs,bf-exec")
    assert cli.main([*map(str, compare), "--plot", "none"]) == 0
    out = capsys.readouterr().out
    assert "machines: one pool, as " + facts["pool"].removeprefix("as ") in out
    assert "memory: the machines' is not given" in out
    lines = {
        refused(capsys, *command, "--no-pool").partition(" was raised")[0]
        for command in (("advise", path, *RUN), ("trace", "inspect", path), (*compare, "--plot", "none"))
    }
    assert len(lines) == 1 and "the largest needs 336 cores" in lines.pop()


def test_a_pool_by_itself_only_where_it_helps():
    frame = pandas.DataFrame({"submit": [0.0, 9.0, 20.0], "duration": 5.0, "cpus": [2.0, 2.0, 9.0]})
    whole = {"servers": 3, "cpus": 4}
    assert place(read_log(frame, whole).trace).trace.machine_cores.tolist() == [12]
    assert not place(read_log(frame.assign(cpus=4), whole).trace).pool
    assert place(read_log(frame.assign(cpus=4), whole).trace, True).pool == "as asked for by --pool"
    with pytest.raises(InvalidParameter, match=r"1 of 3 jobs .* give larger machines, or the unit"):
        place(read_log(frame.assign(cpus=[2, 2, 13]), whole).trace)
    several = read_log(frame.assign(cpus=4, nodes=["a", "b", "1"]), whole)
    assert not len(several.trace.nodes), "names of nodes"
    several = place(read_log(frame.assign(cpus=4, num_nodes=[1, 2, 1]), whole).trace)
    assert several.pool == "as 1 of 3 jobs ran on several nodes, one on 2"
    machines = pandas.DataFrame({"cores": [4, 4, 2], "memory": [1, 1, 2], "site": ["x", "y", "x"]})
    sited = read_log(frame.assign(site="x", cpus=2), {"machines": machines}).trace
    assert place(sited, True).trace.machine_cores.tolist() == [6, 4], "a pool a site"


def test_work_that_is_left_out_is_counted(tmp_path, capsys):
    submit, start, end, cores = times(200)
    frame = pandas.DataFrame({"submit": submit, "duration": end - start, "cpus": cores, "inst_num": 1})
    frame.loc[3, ["cpus", "duration", "inst_num"]] = [99, 4, 2]  # fits none: 0.2% of the work
    frame.loc[5, "inst_num"] = 3
    state = np.where(np.arange(200) % 10, "done", "lost")
    frame.assign(state=state).to_csv(tmp_path / "log.csv", index=False)
    text = advise(capsys, tmp_path / "log.csv", "--servers", "1", "--cpus", "32", "--where", "state=done")
    gone = frame[state == "lost"]
    lost = float((gone["duration"] * gone["cpus"]).sum())
    assert "rows: 200, of which 179 are 181 tasks" in text
    assert f"20 rows: state is another (first in line 2); {lost:.4g} core-seconds" in text
    assert "1 row: fits no machine: the largest needs 99 cores (first in line 5); 2 jobs; 792 core-s" in text
    path = tmp_path / "gpus.csv"
    frame.rename(columns={"cpus": "num_gpu"}).to_csv(path, index=False)
    text = advise(capsys, path, "--servers", "1", "--gpus", "32")
    assert "; 0.22 GPU-hours" in text and "the largest needs 99 GPUs" in text and "core" not in text
    line = refused(capsys, "advise", path, *RUN, "--servers", "1", "--cpus", "32")
    assert "gpus: must be given with servers, as the log's jobs have GPUs only" in line
    assert "give --machines FILE, or --servers N --gpus G (its jobs" in refused(capsys, "advise", path, *RUN)
    more = ("--servers", "1", "--gpus", "32", "--problem", "flowtime", "--preemptible")
    assert "flowtime needs cpus, and the log has GPUs only" in refused(capsys, "advise", path, *RUN, *more)
    with pytest.raises(InvalidParameter, match=r"200 of 201 jobs|no job of the log fits any"):
        place(read_log(frame.assign(cpus=64), {"servers": 9, "cpus": 32}).trace, False)


# GPUs ------------------------------------------------------------------------------------------


def gpu_jobs(count=240):
    """Jobs of which a third ask for no GPU, others for 1, 2, 4 or 8: times, cores and GPUs, and GPU-hours."""
    submit, start, end, cores = times(count, 90.0, 1800.0)
    rng = np.random.default_rng(4)
    gpus = np.where(rng.random(count) < 1 / 3, 0, rng.choice([1, 2, 4, 8], count))
    hours = sum(float(e - s) * int(g) for s, e, g in zip(start, end, gpus, strict=True)) / 3600
    return submit, start, end, cores, gpus, hours


def helios(path):
    """A log in the schema of Helios, whose first job has an end, but no start."""
    begin = pandas.Timestamp("2020-06-09")
    submit, start, end, cores, gpus, hours = gpu_jobs()
    lines = ["job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"]
    lines += [f"0,u,vc,8,4,1,CANCELLED,{begin},,{begin},,"]
    for i, row in enumerate(zip(submit, start, end, cores, gpus, strict=True)):
        at = [str(begin + pandas.Timedelta(seconds=second)) for second in row[:3]]
        lines.append(f"{i + 1},u,vc,{row[4]},{row[3]},1,COMPLETED,{','.join(at)},{row[2] - row[1]:.0f},0")
    path.write_text("\n".join(lines) + "\n")
    return submit, hours


def sacct(path):
    """An export of Slurm with GPUs in AllocTRES only, and a job that is still running."""
    submit, start, end, cores, gpus, hours = gpu_jobs()
    lines = ["JobIDRaw|Submit|Start|ElapsedRaw|State|AllocTRES"]
    lines += [f"900|{1.7e9:.0f}|{1.7e9:.0f}|7200|RUNNING|cpu=1,gres/gpu=8,node=1"]
    for i, (at, begun, ended, core, gpu) in enumerate(zip(submit, start, end, cores, gpus, strict=True)):
        tres = f"billing={core},cpu={core}" + (f",gres/gpu={gpu},gres/gpu:a100={gpu}" if gpu else "")
        points = f"{1.7e9 + at:.0f}|{1.7e9 + begun:.0f}|{ended - begun:.0f}"
        lines.append(f"{i + 1}|{points}|COMPLETED|{tres},node=1")
    path.write_text("\n".join(lines) + "\n")
    return submit, hours


@pytest.mark.parametrize("make", [helios, sacct])
def test_a_log_of_gpus_is_read_as_one(tmp_path, capsys, make):
    path = tmp_path / "log"
    submit, hours = make(path)
    machines = ("--servers", "6", "--cpus", "32", "--gpus", "8")
    text = advise(capsys, path, *machines)
    assert f"{hours:.4g} GPU-hours" in text and "6 machines, 192 cores, 48 GPUs, memory not limited" in text
    offered = 100 * hours * 3600 / (48 * float(np.ptp(submit)))
    said = re.search(r"offered load: cpus [0-9.]+%, gpus ([0-9.]+)%; the busiest: gpus", text)
    assert float(said[1]) == pytest.approx(offered, rel=5e-3)
    assert f"{offered:.3g}% of the gpus" in text, "the verdict names it"
    left = "7200 core-seconds, 16 GPU-hours" if make is sacct else "0 core-seconds, 0 GPU-hours"
    assert f"(first in line 2); {left}" in text
    text = advise(capsys, path, *machines[:-2])
    assert "gpus: those of the machines are not given, so that they limit nothing" in text
    assert "busiest" not in text and "192 cores, memory not limited" in text
    line = refused(capsys, "advise", path, *RUN, *machines[:-1], "4", "--no-pool")
    assert "% of the GPU-hours (" in line and "cores, 8 GPUs: give larger machines, --pool if" in line
    line = refused(capsys, "advise", path, *RUN)
    assert ", 8 GPUs)" in line and "--gpus G (its jobs used up" in line
    bad = path.read_text().replace("gres/gpu=4", "gres/gpu=x").replace(",vc,4,", ",vc,x,")
    path.write_text(bad)
    row = 1 + next(i for i, row in enumerate(bad.splitlines()) if "gpu=x" in row or ",vc,x," in row)
    column = "AllocTRES.gres/gpu" if make is sacct else "gpu_num"
    line = refused(capsys, "advise", path, *RUN, *machines)
    assert line == f"error: {path}:{row}: {column}: must be a number, got 'x'\n"


def test_jobs_with_more_gpus_than_a_machine_run_on_one_pool():
    frame = pandas.DataFrame(
        {"submit": [0.0, 9.0, 20.0], "duration": 5.0, "cpus": 1, "gpus": [1.0, 0.5, 9.0]}
    )
    whole = {"servers": 3, "cpus": 4, "gpus": 4}
    placed = place(read_log(frame, whole).trace)
    assert placed.pool == "as 1 of 3 jobs need more than any machine has, one 9 GPUs"
    assert (
        placed.trace.machine_gpu.tolist() == [12]
        and place(read_log(frame, whole | {"gpus": 9}).trace).pool == ""
    )
    with pytest.raises(InvalidParameter, match="gpus: must be a number above 0, got -1"):
        read_log(frame, whole | {"gpus": -1})
    with pytest.raises(InvalidParameter, match="cpus, memory and gpus: are of each of the servers"):
        read_log(frame, {"gpus": 4})
    machines = pandas.DataFrame({"cores": [8, 8], "memory_gib": [1, 1], "gpu": ["8", ""]})
    assert read_log(frame, {"machines": machines}).trace.machine_gpu.tolist() == [8, 0]
    assert not read_log(frame, {"machines": machines.assign(gpu="T4")}).trace.machine_gpu.any(), "their types"


def test_gpus_alone_make_the_waits_that_as_many_cores_make():
    submit, start, end, _, gpus, hours = gpu_jobs()
    frame = pandas.DataFrame({"submit": submit, "duration": end - start, "n": gpus})
    quick = {"servers": 2, "agent": False, "n_jobs": 1}
    by_gpus = schedgym.advise(frame.rename(columns={"n": "gpus"}), gpus=8, **quick)
    by_cores = schedgym.advise(frame.rename(columns={"n": "cpus"}), cpus=8, **quick)
    assert by_gpus.comparison.run.means("fcfs").mean() > 60
    for policy in ("fcfs", "easy-backfill"):
        waits = (one.comparison.run.outcomes[policy] for one in (by_gpus, by_cores))
        assert np.array_equal(*waits)
    (rows,) = (line for line in by_gpus.read if line.startswith("rows: "))
    assert rows == f"rows: 240, of which 240 are jobs, {hours:.4g} GPU-hours"
    mixed = schedgym.advise(frame.rename(columns={"n": "gpus"}).assign(cpus=1.0), cpus=64, gpus=8, **quick)
    assert np.array_equal(*(one.comparison.run.outcomes["fcfs"] for one in (by_gpus, mixed)))
    assert mixed.verdict.endswith(f"The busiest resource: jobs offer {said_gpus(mixed)} of the gpus.")


def test_gpus_that_the_first_jobs_of_a_file_do_not_ask_for(tmp_path):
    path = tmp_path / "sacct.json"
    job = {"time": {"elapsed": 60}, "state": {"current": ["COMPLETED"]}, "required": {"CPUs": 1}}
    jobs = [job | {"job_id": i, "time": {"submission": 1709280000 + i, "elapsed": 60}} for i in range(400)]
    jobs[-1]["tres"] = {"allocated": [{"type": "gres", "name": "gpu", "count": 2}]}
    path.write_text(json.dumps({"jobs": jobs}))
    trace = read_trace(path)
    assert (trace.name, trace.gpu.sum(), trace.gpu[-1]) == ("sacct-json", 2, 2)


# units -----------------------------------------------------------------------------------------


def read(frame, **how):
    """A log on 16 cores, as it is read."""
    return read_log(frame, {"servers": 2, "cpus": 8, **how})


def table(first=0.0, clock="s", **columns):
    """A table of jobs whose times are whole numbers of a unit, counted from an instant [s]."""
    submit, start, end, cores = times()
    points = {"submit": submit, "start": start, "end": end}
    frame = {name: ((first + values) * CLOCK[clock]).astype(np.int64) for name, values in points.items()}
    return pandas.DataFrame({**frame, "cpus": cores, **columns})


TRUE = (times()[2] - times()[1], load(times()[0], times()[2] - times()[1], times()[3], 16))


@pytest.mark.parametrize("clock", CLOCK)
@pytest.mark.parametrize("own", [*CLOCK, "min"])
@pytest.mark.parametrize("first", [0.0, 1.7e9], ids=["from 0", "epoch"])
def test_a_duration_is_the_end_minus_the_start_in_every_unit(clock, own, first):
    sizes = CLOCK | {"min": 1 / 60}
    frame = table(first, clock, duration=np.ceil(TRUE[0] * sizes[own]).astype(np.int64))
    found = read(frame).trace
    assert found.duration == pytest.approx(TRUE[0], rel=1e-6, abs=60.0 if own == "min" else 1e-3)
    assert found.start - found.arrival == pytest.approx(times()[1] - times()[0], abs=1e-3)
    assert place(found).trace.work.sum() / np.ptp(found.arrival) / 0.16 == pytest.approx(
        TRUE[1], rel=0.06 if own == "min" else 1e-3
    )


@pytest.mark.parametrize("clock", ["ms", "us", "ns"])
def test_a_clock_from_0_without_durations(clock):
    found = read(table(clock=clock).assign(cpus=1))
    assert found.trace.duration == pytest.approx(TRUE[0])
    assert f"units: submit [{clock}], start [{clock}], end [{clock}], by their values" in found.lines
    rough = table(clock=clock)
    rough[["submit", "start", "end"]] += np.random.default_rng(3).integers(0, 999, (200, 3))  # no trailing 0
    try:
        assert sorted(read(rough).trace.duration) == pytest.approx(sorted(TRUE[0]), abs=2.0)
    except TraceFormatError as error:
        assert "give the unit, as in --columns 'submit=submit [" in str(error)
    given = read(rough, columns=f"submit=submit [{clock}]").trace
    assert sorted(given.duration) == pytest.approx(sorted(TRUE[0]), abs=2.0), (
        "the other points have the unit of submit"
    )


def test_seconds_stay_seconds():
    assert read(table()).trace.duration == pytest.approx(TRUE[0])
    rare = table().assign(**{name: table()[name] * 100 for name in ("submit", "start", "end")})  # 2 weeks
    assert read(rare).trace.duration == pytest.approx(100 * TRUE[0])
    assert epoch_unit([6e8, 7e8, 9e9, 8e10]) == "" and epoch_unit([]) == ""
    assert [epoch_unit([1.7e9 * size, 1.71e9 * size]) for size in CLOCK.values()] == list(CLOCK)


def test_a_duration_beside_dates_in_milliseconds(tmp_path):
    submit, _, _, cores = times()
    frame = pandas.DataFrame(
        {
            "ts_submit": ((1.5e9 + submit) * 1000).astype(np.int64),
            "runtime": (TRUE[0] * 1000).astype(np.int64),
            "cpus": cores,
        }
    )
    frame.to_parquet(tmp_path / "task.parquet")
    given = {"servers": 2, "cpus": 8, "columns": "submit=ts_submit"}
    found = read_log(tmp_path / "task.parquet", given)
    assert found.trace.work.sum() / np.ptp(found.trace.arrival) / 0.16 == pytest.approx(TRUE[1])
    assert "units: runtime [ms], by their values" in found.lines
    seconds = frame.assign(runtime=TRUE[0].astype(np.int64))
    assert read(seconds, columns="submit=ts_submit").trace.duration == pytest.approx(TRUE[0])


def test_a_column_that_includes_the_wait_gives_way_to_start_and_end():
    submit, _, end, _ = times(wait=300.0)
    frame = pandas.DataFrame(dict(zip(("submit", "start", "end", "cpus"), times(wait=300.0), strict=True)))
    found = read(frame.assign(duration=end - submit))
    assert found.trace.duration == pytest.approx(frame["end"] - frame["start"])
    assert "duration: includes the wait, so that durations are end - start" in found.lines
    assert (
        read(frame.drop(columns="start").assign(duration=end - submit)).trace.duration[0] == (end - submit)[0]
    )


def test_a_duration_beside_submission_and_end_is_no_longer_than_these_are_apart():
    frame = table(1.7e9).drop(columns="start")
    frame["submit"] -= 500  # a wait that no column tells
    for size in (1, 1000):
        found = read(frame.assign(duration=(size * TRUE[0]).astype(np.int64))).trace
        assert found.duration == pytest.approx(TRUE[0])


def test_a_table_without_a_job_that_ran_is_not_held_to_anything():
    frame = table().assign(end=0, duration=TRUE[0])
    assert read(frame).trace.duration == pytest.approx(TRUE[0])


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (
            {"duration_ms": TRUE[0]},
            r"duration_ms: is no duration in ms beside end: give .*'duration=duration_ms \[s\]'",
        ),
        (
            {"duration": TRUE[0] ** 2},
            r"duration: is not end - start in any unit: give .* or --columns 'end=end'",
        ),
    ],
)
def test_a_duration_that_contradicts_is_refused(columns, match):
    with pytest.raises(TraceFormatError, match=match):
        read(table(**columns))
    given = "end=end" if "duration" in columns else "duration=duration_ms [s]"
    assert read(table(**columns), columns=given).trace.duration == pytest.approx(TRUE[0])


def test_times_that_make_no_log_are_refused(tmp_path, capsys):
    dated = table(1.7e9).assign(submit=pandas.to_datetime(table(1.7e9)["submit"], unit="s"))
    dated = dated[["submit", "cpus"]].assign(duration=TRUE[0])
    assert read(dated).trace.duration == pytest.approx(TRUE[0])
    long = dated.assign(duration=1e6 * TRUE[0])
    with pytest.raises(
        TraceFormatError, match=r"duration: makes the median job longer than the log: .*\[ms\]'"
    ):
        read(long)
    assert read(long, columns="duration=duration [us]").trace.duration == pytest.approx(TRUE[0])
    old = dated.astype({"submit": str})
    old.loc[7, "submit"] = "1970-01-01"
    path = tmp_path / "log.csv"
    old.to_csv(path, index=False)
    line = refused(capsys, "advise", path, "--servers", "2", "--cpus", "8", "--json", tmp_path / "o.json")
    assert line.startswith(f"error: {path}: the log spans 53.9 years (columns: submit = submit [date]")
    assert [one.name for one in tmp_path.iterdir()] == ["log.csv"]
    doubt = pandas.DataFrame(
        {"submit": 1.5e12 + 1000 * times()[0], "duration": 40 * TRUE[0].astype(np.int64), "cpus": 1}
    )
    with pytest.raises(TraceFormatError, match="duration: may be in s or in ms: as read in s, 200 jobs come"):
        read(doubt)
    sparse = pandas.DataFrame(dict(zip(("submit", "start", "end"), times(2000, 2e4, 1e4), strict=False)))
    with pytest.raises(TraceFormatError, match="submit: may count in s or in ms"):
        read(sparse)


def test_plan_cpu_is_per_cent():
    submit, start, end, cores = times()
    frame = pandas.DataFrame({"submit": submit, "duration": end - start, "plan_cpu": 50.0 * cores})
    found = read_log(frame, {"servers": 10, "cpus": 300})
    assert found.trace.cores.max() == 2 and "units: plan_cpu [percent], by their values" in found.lines
    other = frame.rename(columns={"plan_cpu": "cpus"})
    with pytest.raises(TraceFormatError, match=r"cpus: may be cores or per cent: give --columns 'cpus=cpus"):
        read(other)  # beyond the machines of 8 cores
    assert read(other, columns="cpus=cpus [percent]").trace.cores.max() == 2
    assert read_log(other, {"servers": 10, "cpus": 200}).trace.cores.max() == 200
    assert read(other.assign(cpus=cores)).trace.cores.max() == 4
    with pytest.raises(InvalidParameter, match="no job of the log fits any"):
        place(read(frame, columns="cpus=plan_cpu [cores]").trace)


def test_a_trace_says_how_many_nodes_its_jobs_had(tmp_path):
    slurm(tmp_path / "sacct.txt", 40)
    found = read_trace(tmp_path / "sacct.txt")
    assert found.nodes.max() > 1 and found.line.tolist() == list(range(2, 42))
