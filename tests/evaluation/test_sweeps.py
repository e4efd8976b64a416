"""Sweeps: the same values as evaluate, run once, resumed, and specifications that are wrong."""

import textwrap

import numpy as np
import pytest

from schedgym.core.problem import get_problem
from schedgym.core.workload_files import save_workload
from schedgym.errors import InvalidParameter, InvalidStore, SchedgymError, UnknownName
from schedgym.evaluation import compare, engines, episodes, evaluate, plan, sweeps
from schedgym.evaluation.standings import read_boards
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import Experiment, SweepSpec, load_spec, make_spec, run_sweep
from schedgym.problems.queue_delay import bounds
from schedgym.problems.queue_delay.workload import generate, make_source
from tests.long import long
from tests.tables import entry, table

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": [20, 40], "servers": 3}


def spec(**changes):
    experiment = {"id": ID, "parameters": SMALL, "policies": ["bf-exec", "fcfs"]}
    experiment |= changes.pop("experiment", {})
    return make_spec({"name": "test", "seeds": [3, 5], "episodes": 4, "experiments": [experiment], **changes})


def values(path, **given):
    frame = ResultsStore(path).frame(**given)
    columns = [name for name in frame.columns if name not in ("value", "id")]
    return dict(zip(map(tuple, frame[columns].values.tolist()), frame["value"], strict=True))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


@pytest.mark.parametrize("chunk", [None, 3])
def test_a_sweep_gives_what_evaluate_gives(path, chunk):
    result = run_sweep(spec(chunk=chunk), path, n_jobs=1)
    assert (result.done, result.skipped, result.failed) == (12 * (1 if chunk is None else 2), 0, [])
    stored = values(path)
    for seed in (3, 5):
        given = {"servers": 3}
        frame = compare(ID, ["bf-exec", "fcfs"], {"tasks": [20, 40]}, 4, seed, parameters=given).frame
        for row in frame.itertuples():
            assert stored.pop((row.tasks, row.policy, row.episode, row.seed, row.metric)) == row.value
    assert stored == {}


def test_policies_with_options_labels_and_views_of_their_own(path):
    own = {"policies": {"mine": "ff-all", "fcfs": "fcfs"}, "parameters": {"tasks": 30, "servers": 3}}
    run_sweep(spec(experiment=own), path, n_jobs=1)
    frame = evaluate(ID, own["policies"], 4, 3, parameters=own["parameters"])
    stored = values(path)
    for row in frame.itertuples():
        assert stored[row.policy, row.episode, row.seed, row.metric] == row.value
    options = spec(experiment={**own, "options": {"mine": {"no_such": 1}}})
    with pytest.raises(UnknownName, match=r"experiments\[0\]"):
        run_sweep(options, path, n_jobs=1)


def test_nothing_is_run_twice_and_more_episodes_only_where_they_are_missing(path, monkeypatch):
    played = []
    original = episodes.play

    def play(env, policy, *, seed, episode, label):
        played.append((label, seed, episode))
        return original(env, policy, seed=seed, episode=episode, label=label)

    monkeypatch.setattr(episodes, "play", play)
    run_sweep(spec(episodes=2), path, n_jobs=1)
    assert len(played) == 2 * 2 * 2 * 2
    played.clear()
    again = run_sweep(spec(episodes=2), path, n_jobs=1)
    assert (again.done, again.skipped, played) == (0, 12, [])
    run_sweep(spec(episodes=4, chunk=3, seeds=[3]), path, n_jobs=1)
    assert sorted(played) == sorted([(label, 3, e) for label in ("bf-exec", "fcfs") for e in (2, 3)] * 2)
    played.clear()
    run_sweep(spec(episodes=4), path, n_jobs=1)
    assert {(seed, episode) for _, seed, episode in played} == {(5, 2), (5, 3)}
    assert len(ResultsStore(path).manifests()) == 3, "a sweep that ran nothing made nothing"
    assert values(path) == values_of_a_fresh(path.with_name("fresh.db"))


def values_of_a_fresh(path):
    run_sweep(spec(), path, n_jobs=1)
    return values(path)


def test_units_of_another_version_of_the_code_run_again(path, monkeypatch):
    """What the version depends on: tests/evaluation/test_plan.py."""
    assert run_sweep(spec(), path, n_jobs=1).done == 12
    for module in (plan, episodes, sweeps):
        monkeypatch.setattr(module, "code_version", lambda: "another")
    again = run_sweep(spec(), path, n_jobs=1)
    assert (again.done, again.skipped, again.failed) == (12, 0, [])


