"""The command line: what it prints and writes, and one line with exit code 2 for every error of the user."""

import importlib
import json
import re
import socket
import subprocess
import sys

import pytest

import schedgym
from schedgym import cli
from schedgym.cli import _application as application
from schedgym.evaluation import evaluate, wording
from schedgym.problems.queue_delay.workload import from_trace, make_workload
from schedgym.traces import read_trace
from tests.commands import refused
from tests.long import long
from tests.tables import entry, table

ID = "schedgym/QueueDelay-v0"
FAST = ["--tasks", "30", "--servers", "3", "--episodes", "3"]
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,0,\nn1,32000,131072,0,\n"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def strict(path):
    """The content of a JSON file that must not hold NaN or infinity."""

    def refuse(name):
        raise AssertionError(f"{name} in JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def pods(rows):
    lines = [f"p{i},{c},{m},0,0,,LS,Succeeded,{a},{d},{a}" for i, (c, m, a, d) in enumerate(rows)]
    return PODS + "\n".join(lines) + "\n"


def workload(**changes):
    content = dict(entry(__file__, "workload"))
    for place, value in changes.items():
        section, _, name = place.partition("__")
        if name:
            content[section] = {**content[section], name: value}
            if value is None:
                del content[section][name]
        else:
            content[section] = value
    return content


def test_version_and_help(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"schedgym {schedgym.__version__}\n"
    assert cli.main(["--help"]) == 0
    assert "compare" in capsys.readouterr().out


def test_list(capsys):
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    assert "queue-delay/bf-exec*" in out and "section IV" in out
    problems = schedgym.list_problems().values()
    assert all(id in out and variant.title in out for p in problems for id, variant in p.ids.items())
    assert cli.main(["list", "--problem", "queue-delay"]) == 0
    assert all(len(line) <= wording.WIDE for line in out.splitlines())


def test_columns_say_how_wide_the_output_is(capsys, monkeypatch):
    compare = ["compare", ID, *FAST, "--policies", "bf-exec,fcfs", "--plot", "none"]
    assert cli.main(compare) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 150
    monkeypatch.setenv("COLUMNS", "100")
    for arguments in (["list", "--problem", "queue-delay"], compare):
        assert cli.main(arguments) == 0
        tables = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" ")]
        assert tables and all(len(line) <= 100 for line in tables)


def test_describe_an_id(capsys):
    assert cli.main(["describe", ID]) == 0
    out = capsys.readouterr().out
    problem = schedgym.get_problem(ID)
    for names in (problem.parameters.kinds(), problem.presets, [m.name for m in problem.metrics]):
        assert all(name in out for name in names)
    assert "MultiDiscrete([33" in out and "Discrete(33)" in out
    assert "…" not in out


def test_describe_knows_every_id(capsys):
    for problem in schedgym.list_problems().values():
        assert cli.main(["describe", problem.name]) == 0
        out = capsys.readouterr().out
        for id, variant in problem.ids.items():
            assert id in out and variant.title in out and f"reference {variant.reference}" in out
        assert all(len(line) <= wording.WIDE for line in out.splitlines())
        assert len(out.splitlines()) < 150 * len(problem.ids)  # no space is written out number by number


@pytest.mark.parametrize("name", ["ffd-nb", "queue-delay/ffd-nb"])
def test_describe_a_policy(capsys, name):
    assert cli.main(["describe", name]) == 0
    out = capsys.readouterr().out
    assert "blocking=false" in out and "size=nb" in out and "Deviations: The paper does not say" in out


