"""Tuning: the best options are found, on episodes that no evaluation plays, and used by comparisons."""

import json
import signal

import numpy as np
import pytest

from schedgym import cli
from schedgym.core import policy as registry
from schedgym.core.policy import get_policy_spec, list_policies, make_policy, register_policy
from schedgym.core.problem import get_problem
from schedgym.core.random import EVALUATION_SEEDS, VALIDATION_SEED
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName
from schedgym.evaluation import episodes, evaluate, run_sweep, tune, tuned_options, tuning
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import make_spec
from schedgym.evaluation.tuned import find_tuned, read_tuned
from tests.commands import refused
from tests.evaluation.test_cli import NODES, pods, strict
from tests.long import long
from tests.tables import table

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 60, "servers": 3}
#: values of two options -> the policy that the test policy then is; the best is known
BEST = {(2, "b"): "dot-exec"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    list_policies()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    return tmp_path


@pytest.fixture
def either():
    """A policy that is good with two options of certain values only, and refuses a third value."""

    @register_policy(
        "queue-delay/either",
        source="a test",
        views=("placement",),
        candidates={"x": (1, 2, 3), "y": ("b", "c")},
    )
    class Either:
        """Is fcfs or another policy."""

        def __init__(self, x: int = 0, y: str = "a", z: float = 1.0) -> None:
            name = BEST.get((x, y), "bf-all" if x == 2 else "fcfs")
            self.x, self.policy = x, make_policy(name, "queue-delay")

        def reset(self, interface, rng) -> None:
            if self.x == 3:
                raise InvalidParameter("x: 3 cannot be expressed here")
            self.policy.reset(interface, rng)

        def __call__(self, observation):
            return self.policy(observation)


@pytest.fixture
def played(monkeypatch):
    """The (label, seed, episode) of every episode that is played."""
    found, original = [], episodes.play

    def play(env, policy, *, seed, episode, label):
        found.append((label, seed, episode))
        return original(env, policy, seed=seed, episode=episode, label=label)

    monkeypatch.setattr(episodes, "play", play)
    return found


@long
@pytest.mark.parametrize("most", [64, 2])
def test_the_best_is_found_by_all_combinations_or_by_coordinates(either, monkeypatch, most) -> None:
    monkeypatch.setattr(tuning, "MOST", most)
    found = tune(ID, "either", 6, parameters=SMALL, n_jobs=1)
    assert found.tried == {"x": (0, 1, 2, 3), "y": ("a", "b", "c")}
    assert found.options == found.best == {"x": 2, "y": "b"} and found.improves
    assert set(found.refused.values()) == {"x: 3 cannot be expressed here"}
    assert len(found.candidates) == (9 if most == 64 else 7), "x 1 2, y b c beside x 2, x 1 beside y b"
    means = [row["mean"] for row in found.candidates]
    assert means == sorted(means)
    (default,) = (row for row in found.candidates if not row["options"])
    assert np.isnan(default["difference"])
    best = found.candidates[0]
    assert best["difference"] == pytest.approx(best["mean"] - default["mean"]) and best["high"] < 0


def test_the_numbers_are_those_of_the_validation_episodes(either, played) -> None:
    found = tune(ID, "either", 5, parameters=SMALL, candidates={"y": ["a"]}, n_jobs=1)
    assert {seed for _, seed, _ in played} == {VALIDATION_SEED} and VALIDATION_SEED >= EVALUATION_SEEDS
    assert (found.choosing, found.judging) == ((0, 5), (5, 5))
    judging = {(label, episode) for label, _, episode in played if episode >= 5}
    assert judging == {(label, episode) for label in ("either", "either x=2") for episode in range(5, 10)}
    with pytest.raises(InvalidParameter, match="seed: must be below"):
        evaluate(ID, "either", 5, VALIDATION_SEED)
    env = episodes.make_env(ID, SMALL)
    for first, mean in ((0, found.candidates[0]["mean"]), (5, found.judged["mean"])):
        values = [
            episodes.play(
                env, make_policy("bf-all", "queue-delay"), seed=VALIDATION_SEED, episode=e, label=""
            )
            for e in range(first, first + 5)
        ]
        delays = [outcome.metrics["mean_delay"] for outcome in values]
        assert np.mean(delays) == pytest.approx(mean, rel=1e-12)


def test_what_a_store_holds_is_not_played_again(either, played, monkeypatch, tmp_path, interruptible) -> None:
    how = {"parameters": SMALL, "store": tmp_path / "t.db", "n_jobs": 1}
    whole = tune(ID, "either", 4, parameters=SMALL, n_jobs=1)
    total = len(played)
    played.clear()
    recorded = episodes.play

    def cut_off(env, policy, **given):
        if len(played) == 10:
            signal.raise_signal(signal.SIGINT)
        return recorded(env, policy, **given)

    monkeypatch.setattr(episodes, "play", cut_off)
    with pytest.raises(KeyboardInterrupt):
        tune(ID, "either", 4, **how)
    kept = len(ResultsStore(how["store"]).frame(metrics=["mean_delay"]))
    assert 0 < kept < 10
    monkeypatch.setattr(episodes, "play", recorded)
    played.clear()
    again = tune(ID, "either", 4, **how)
    assert len(played) == total - kept
    assert again.candidates[0] == whole.candidates[0] and again.judged == whole.judged
    played.clear()
    tune(ID, "either", 4, **how)
    assert played == []


@long
def test_an_equal_option_leaves_the_default() -> None:
    found = tune(ID, "bf-all", 4, parameters=SMALL, candidates={"p": [2.0]}, n_jobs=1)
    assert (found.best, found.options, found.judged) == ({}, {}, None)
    found = tune("schedgym/FlowtimePacking-v0", "ocorp", 4, parameters={"jobs": 20}, n_jobs=1)
    assert len(found.candidates) == 56 and found.options == {}, "its default is as good as any"


def test_a_policy_of_more_value_is_better_where_the_objective_is_maximised() -> None:
    parameters = {"model": "discrete", "jobs": 40}
    found = tune("schedgym/PartialValue-v0", "m-greedy", 12, parameters=parameters, n_jobs=1)
    means = [row["mean"] for row in found.candidates]
    assert means == sorted(means, reverse=True)
    assert found.improves == (found.judged is not None and found.judged["low"] > 0)


def test_windows_of_a_trace_are_apart_from_those_of_comparisons(either, played, folder, capsys) -> None:
    rows = [(4000 * (i * i % 7 + 1), 4096, 10 * i, 10 * i + 50 + 13 * i % 90) for i in range(80)]
    (folder / "t.csv").write_text(pods(rows))
    (folder / "n.csv").write_text(NODES)
    trace = {"trace": "t.csv", "nodes": "n.csv", "servers": 2, "tasks": 10, "load": 20.0}
    found = tune(ID, "either", parameters=trace, n_jobs=1)
    assert (found.seed, found.choosing, found.judging) == (0, (4, 2), (6, 2)), "8 windows, a quarter for each"
    assert {episode for _, _, episode in played} == {4, 5, 6, 7}
    env = episodes.make_env(ID, trace)
    jobs = []
    for episode in range(8):
        env.reset(seed=0, options={"episode": episode})
        jobs.append(env.simulator.workload(0).jobs["execution"].tobytes())
    assert not set(jobs[:4]) & set(jobs[4:])
    entry = {"id": ID, "policy": "either", "options": {"x": 2}, "parameters": trace, "choosing": (4, 2)}
    (folder / "o.json").write_text(json.dumps({"tuned": [entry]}))
    compare = ["compare", ID, "--policies=either", "--tuned=o.json", f"--trace={folder}/t.csv", "--tasks=10"]
    for count, said in (("4", False), ("5", True)):
        assert cli.main([*compare, "--nodes=n.csv", "--servers=2", "--plot=none", "--episodes", count]) == 0
        assert ("--seed 0 --episodes 4 has others" in capsys.readouterr().out) == said
    with pytest.raises(InvalidParameter, match="8 windows: 4 to choose and as many to judge leave none"):
        tune(ID, "either", 4, parameters=trace, n_jobs=1)


def test_a_failing_candidate_ends_it_with_its_error(either, monkeypatch, folder) -> None:
    def play(env, policy, *, seed, episode, label):
        raise RuntimeError(f"{label} is out of luck")

    monkeypatch.setattr(episodes, "play", play)
    with pytest.raises(SchedgymError, match="is out of luck"):
        tune(ID, "either", 2, parameters=SMALL, n_jobs=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    table(__file__, "test_errors_are_one_line"),
)
def test_errors_are_one_line(capsys, arguments, message) -> None:
    assert message in refused(capsys, "tune", *arguments)


@long
def test_the_command_prints_and_writes_what_comparisons_use(either, capsys, folder) -> None:
    arguments = ["tune", "QueueDelay-v0", "either", "--tasks", "60", "--servers", "3", "--episodes", "6"]
    assert cli.main([*arguments, "--n-jobs", "1", "--json", "o.json"]) == 0
    out = capsys.readouterr().out
    assert "best: x=2 y=b; on 6 other episodes -" in out and "): better" in out
    assert "not run: either x=3: x: 3 cannot be expressed here" in out
    assert "episodes 0 to 5 choose, 6 to 11 judge; no comparison plays this seed" in out
    assert (folder / "tune.db").exists()
    (entry,) = strict(folder / "o.json")["tuned"]
    assert (entry["id"], entry["policy"], entry["parameters"]) == (ID, "queue-delay/either", SMALL)
    assert entry["options"] == entry["best"] == {"x": 2, "y": "b"}
    assert (entry["count"], len(entry["candidates"]), entry["seed"]) == (9, 9, VALIDATION_SEED)
    assert entry["low"] < entry["difference"] < entry["high"] < 0
    assert entry["mean"] - entry["default_mean"] == pytest.approx(entry["difference"])

    compare = ["compare", ID, "--tasks", "60", "--servers", "3", "--policies", "either,dot-exec"]
    compare += ["--plot", "none"]
    assert cli.main([*compare, "--episodes", "3", "--tuned", "o.json", "--json", "c.json"]) == 0
    assert "tuned: either x=2 y=b, found on these parameters" in capsys.readouterr().out
    report = strict(folder / "c.json")
    assert report["tuned"] == {"either": {"x": 2, "y": "b"}}
    tuned, rival = (row["mean"] for row in report["summary"])
    assert tuned == rival, "with these options it is dot-exec"
    assert cli.main([*compare, "--tuned", "o.json", "--option", "either.x=0", "--json", "c.json"]) == 0
    assert strict(folder / "c.json")["manifest"]["options"] == {"either": {"x": 0, "y": "b"}}


def test_numbers_that_look_alike_are_different_candidates(either) -> None:
    found = tune(
        ID, "either", 2, parameters=SMALL, candidates={"z": [1.0000001, 2], "x": [0], "y": ["a"]}, n_jobs=1
    )
    assert [row["options"] for row in found.candidates] == [{}, {"z": 1.0000001}, {"z": 2}], "all are fcfs"


def test_the_help_shows_the_parameters_of_the_id(capsys) -> None:
    assert cli.main(["tune", "QueueDelay-v0", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--episodes" in out and "--servers" in out and "--clairvoyant" not in out


def test_sweeps_take_tuned_options(either, folder) -> None:
    entry = {"id": ID, "policy": "queue-delay/either", "parameters": {}, "options": {"x": 2, "y": "b"}}
    (folder / "o.json").write_text(json.dumps({"tuned": [entry]}))
    experiment = {"id": ID, "parameters": SMALL, "tuned": "o.json"}
    experiment |= {"policies": {"mine": "either", "its own": "either", "dot-exec": "dot-exec"}}
    experiment |= {"options": {"its own": {"x": 0}}}
    data = {"name": "test", "seeds": [3], "episodes": 3, "experiments": [experiment]}
    assert run_sweep(make_spec(data), "s.db", n_jobs=1).failed == []
    frame = ResultsStore("s.db").frame(metrics=["mean_delay"])
    means = frame.groupby("policy").value.mean()
    assert means["mine"] == means["dot-exec"] < means["its own"]
    data["experiments"] = [{"id": ID, "parameters": SMALL, "tuned": 3}]
    with pytest.raises(InvalidParameter, match="tuned: must be 'shipped' or a path, got 3"):
        make_spec(data)
    default = {"id": ID, "parameters": SMALL, "tuned": "shipped"}
    assert run_sweep(make_spec(data | {"experiments": [default]}), "d.db", n_jobs=1).failed == []
    assert set(ResultsStore("d.db").frame().policy) == set(get_problem(ID).ids[ID].policies)


def test_files_that_are_none_of_these(folder) -> None:
    for text, message in table(__file__, "test_files_that_are_none_of_these"):
        (folder / "o.json").write_text(text)
        with pytest.raises(InvalidParameter, match=message):
            read_tuned("o.json")
    with pytest.raises(OSError, match="no.json"):
        read_tuned("no.json")
    entry = {"id": ID, "policy": "queue-delay/bf", "parameters": {}, "options": {"q": 1}}
    (folder / "o.json").write_text(json.dumps({"tuned": [entry]}))
    assert find_tuned(ID, ["fcfs"], "o.json") == {}
    for id, policies, message in (
        (ID, ["bf"], "unknown option of queue-delay/bf 'q'"),
        (ID, "bf", "unknown policy 'b'; did you mean 'bf'"),
        ("queue-delay", ["bf"], f"unknown environment id 'queue-delay'; known: {ID}"),
    ):
        with pytest.raises(UnknownName, match=message):
            find_tuned(id, policies, "o.json")


def test_the_setting_decides_between_entries(folder) -> None:
    entries = [
        {"id": ID, "policy": "queue-delay/bf", "parameters": parameters, "options": {"p": p}}
        for parameters, p in (({}, 4.0), ({"tasks": 30}, 3.0))
    ]
    (folder / "o.json").write_text(json.dumps({"tuned": entries}))
    for parameters, p in ((None, 4.0), ({}, 4.0), ({"tasks": 30}, 3.0), ({"tasks": 40}, 4.0)):
        assert tuned_options(ID, ["bf"], source="o.json", parameters=parameters) == {"bf": {"p": p}}


def test_the_shipped_options_are_of_the_candidates_that_are_declared() -> None:
    """Else run python docs/tuned.py."""
    entries = read_tuned()
    assert {entry["id"] for entry in entries} == {
        f"schedgym/{name}-v0"
        for name in "FlowtimePacking GeoAssign GeoFair ParallelJCT PartialValue QueueDelay".split()
    }
    for entry in entries:
        spec = get_policy_spec(entry["policy"])
        where = f"{entry['id']}, {entry['policy']}"
        declared = {name: [spec.options()[name], *values] for name, values in spec.open_options().items()}
        tried = {name: list(map(_plain, values)) for name, values in entry["tried"].items()}
        wanted = {name: list(dict.fromkeys(values)) for name, values in declared.items()}
        assert tried == wanted, where
        make_policy(entry["policy"], **entry["options"])
        assert entry["options"] in ({}, {name: _plain(value) for name, value in entry["best"].items()}), where
        assert entry["seed"] == VALIDATION_SEED
        if entry["options"]:
            better = entry["low"] > 0 if entry["better"] == "max" else entry["high"] < 0
            assert better, where


def _plain(value):
    return tuple(value) if isinstance(value, list) else value


def test_candidates_are_of_options_that_are_there() -> None:
    with pytest.raises(ValueError, match="candidates of an option that it does not have: 'no'"):
        register_policy("queue-delay/wrong", source="a test", candidates={"no": (1,)})(type("Wrong", (), {}))
    for spec in list_policies():
        for name, values in spec.open_options().items():
            for value in values:
                make_policy(spec.name, **{name: value})