def test_what_the_key_depends_on(path, monkeypatch, tmp_path):
    parameters = {"tasks": 20, "servers": 3}
    base = spec(experiment={"parameters": parameters, "policies": ["fcfs"]}, seeds=[3])

    def keys(given):
        (lines,) = sweeps._plan(given)
        return {line.policy: line.digest for line in lines}

    same = spec(experiment={"parameters": dict(reversed(parameters.items())), "policies": ["fcfs"]})
    assert keys(base) == keys(same)
    other = keys(spec(experiment={"parameters": {**parameters, "servers": 4}, "policies": ["fcfs"]}))
    assert not set(other.values()) & set(keys(base).values())
    monkeypatch.setattr(plan, "code_version", lambda: "another")
    assert not set(keys(base).values()) & set(other.values())
    monkeypatch.undo()
    files = {}
    for seed in (1, 2):
        target = tmp_path / "w.npz"
        complete = get_problem(ID).parameters.build(**parameters)
        save_workload(generate(seed, 0, make_source(complete)), target)
        given = spec(experiment={"parameters": {"workload": str(target)}, "policies": ["fcfs"]})
        files[seed] = keys(given)
        if seed == 1:
            run_sweep(given, path, n_jobs=1)
    assert files[1]["fcfs"] != files[2]["fcfs"] and files[1][None] != files[2][None]
    with pytest.raises(InvalidStore, match="another label"):
        run_sweep(given, path, n_jobs=1)


def test_a_unit_that_fails_is_told_and_retried(path, monkeypatch):
    original = bounds.lower_bound

    def broken(workload, parameters):
        if len(workload.jobs["arrival"]) == 40:
            raise ArithmeticError("no bound today")
        return original(workload, parameters)

    monkeypatch.setattr(bounds, "lower_bound", broken)
    first = run_sweep(spec(), path, n_jobs=1)
    assert (first.done, len(first.failed)) == (10, 2)
    assert {(row["policy"], row["seed"], str(row["setting"])) for row in first.failed} == {
        (None, seed, str({"servers": 3, "tasks": 40})) for seed in (3, 5)
    }
    assert all("ArithmeticError: no bound today" in row["error"] for row in first.failed)
    again = run_sweep(spec(), path, n_jobs=1)
    assert (again.done, again.skipped, len(again.failed)) == (0, 10, 2)
    monkeypatch.undo()
    last = run_sweep(spec(), path, n_jobs=1, retry_failed=True)
    assert (last.done, last.skipped, last.failed) == (2, 10, [])
    assert len(ResultsStore(path).frame(metrics=["gap"])) == 2 * 2 * 2 * 4


def test_an_objective_that_beats_its_bound_is_a_failure(path, monkeypatch):
    monkeypatch.setattr(bounds, "lower_bound", lambda *given: 1e9)
    result = run_sweep(spec(), path, n_jobs=1)
    assert result.done == 4 and len(result.failed) == 8
    assert all("beats the bound" in row["error"] for row in result.failed)


def test_a_worker_with_other_code_is_a_failure(path, monkeypatch):
    monkeypatch.setattr(episodes, "code_version", lambda: "older")
    result = run_sweep(spec(), path, n_jobs=1)
    assert result.done == 0 and all("older" in row["error"] for row in result.failed)


def test_experiments_share_what_they_have_in_common(path):
    experiment = {"id": ID, "parameters": {"tasks": 20, "servers": [3]}, "policies": ["fcfs"]}
    more = {**experiment, "policies": ["fcfs", "bf-exec"]}
    last = {**experiment, "parameters": {"tasks": [20, 30], "servers": [3]}}
    given = make_spec({"name": "two", "episodes": 2, "experiments": [experiment, more, last, last]})
    assert run_sweep(given, path, n_jobs=1).done == 3 + 2
    assert len(ResultsStore(path).frame(metrics=["mean_delay"])) == 3 * 2


def test_a_label_means_one_thing_in_all_experiments(path):
    one = {"id": ID, "parameters": {"tasks": 20}, "policies": {"a": "fcfs"}}
    given = make_spec({"name": "two", "experiments": [one, {**one, "policies": {"a": "bf-exec"}}]})
    with pytest.raises(InvalidParameter, match=r"experiments\[1\]: a: has other options"):
        run_sweep(given, path, n_jobs=1)
    assert not path.exists()