@long
def test_compare_sets_a_parameter_of_one_view(capsys):
    """The planner of view pick, beside a baseline of view plan; without the agent it is refused."""
    few = ["--episodes", "2", "--jobs", "3", "--arity", "2", "--planner", "list-scheduling"]
    code = cli.main(["compare", "ParallelJCT-v0", "--policies", "ontapra", *few, "--agents", "pretrained"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "") and "planner=list-scheduling" in out and "pretrained (pick)" in out
    assert cli.main(["compare", "ParallelJCT-v0", "--policies", "ontapra", *few]) == 2
    assert "planner: has no effect in the view of any of these policies" in capsys.readouterr().err


def test_compare_prints_the_table_and_writes_what_was_asked(capsys, tmp_path):
    code = cli.main(
        ["compare", ID, *FAST, "--seed", "4", "--policies", "bf-exec,fcfs"]
        + ["--json", "o.json", "--csv", "o.csv", "--plot", "o.png"]
    )
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert "mean delay [s]" in out and "vs bf-exec" in out and "reference" in out
    assert "percentages: of the mean of the policy named second" in out
    assert f"{ID} · tasks=30 · servers=3 · 3 episodes · seed 4" in out and "…" not in out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o.csv", "o.json", "o.png"]
    import pandas as pd

    expected = evaluate(ID, ["bf-exec", "fcfs"], 3, 4, parameters={"tasks": 30, "servers": 3})
    pd.testing.assert_frame_equal(pd.read_csv("o.csv"), expected)
    content = strict(tmp_path / "o.json")
    assert content["id"] == ID and content["reference"] == "bf-exec"
    assert content["manifest"]["seeds"] == [4]
    assert content["manifest"]["parameters"]["tasks"] == 30
    delays = expected[(expected["metric"] == "mean_delay") & (expected["policy"] == "fcfs")]["value"]
    row = next(r for r in content["summary"] if r["policy"] == "fcfs")
    assert row["mean"] == pytest.approx(delays.mean())
    from matplotlib.image import imread

    assert imread("o.png")[..., :3].std() > 0.02


def test_compare_sweeps_lists(capsys, tmp_path):
    arguments = ["compare", "--servers", "2,3", ID, "--set", "load=none,0.9", "--tasks=20", "--plot", "none"]
    assert cli.main([*arguments, "--episodes", "2", "--csv", "o.csv", "--n-jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "servers=2,3 · load=none,0.9" in out
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert lines[0] == "servers,load,policy,episode,seed,metric,value"
    assert [p.name for p in tmp_path.iterdir()] == ["o.csv"]


def test_an_id_may_leave_out_its_namespace(capsys):
    short = ID.partition("/")[2]
    assert cli.main(["compare", short, *FAST, "--policies", "bf-exec", "--plot", "none"]) == 0
    assert f"{ID} · tasks=30" in capsys.readouterr().out
    assert cli.main(["describe", short]) == 0
    assert ID in capsys.readouterr().out


def test_compare_writes_its_picture_by_default(tmp_path):
    assert cli.main(["compare", "queue-delay", *FAST, "--policies", "bf-exec"]) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["compare.png"]


def test_presets_and_options(capsys):
    arguments = ["compare", ID, "--preset", "sparse", "--tasks", "20", "--episodes", "2", "--plot", "none"]
    assert cli.main([*arguments, "--policies", "ffd-nb", "--option", "ffd-nb.blocking=true"]) == 0
    assert f"{ID} · arrival_rate=0.1 · tasks=20 · 2 episodes" in capsys.readouterr().out


def test_episodes_that_left_work_are_said(capsys, tmp_path):
    (tmp_path / "w.json").write_text(json.dumps(workload()))
    arguments = ["compare", ID, "--workload", "w.json", "--policies", "ff,bf-exec", "--plot", "none"]
    assert cli.main([*arguments, "--json", "o.json"]) == 0
    assert "ff (1 of 1)" in capsys.readouterr().out
    assert strict(tmp_path / "o.json")["distinct"] == 1
    experiment = f"[{{id: {ID}, parameters: {{workload: w.json}}, policies: [ff, bf-exec]}}]"
    (tmp_path / "s.yaml").write_text(f"{{name: s, episodes: 1, experiments: {experiment}}}")
    assert cli.main(["sweep", "s.yaml", "--n-jobs", "1"]) == cli.main(["report", "s.db"]) == 0
    assert "work left (its charge is included): ff (1 of 1)." in (tmp_path / "s.html").read_text("utf-8")


def test_compare_on_a_trace_takes_its_windows_and_preset(capsys, tmp_path):
    rows = [(1000 * (i % 8 + 1), 4096, 10 * i, 10 * i + 50 + i) for i in range(25)]
    (tmp_path / "a,b.csv").write_text(pods(rows))
    (tmp_path / "n.csv").write_text(NODES)
    arguments = ["compare", ID, "--trace", "a,b.csv", "--nodes", "n.csv", "--servers", "2"]
    assert cli.main([*arguments, "--tasks", "10", "--load", "1.0", "--plot", "none"]) == 0
    out = capsys.readouterr().out
    assert "2 episodes" in out and "load=1" in out
    assert "only 2 episodes" in out
    preset = schedgym.get_problem(ID).presets.get("trace")
    if preset is not None:  # 2000 tasks are more than this file has
        assert f"a window of {preset['tasks']}" in refused(capsys, *arguments)


def test_compare_on_a_trace_keeps_its_own_load_and_machines(capsys, tmp_path):
    rows = [(1000 * (i % 8 + 20), 4096, 10 * i, 10 * i + 50 + i) for i in range(25)]
    (tmp_path / "p.csv").write_text(pods(rows))
    (tmp_path / "n.csv").write_text(NODES)
    arguments = ["compare", ID, "--trace", "p.csv", "--nodes", "n.csv", "--tasks", "25", "--policies", "fcfs"]
    assert cli.main([*arguments, "--plot", "none", "--json", "o.json"]) == 0
    assert "load" not in capsys.readouterr().out
    content = strict(tmp_path / "o.json")
    assert content["manifest"]["parameters"]["servers"] == "all"
    trace = read_trace(tmp_path / "p.csv", nodes=tmp_path / "n.csv")
    table, nodes = from_trace(trace)
    values = schedgym.evaluate(ID, "fcfs", workloads=[make_workload(table, nodes)], progress=False)
    own = values[values["metric"] == "mean_delay"]["value"].tolist()
    assert [row["mean"] for row in content["summary"]] == pytest.approx(own)
    assert own[0] > 1.0
    message = refused(capsys, "compare", ID, "--servers", "all")
    assert message == "error: servers: 'all' needs a trace\n"


def test_run_tells_every_jobs_fate(capsys, tmp_path):
    (tmp_path / "w.json").write_text(json.dumps(workload()))
    assert cli.main(["run", ID, "--policy", "ff", "--workload", "w.json", "--json", "o.json"]) == 0
    out = capsys.readouterr().out
    assert "mean_delay" in out and "the episode ended with work left" in out
    content = strict(tmp_path / "o.json")
    assert {"problem", "id", "policy", "truncated", "metrics", "jobs", "manifest"} == content.keys()
    assert content["jobs"] == {
        "start": [0, 0, 10, None],
        "server": [0, 1, 1, -1],
        "completion": [4, 10, 13, None],
    }
    assert content["metrics"]["stranded"] == 1 and content["metrics"]["bound"] >= 0
    assert content["policy"] == "queue-delay/ff" and content["truncated"] is True
    again = ["run", ID, "--policy", "bf-exec", "--workload", "w.json", "--json", "o.json"]
    assert cli.main([*again, "--set", "window=4", "--seed", "9"]) == 0
    out = capsys.readouterr().out
    assert "bf-exec on w.json" in out and "wrote o.json" in out
    assert strict(tmp_path / "o.json")["jobs"]["start"] == [0, 0, 10, 4]


def test_a_schedule_that_is_not_valid_is_not_written(capsys, tmp_path, monkeypatch):
    from schedgym.problems.queue_delay import metrics

    def refuse(record):
        raise schedgym.InvalidSchedule("server [0] is over its capacity")

    monkeypatch.setattr(metrics, "validate", refuse)
    (tmp_path / "w.json").write_text(json.dumps(workload()))
    arguments = ["run", ID, "--policy", "ff", "--workload", "w.json", "--json", "o.json"]
    assert "over its capacity" in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("w.json", "{", "w.json: line 1 column 2"),
        ("w.json", json.dumps(workload(jobs__cpu=[1, "x", 1, 1])), "w.json: jobs.cpu[1]: must be a number"),
        ("w.npz", "PK", "w.npz: not a readable numpy archive"),
    ],
)
def test_workload_files_that_are_refused(capsys, tmp_path, name, content, message):
    """In the words of tests/core/test_workload.py, which has them all."""
    (tmp_path / name).write_text(content)
    arguments = ["run", ID, "--policy", "ff", "--workload", name, "--json", "o.json"]
    assert message in refused(capsys, *arguments)


def test_missing_workload_files(capsys, tmp_path):
    arguments = ["run", ID, "--policy", "ff", "--json", "o.json", "--workload"]
    assert "no.json: No such file" in refused(capsys, *arguments, "no.json")
    (tmp_path / "d.json").mkdir()
    assert "d.json: Is a directory" in refused(capsys, *arguments, "d.json")


@pytest.mark.parametrize(
    ("arguments", "message"), table(__file__, "test_bad_comparisons"), ids=lambda x: " ".join(x)[:40]
)
def test_bad_comparisons(capsys, arguments, message):
    assert message in refused(capsys, "compare", ID, *arguments)


def test_options_of_a_policy_are_one_by_its_short_and_its_full_name(tmp_path):
    given = ["--option", "ffd-nb.blocking=true", "--option", "queue-delay/ffd-nb.weights=1,2"]
    size = ["--policies", "ffd-nb", "--tasks", "20", "--episodes", "1", "--plot", "none", "--json", "a.json"]
    assert cli.main(["compare", ID, *size, *given]) == 0
    found = json.loads((tmp_path / "a.json").read_text())["manifest"]["options"]
    assert found == {"ffd-nb": {"blocking": True, "weights": [1.0, 2.0]}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    table(__file__, "test_bad_commands"),
    ids=" ".join,
)
def test_bad_commands(capsys, arguments, message):
    assert message in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    table(__file__, "test_bad_runs"),
    ids=lambda x: " ".join(x)[:40],
)
def test_bad_runs(capsys, tmp_path, arguments, message):
    (tmp_path / "w.json").write_text(json.dumps(workload()))
    assert message in refused(capsys, "run", ID, "--workload", "w.json", *arguments)


@pytest.mark.parametrize(
    "arguments", [["describe", "nonsense"], ["compare", ID, "--policies", "nonsense"]], ids=" ".join
)
def test_many_names_are_not_written_out(capsys, arguments):
    message = refused(capsys, *arguments)
    assert re.search(r"'nonsense'; (nearest: \S+(, \S+)*; )?all \d+: schedgym list$", message)


def test_a_download_that_fails_tells_the_cause_and_another_way(capsys, tmp_path, monkeypatch):
    known = importlib.import_module("schedgym.traces.fetch").known_sets()["facebook-2010"]

    def offline(cache, name, downloader):
        try:
            raise socket.gaierror(-2, "Name or service not known")
        except OSError:
            raise OSError(f"{name}: {'wrapped ' * 50}") from None

    monkeypatch.setattr("pooch.Pooch.fetch", offline)
    monkeypatch.delenv("SCHEDGYM_DATA", raising=False)
    message = refused(capsys, "trace", "fetch", "facebook-2010")
    assert f"cannot fetch {known.url} into " in message
    assert ": Name or service not known; " in message
    assert f"put {known.file} into a folder that the environment variable SCHEDGYM_DATA names" in message
    monkeypatch.setenv("SCHEDGYM_DATA", str(tmp_path / "mine"))
    message = refused(capsys, "trace", "fetch", "facebook-2010")
    assert message.endswith(f"put {known.file} into {tmp_path / 'mine'}\n")