def test_a_specification_in_python_may_hold_numbers_of_numpy(path):
    experiment = Experiment(
        ID, {"tasks": list(np.arange(20, 22)), "load": np.float64(0.5)}, policies=["fcfs"]
    )
    result = run_sweep(SweepSpec("numpy", [experiment], range(2), 1), path, n_jobs=1)
    assert (result.done, result.failed) == (8, [])
    assert ResultsStore(path).settings()[0].parameters == {"tasks": 20, "load": 0.5}
    for seeds in ([0.5], [True], [2**40], [np.int64(3)]):
        with pytest.raises(InvalidParameter, match=r"seeds\[0\]: must be a whole number from"):
            SweepSpec("bad", [experiment], seeds)
    with pytest.raises(InvalidParameter, match="of class Experiment"):
        SweepSpec("bad", [{"id": ID}])


def test_a_parameter_of_several_parts_is_one_value(path):
    """That of a preset, and one in a list of values."""
    listed = {"tasks": 20, "resources": [["cpu", "disk"], ["cpu", "gpu"]]}
    experiments = [{"id": ID, "parameters": own, "policies": ["fcfs"]} for own in (listed, {"tasks": 20})]
    experiments[1]["preset"] = "gpu-cluster"
    given = make_spec({"name": "parts", "episodes": 1, "experiments": experiments})
    result = run_sweep(given, path, n_jobs=1)
    found = [setting.parameters["resources"] for setting in ResultsStore(path).settings()]
    assert result.failed == [] and sorted(map(len, found)) == [2, 2, 3]


@pytest.mark.parametrize("count", [1, 2])
def test_sweeps_and_comparisons_share_stores(path, count):
    given = {"tasks": 30, "servers": 3}
    plain = evaluate(ID, "fcfs", 3, 3, parameters=given)

    def swept(episodes):
        own = spec(experiment={"policies": ["fcfs"], "parameters": given}, episodes=episodes)
        return run_sweep(own, path, n_jobs=1)

    def compared(episodes):
        with ResultsStore(path, "w") as store:
            return compare(ID, ["fcfs"], None, episodes, 3, parameters=given, store=store)

    swept(count)
    assert compared(count).ran == 0 and compared(3).frame.equals(plain) and swept(3).done == 2
    path.unlink()
    compared(count)
    assert swept(count).skipped == 2 * count and swept(3).skipped == 2 * count + 2
    assert compared(3).frame.equals(plain) and compared(3).ran == 0


def test_a_failure_of_a_comparison_is_stored_until_it_succeeds(path, monkeypatch):
    with ResultsStore(path, "w") as store:
        given = {"parameters": {"tasks": 20}, "store": store}
        with pytest.raises(ZeroDivisionError), monkeypatch.context() as patched:
            patched.setattr(bounds, "lower_bound", lambda *_: 1 / 0)
            compare(ID, ["fcfs"], None, 2, **given)
        (failed,) = store.failed()
        assert (failed["policy"], failed["first"]) == (None, 0)
        assert "ZeroDivisionError" in failed["error"]
        compare(ID, ["fcfs"], None, 2, **given)
        assert store.failed() == []


@long
def test_workers_find_files_at_relative_paths(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    complete = get_problem(ID).parameters.build(tasks=20, servers=3)
    save_workload(generate(0, 0, make_source(complete)), tmp_path / "w.npz")
    given = spec(experiment={"parameters": {"workload": "w.npz"}}, episodes=1, seeds=[0])
    assert run_sweep(given, path, n_jobs=2).failed == []
    assert ResultsStore(path).settings()[0].parameters == {"workload": "w.npz"}


@long
def test_a_format_of_ones_own_is_part_of_what_was_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("at,for,cores\n" + "".join(f"{i},9,1\n" for i in range(40)))
    (tmp_path / "nodes.csv").write_text("cores,memory\n4,8\n")
    format = tmp_path / "mine.yaml"
    format.write_text("name: mine\ncolumns: {submit: at, duration: for, cpus: cores}\n")
    parameters = {"trace": "log.csv", "nodes": "nodes.csv", "trace_format": "mine.yaml"}
    own = {"parameters": {**parameters, "tasks": 20, "servers": 1}, "policies": ["fcfs"]}
    given = spec(experiment=own, episodes=1, seeds=[0])
    assert run_sweep(given, path, n_jobs=2).failed == []
    assert run_sweep(given, path).done == 0
    format.write_text(format.read_text().replace("duration: for", "duration: 2 * `for`"))
    with pytest.raises(InvalidStore, match="run with other options or files"):
        run_sweep(given, path)


def test_a_bar_shows_the_time_left(path, monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(engines, "SLOW", -1.0)
    run_sweep(spec(chunk=1), path, n_jobs=1, progress=True)
    shown = capfd.readouterr().err
    assert "episodes" in shown and "48" in shown and "0:00:0" in shown


def test_the_number_of_processes_changes_nothing(path):
    run_sweep(spec(), path, n_jobs=2)
    assert values(path) == values_of_a_fresh(path.with_name("fresh.db"))


YAML = entry(__file__, "YAML")


def write(tmp_path, text):
    target = tmp_path / "spec.yaml"
    target.write_text(textwrap.dedent(text), encoding="utf-8")
    return target


def test_a_specification_in_yaml_is_the_one_in_python(tmp_path):
    assert load_spec(write(tmp_path, YAML)) == SweepSpec(
        "load",
        [
            Experiment(
                ID,
                {"servers": [4, 8], "load": 0.9},
                "small",
                {"first": "bf-exec", "second": "fcfs"},
                agents={"a": ["one.npz", "two.npz"], "shipped": "pretrained"},
            ),
            Experiment("geo"),
        ],
        [0, 1],
        3,
        2,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [*table(__file__, "test_specifications_that_are_refused"), ("name: " + "a" * 2**18, "longer than")],
)
def test_specifications_that_are_refused(tmp_path, text, message):
    with pytest.raises(SchedgymError, match=message) as caught:
        load_spec(write(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "spec.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("experiment", "message"),
    table(__file__, "test_what_cannot_run_is_refused_before_anything_runs"),
)
def test_what_cannot_run_is_refused_before_anything_runs(path, experiment, message):
    given = spec(experiment=experiment)
    with pytest.raises((SchedgymError, FileNotFoundError), match=message):
        run_sweep(given, path, n_jobs=1)
    assert not path.exists()


def test_agents_keep_their_training_seed(path, tmp_path):
    pytest.importorskip("schedgym.agents.agent_policy", exc_type=ImportError)
    from schedgym.agents.config import make_config
    from schedgym.agents.training import train

    search = {"population": 4, "episodes": 2, "generations": 1, "validate_every": 1, "validation_episodes": 2}
    for seed in (0, 1):
        config = make_config(
            {
                **{"id": "schedgym/QueueDelay-v0", "algorithm": "cma", "view": "placement", "seed": seed},
                **{"parameters": {"window": 16, "tasks": 6}, "search": search},
            }
        )
        train(config, tmp_path / f"{seed}.npz", "test")
    files = [str(tmp_path / "0.npz"), str(tmp_path / "1.npz")]
    own = {
        **{"id": "schedgym/QueueDelay-v0", "parameters": {"tasks": 6}, "policies": ["fcfs"]},
        "agents": {"cma": files},
    }
    result = run_sweep(spec(experiment=own), path, n_jobs=1)
    assert (result.done, result.failed) == (2 * 4, [])
    frame = ResultsStore(path).frame(metrics=["mean_delay", "gap"])
    assert set(frame[frame["policy"] == "cma"]["training_seed"]) == {0, 1}
    assert frame[frame["policy"] == "fcfs"]["training_seed"].isna().all()
    (board,) = read_boards(ResultsStore(path))
    assert {e.policy: e.trainings for e in board.settings[0].entries} == {"fcfs": (), "cma": (0, 1)}
    assert run_sweep(spec(experiment=own), path, n_jobs=1).done == 0
    with pytest.raises(InvalidParameter, match="two are of training seed"):
        run_sweep(spec(experiment={**own, "agents": {"cma": [files[0], files[0]]}}), path, n_jobs=1)
    with pytest.raises(InvalidParameter, match="is a policy, too"):
        run_sweep(spec(experiment={**own, "agents": {"fcfs": files}}), path, n_jobs=1)
    for agents in ({"fcfs": files[0]}, {"cma": files[0]}):
        policies = ["fcfs"] if "cma" in agents else []
        other = {**own, "agents": agents, "policies": policies}
        if "cma" in agents:
            config = make_config({**config.to_dict(), "seed": 0, "search": {**search, "sigma": 1.0}})
            train(config, tmp_path / "0.npz", "test", resume=False)
        with pytest.raises(InvalidStore, match="another label"):
            run_sweep(spec(experiment=other), path, n_jobs=1)