def test_malformed_trace_lines(capsys, tmp_path):
    good = pods([(1000, 1024, 0, 5), (1000, 1024, 3, 9)])
    (tmp_path / "t.csv").write_text(good.replace("p1,1000", "p1,lots"))
    (tmp_path / "n.csv").write_text(NODES)
    (tmp_path / "b.bin").write_bytes(b"\xff\x00\xfe\n")
    arguments = ["trace", "inspect", "t.csv", "--json", "o.json"]
    message = refused(capsys, *arguments)
    assert "t.csv:3: cpu_milli: " in message
    compared = ["compare", ID, "--trace", "t.csv", "--nodes", "n.csv", "--tasks", "1", "--servers", "1"]
    assert "t.csv:3: cpu_milli: " in refused(capsys, *compared)
    assert "b.bin" in refused(capsys, "trace", "inspect", "b.bin")
    assert "skp" in refused(capsys, *arguments, "--on-error", "skp")
    assert cli.main([*arguments, "--on-error", "skip"]) == 0
    assert strict(tmp_path / "o.json")["tasks"] == 1


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(capsys, monkeypatch):
    monkeypatch.setattr(cli.os, "access", lambda path, mode: False)
    assert "cannot be written" in refused(capsys, "compare", ID, "--json", "o.json")


def test_faults_of_ours_keep_their_traceback(monkeypatch):
    def broken():
        raise KeyError("ours")

    monkeypatch.setattr("schedgym.cli.catalogue.list_problems", broken)
    with pytest.raises(KeyError):
        cli.main(["list"])


def test_an_interrupt_exits_130(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("schedgym.cli.catalogue.list_problems", interrupted)
    assert cli.main(["list"]) == 130


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_python_m_schedgym():
    done = python("-m", "schedgym", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_without_the_extra_one_line_names_the_pip_command(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = 'error: matplotlib is not installed; run: pip install "schedgym[eval]"\n'
    assert refused(capsys, "compare", ID) == message


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m schedgym describe {ID} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == "" and ID in done.stdout


COMMON = "policies agents episodes seed preset set option n-jobs best-known json csv plot width title format"
COMMON = {f"--{name}" for name in (*COMMON.split(), "reference", "tuned", "help")}


def flags(text):
    return set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE))


def test_the_help_without_an_id_is_short_and_says_where_the_parameters_are(capsys):
    assert cli.main(["compare", "--help"]) == 0
    out = capsys.readouterr().out
    assert flags(out) == COMMON
    assert out.endswith("\n`schedgym compare ID --help` shows the parameters of an environment, too.\n")
    assert cli.main(["tune", "--help"]) == 0
    out = capsys.readouterr().out
    every = application()
    commands = [every, *every.commands.values()]
    unsaid = [(own.name, option.name) for own in commands for option in own.params if not option.help]
    assert len(commands) > 10 and not unsaid
    assert "`schedgym tune ID --help` shows" in out and not flags(out) & {"--tasks", "--jobs", "--servers"}


@pytest.mark.parametrize(
    "id",
    [id.partition("/")[2] for problem in schedgym.list_problems().values() for id in problem.ids],
)
def test_the_help_with_an_id_names_the_parameters_of_its_problem_only(id, capsys):
    assert cli.main(["compare", id, "--help"]) == 0
    out = capsys.readouterr().out
    own = schedgym.get_problem(f"schedgym/{id}").parameters.kinds()
    assert (
        flags(out) == COMMON | {f"--{name.replace('_', '-')}" for name in own}
        and "ID --help" not in out[600:]
    )


def test_the_help_with_an_id_has_its_defaults(capsys):
    for id, default in (("GeoAssign-v0", "response"), ("GeoFair-v0", "fairness")):
        assert cli.main(["compare", "--help", id]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert f"[default: {default}]" in text.partition("--objective ")[2].partition(" --")[0]


def test_a_switch_may_stand_without_a_value() -> None:
    spell = cli._spell_out_switches
    assert spell(["compare", "X", "--single", "--windows", "1,2"]) == [
        *("compare", "X", "--single", "true", "--windows", "1,2")
    ]
    assert spell(["compare", "X", "--drc", "true,false"]) == ["compare", "X", "--drc", "true,false"]
    assert spell(["compare", "X", "--latency"])[-1] == "true"
    assert spell(["tune", "X", "ff", "--pool", "-o", "a.db"])[4:] == ["true", "-o", "a.db"]


BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "joblib", "matplotlib", "pooch", "yaml", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from schedgym.cli import main
listed, described = main(["list", "--problem", "queue-delay"]), main(["describe", "QueueDelay-v0"])
print(listed, described, main(["compare", "QueueDelay-v0"]))
"""


def test_a_bare_installation_lists_and_describes_and_runs():
    """Without any extra there is all of the command line that needs none; the rest says what is missing."""
    done = python("-c", BARE)
    assert "queue-delay/bf-exec*" in done.stdout and done.stdout.endswith("\n0 0 2\n")
    assert done.stderr == 'error: pandas is not installed; run: pip install "schedgym[eval]"\n'


def test_environments_of_others_are_called_what_they_are(capsys):
    text = "error: 'CartPole-v1' is an environment of Gymnasium, but not one of schedgym"
    for command in (["compare", "CartPole-v1"], ["describe", "CartPole-v1"]):
        assert text in refused(capsys, *command)


def test_the_paper_has_no_say_in_other_workloads(capsys, tmp_path):
    """From one episode there is no verdict, and on a workload of the user's no statement at all."""
    cheap = ("--plot", "none", "--policies", "bf-exec,fcfs")
    assert cli.main(["compare", "QueueDelay-v0", *cheap, "--episodes", "1", "--tasks", "20"]) == 0
    out = capsys.readouterr().out
    assert "What the paper says" in out and "one episode: no interval, no verdict" in out
    assert "holds" not in out
    path = tmp_path / "own.json"
    path.write_text(json.dumps(workload()))
    assert cli.main(["compare", "QueueDelay-v0", *cheap, "--workload", str(path)]) == 0
    assert "What the paper says" not in capsys.readouterr().out
