"""evaluate: pairing, equal results for any number of processes, and refusing to report what is wrong."""

import itertools

import numpy as np
import pytest

import schedgym
from schedgym.agents.agent_policy import make_agent
from schedgym.baselines.queue_delay.scheme import SchemePolicy
from schedgym.core import policy as registry
from schedgym.core.policy import list_policies, make_policy, register_policy
from schedgym.errors import InvalidAction, InvalidParameter, InvalidWorkload, UnknownName
from schedgym.evaluation import canvas, compare, episodes, evaluate, plot, plot_comparison
from schedgym.evaluation.figures import formulas
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.pictures import axis_of
from schedgym.evaluation.standings import Entry, board_of
from schedgym.evaluation.sweeps import make_spec, run_sweep
from schedgym.problems.queue_delay import bounds
from schedgym.problems.queue_delay.workload import generate, make_source, make_workload
from tests.long import long, some
from tests.tables import table

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 40, "servers": 3}


def values(frame, metric, policy):
    rows = frame[(frame["metric"] == metric) & (frame["policy"] == policy)]
    return rows.sort_values("episode")["value"].tolist()


def test_the_frame_is_tidy_and_complete():
    frame = evaluate(ID, ["bf-exec", "queue-delay/fcfs"], 3, 5, parameters=SMALL)
    assert list(frame.columns) == ["policy", "episode", "seed", "metric", "value"]
    assert set(frame["policy"]) == {"bf-exec", "fcfs"}
    metrics = {metric.name for metric in schedgym.get_problem(ID).metrics}
    assert set(frame["metric"]) == metrics | {"truncated", "bound", "gap"}
    assert not frame.duplicated(["policy", "episode", "metric"]).any()
    assert len(frame) == 2 * 3 * (len(metrics) + 3)
    assert set(frame["seed"]) == {5}
    assert np.isfinite(frame["value"]).all()


def test_every_policy_meets_the_generators_workloads():
    frame = evaluate(ID, ["bf-exec", "fcfs"], 3, 7, parameters=SMALL)
    parameters = schedgym.get_problem(ID).parameters.build(**SMALL)
    own = [generate(7, e, make_source(parameters)) for e in range(3)]
    expected = [bounds.lower_bound(workload) for workload in own]
    for policy in ("bf-exec", "fcfs"):
        assert values(frame, "bound", policy) == expected
        delays = np.array(values(frame, "mean_delay", policy))
        assert np.allclose(values(frame, "gap", policy), delays - expected, rtol=0, atol=0)
    again = evaluate(ID, ["bf-exec", "fcfs"], workloads=own)
    for policy in ("bf-exec", "fcfs"):
        assert values(again, "mean_delay", policy) == values(frame, "mean_delay", policy)


def test_the_bound_is_computed_once_per_workload(monkeypatch):
    calls = []
    monkeypatch.setattr(bounds, "lower_bound", lambda *given: calls.append(given) or 0.0)
    evaluate(ID, ["bf-exec", "fcfs", "ff-all"], 4, parameters=SMALL)
    assert len(calls) == 4
    assert all(parameters.tasks == SMALL["tasks"] for _, parameters in calls)


def test_the_result_does_not_depend_on_the_number_of_processes():
    """Workloads of other sizes go to other processes, which leave the policies as they were given."""
    best = schedgym.make_policy("queue-delay/bf-exec")
    policies, before = {"a": "rf-all", "b": "rf-all", "best": best}, set(vars(best))
    sizes = (schedgym.get_problem(ID).parameters.build(tasks=tasks, servers=3) for tasks in (20, 40, 60))
    how = {"seed": 3, "workloads": [generate(3, e, make_source(size)) for e, size in enumerate(sizes)]}
    two = evaluate(ID, policies, **how, n_jobs=2)
    assert set(vars(best)) == before
    one = evaluate(ID, policies, **how)
    assert one.equals(two)
    # the random numbers belong to the label: two random policies differ
    assert values(one, "mean_delay", "a") != values(one, "mean_delay", "b")
    alone = evaluate(ID, {"b": "rf-all"}, **how)
    assert values(alone, "mean_delay", "b") == values(one, "mean_delay", "b")


def test_workloads_of_different_sizes():
    small = make_workload([(0, 10, 1, 1), (0, 2, 1, 1)], [(1, 1)])
    large = make_workload([(0, 5, 0.9, 0.1), (0, 5, 0.1, 0.9), (0, 1, 1, 1)], [(1, 1), (0.5, 0.5)])
    frame = evaluate(ID, "bf-exec", workloads=[small, large])
    assert values(frame, "mean_delay", "bf-exec") == [5.0, 5.0 / 3]
    with pytest.raises(InvalidParameter, match="more than the 2 workloads"):
        evaluate(ID, "bf-exec", 3, workloads=[small, large])
    with pytest.raises(InvalidParameter, match=r"workloads\[1\]"):
        evaluate(ID, "bf-exec", workloads=[small, "w.json"])


def test_a_sweep_has_a_column_per_parameter():
    frame = compare(
        ID, "bf-exec", {"servers": [2, 3], "load": [None, 0.9]}, 2, parameters={"tasks": 20}
    ).frame
    assert list(frame.columns)[:3] == ["servers", "load", "policy"]
    assert len(frame.drop_duplicates(["servers", "load"])) == 4
    single = evaluate(ID, "bf-exec", 2, parameters={"tasks": 20, "servers": 3, "load": 0.9})
    rows = frame[(frame["servers"] == 3) & (frame["load"] == 0.9)]
    assert rows["value"].tolist() == single["value"].tolist()


def test_a_users_window_overrides_the_baselines():
    narrow = evaluate(ID, "bf-exec", 3, parameters={"tasks": 150, "servers": 2, "window": 4})
    wide = evaluate(ID, "bf-exec", 3, parameters={"tasks": 150, "servers": 2})
    assert values(narrow, "mean_delay", "bf-exec") != values(wide, "mean_delay", "bf-exec")


def test_options_reach_the_policy():
    kwargs = {"episodes": 2, "parameters": {"tasks": 100, "servers": 2}}
    frame = evaluate(
        ID,
        {"plain": "ffd-nb", "block": "ffd-nb"},
        options={"block": {"blocking": True}},
        **kwargs,
    )
    assert values(frame, "mean_delay", "plain") != values(frame, "mean_delay", "block")
    with pytest.raises(UnknownName, match="ffd-nb"):
        evaluate(ID, ["ffd-nb"], options={"ffd-bn": {"blocking": True}}, **kwargs)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        *(
            (arguments, getattr(schedgym, error), message)
            for arguments, error, message in table(__file__, "REFUSED")
        ),
        ((print,), InvalidParameter, r"an object with the methods reset\(.* got the \w+ print$"),
        (({"mine": len},), InvalidParameter, "got the builtin_function_or_method len for 'mine'$"),
        (([dict],), InvalidParameter, "got the class dict$"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        evaluate(ID, *arguments)


@pytest.mark.parametrize("name", ["parameters", "options", "grid", "options of 'ff'"])
def test_what_must_be_a_mapping(name):
    given = {"options": {"ff": 3}} if "'" in name else {name: "tasks=20"}
    with pytest.raises(InvalidParameter, match=f"^{name}: must be a mapping of names to values, got "):
        compare(ID, "ff", **given)


def test_a_refused_action_tells_the_view():
    class Scores:
        def reset(self, interface, rng): ...

        def __call__(self, observation):
            return [0.5] * 7

    message = r"^mine, view 'placement': action: .*another view.*\{\"view\": \.\.\.\}.*acting_parameters"
    with pytest.raises(InvalidAction, match=message):
        evaluate(ID, {"mine": Scores()}, 1, parameters=SMALL)


@pytest.mark.parametrize("change", [lambda given: {}, lambda given: {**given, "arrival_rate": 1.0}])
def test_a_policy_plays_the_problem_that_its_rivals_play(change):
    mine = make_policy("queue-delay/fcfs")
    mine.acting_parameters = lambda id, given: {"view": "placement", **change(given)}
    with pytest.raises(InvalidParameter, match="a policy may set action_mask, .*, and must keep all else"):
        evaluate(ID, {"mine": mine, "ff": "ff"}, 1, parameters=SMALL)


def test_bad_environments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'paramters'"):
        evaluate(ID, "ff", paramters={"servers": 3})
    with pytest.raises(InvalidParameter, match="view 'rule'"):
        evaluate(ID, "rf", parameters={"view": "rule"})
    with pytest.raises(InvalidParameter, match="load: a value is there twice"):
        compare(ID, "ff", {"servers": [2, 3], "load": [None, 1, 1.0]}, 1)


def test_rewards_that_do_not_sum_to_the_objective_are_not_reported(monkeypatch):
    step = schedgym.envs.SchedulingEnv.step

    def wrong(self, action):
        observation, reward, *rest = step(self, action)
        return observation, reward * (1 + 1e-6), *rest

    monkeypatch.setattr(schedgym.envs.SchedulingEnv, "step", wrong)
    with pytest.raises(RuntimeError, match="the rewards sum to"):
        evaluate(ID, "fcfs", 2, parameters={"tasks": 60, "servers": 2})


def test_an_objective_below_its_bound_is_not_reported(monkeypatch):
    monkeypatch.setattr(bounds, "lower_bound", lambda *_: 1e9)
    with pytest.raises(RuntimeError, match="beats the bound"):
        evaluate(ID, "fcfs", 2, parameters=SMALL)


def test_a_tiny_delay_late_on_the_clock_is_no_error():
    tasks = [(0, 1.0, 1, 1), (1e9, 1.0, 1, 1), (1e9 + 0.999, 1.0, 1, 1)]
    frame = evaluate(ID, "bf-exec", workloads=[make_workload(tasks, [(1, 1)])])
    assert values(frame, "mean_delay", "bf-exec")[0] == pytest.approx(0.001 / 3, rel=1e-3)


def test_normalised_rewards_do_not_change_the_metrics():
    plain = evaluate(ID, "fcfs", 2, parameters=SMALL)
    scaled = evaluate(ID, "fcfs", 2, parameters={**SMALL, "normalize": True})
    assert plain.equals(scaled)


def test_a_workload_file_is_one_episode(tmp_path):
    path = tmp_path / "w.json"
    schedgym.save_workload(make_workload([(0, 10, 1, 1), (0, 2, 1, 1)], [(1, 1)]), path)
    frame = evaluate(ID, "bf-exec", parameters={"workload": str(path)})
    assert values(frame, "mean_delay", "bf-exec") == [5.0]
    path.write_text("{}")
    with pytest.raises(InvalidWorkload, match=r"w\.json: problem"):
        evaluate(ID, "bf-exec", parameters={"workload": str(path)})


def test_the_manifest_says_what_was_run():
    manifest = make_manifest(command=["a", "b c"], seeds=[3], parameters={"x": 1}, id=ID)
    assert manifest["command"] == "a 'b c'"
    assert manifest["seeds"] == [3] and manifest["id"] == ID
    assert manifest["versions"]["schedgym"] == schedgym.__version__
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["date"].endswith("+00:00")
    assert manifest["machine"]["cores"] >= 1
    assert manifest["git"] is None or len(manifest["git"]["commit"]) == 40


@pytest.mark.parametrize("grid", some([{"servers": [2, 3], "load": [None, 0.9]}, {}, {"servers": [2, 3, 8]}]))
def test_the_picture_is_not_blank(tmp_path, grid):
    from matplotlib.image import imread

    found = compare(ID, ["bf-exec", "fcfs"], grid, 4, parameters={"tasks": 60})
    path = tmp_path / "p.png"
    plot_comparison(found, path, subtitle="a line")
    image = imread(path)
    assert image.shape[0] > 300 and image.shape[1] > 1000
    inked = (image[..., :3].min(axis=2) < 0.9).mean()
    assert 0.01 < inked < 0.5
    assert [p.name for p in tmp_path.iterdir()] == ["p.png"]


def test_pictures_of_the_extremes(tmp_path):
    found = compare(ID, "fcfs", episodes=1, parameters=SMALL)
    plot_comparison(found, tmp_path / "one.svg")
    idle = compare(ID, ["fcfs", "ff-all"], episodes=3, parameters={"tasks": 5, "servers": 8})
    assert not any(idle.metric(policy, "mean_delay").any() for policy in idle.policies)
    plot_comparison(idle, tmp_path / "zero.pdf")
    assert min((tmp_path / name).stat().st_size for name in ("one.svg", "zero.pdf")) > 1000
    with pytest.raises(InvalidParameter, match="must end in"):
        plot_comparison(found, tmp_path / "p.jpg")
    with pytest.raises(UnknownName, match="reference"):
        plot_comparison(found, tmp_path / "p.png", reference="bf-exec")
    assert not (tmp_path / "p.png").exists()


@long
def test_a_bound_of_zero_does_not_stretch_a_logarithmic_axis():
    parameters = dict(schedgym.get_problem(ID).presets["small"])
    found = compare(ID, ["bf-exec", "dot-exec", "fcfs"], episodes=20, parameters=parameters)
    found.frame.loc[found.frame["metric"] == "bound", "value"] = 0.0
    board = board_of(found, None, None, 0.95)
    panel = plot.means_panel(board, board.settings[0], 0.95)
    assert axis_of(panel, "x").scale == "log" and panel.rows[-1] == "lower bound: 0"
    assert not panel.lines and not any(series.bound for series in panel.series)


FLOW = "schedgym/FlowtimePacking-v0"


def test_ratios_stand_on_a_logarithmic_axis():
    found = compare(FLOW, ["ocorp", "fifo", "tetris"], episodes=6, parameters={"jobs": 20})
    board = board_of(found, None, None, 0.95)
    board.settings[0].entries.append(Entry("gone", np.full((1, 6), np.nan), (), np.full(6, np.nan), {}))
    panel = plot.differences_panel(board, board.settings[0])
    assert axis_of(panel, "x").scale == "log" and panel.x_label == "cost / that of ocorp (less is better)"
    cost = {policy: found.metric(policy, "cost") for policy in found.policies}
    dots = {own.label: own.x for own in panel.series if own.kind == "dots"}
    assert dots == {name: (cost[name] / cost["ocorp"]).tolist() for name in ("fifo", "tetris")}
    swept = compare(FLOW, ["ocorp", "fifo"], {"load": [0.7, 1.1]}, 3, parameters={"jobs": 20})
    board = board_of(swept, None, None, 0.95)
    assert axis_of(plot.sweep_panels(board, "load", board.settings)[1], "y").scale == "log"


def test_values_of_zero_have_differences():
    idle = compare(ID, ["fcfs", "ff-all"], episodes=3, parameters={"tasks": 5, "servers": 8})
    board = board_of(idle, "fcfs", None, 0.95)
    assert "difference to fcfs" in plot.differences_panel(board, board.settings[0]).x_label


def test_a_picture_for_a_column_of_a_paper(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(plot, "save_figure", lambda figure, path: figures.append(figure))
    found = compare(FLOW, ["ocorp", "fifo"], episodes=4, parameters={"jobs": 20})
    plot_comparison(found, tmp_path / "p.pdf", width=3.5, title="")
    (figure,) = figures
    figure.canvas.draw()
    assert figure.get_figwidth() == 3.5 and not figure.texts
    top, bottom = (axes.get_position() for axes in figure.axes)
    assert bottom.y1 < top.y0  # below one another
    assert max(text.get_fontsize() for text in figure.axes[0].get_xticklabels()) < 8
    boxes = [text.get_window_extent() for text in figure.axes[0].get_xticklabels() if text.get_text()]
    boxes = [box for box in boxes if top.x0 <= box.x0 / figure.bbox.width <= top.x1]
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    with pytest.raises(InvalidParameter, match="width"):
        plot_comparison(found, tmp_path / "p.pdf", width=1)


def test_every_policy_has_a_colour_of_its_own():
    colours = [canvas.series_colour(i) for i in range(30)]
    assert len(set(colours)) == 30 and tuple(colours[:7]) == canvas.PALETTE


def test_formulas_are_typeset():
    assert canvas.typeset("slots^2, l_k norm") == r"slots$^{2}$, $\ell_{k}$ norm"
    assert canvas.typeset("$x^2$") == r"\$x$^{2}$\$" and canvas.typeset("plain_l_k") == "plain_l_k"
    assert formulas("cost [slots^k], least l_k norm") == "cost [slotsᵏ], least ℓₖ norm"


@pytest.fixture
def picky(monkeypatch):
    """bf-exec, but only in view pick, in which it is contained."""
    list_policies()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))

    @register_policy("queue-delay/picky", source="test", views=("gone", "pick"))
    class Picky(SchemePolicy):
        def __init__(self) -> None:
            super().__init__("bf-exec")

        def reset(self, interface, rng):
            if interface.view != "pick":
                raise InvalidParameter(f"not in view {interface.view!r}")
            super().reset(interface, rng)


def test_a_policy_acts_in_a_view_of_its_own(picky):
    frame = evaluate(ID, ["picky", "bf-exec"], 3, parameters=SMALL)
    assert values(frame, "mean_delay", "picky") == values(frame, "mean_delay", "bf-exec")
    assert values(frame, "bound", "picky") == values(frame, "bound", "bf-exec")
    assert compare(ID, ["picky", "bf-exec"], episodes=1, parameters=SMALL).views == {"picky": "pick"}
    made = evaluate(ID, [schedgym.make_policy("queue-delay/picky")], 3, parameters=SMALL)
    assert values(made, "mean_delay", "picky") == values(frame, "mean_delay", "picky")
    swept = compare(ID, ["picky", "bf-exec"], {"servers": [2, 3]}, 2, parameters={"tasks": 20})
    assert swept.views == {"picky": "pick"}
    with pytest.raises(InvalidParameter, match="not in view 'placement'"):  # the user's choice holds
        evaluate(ID, "picky", 3, parameters={**SMALL, "view": "placement"})
    chosen = compare(ID, "picky", {"view": ["pick"]}, 2, parameters=SMALL)
    assert chosen.views == {}
    assert values(chosen.frame, "mean_delay", "picky") == values(frame, "mean_delay", "picky")[:2]


def test_a_parameter_of_one_view_is_for_the_policies_that_act_there(tmp_path):
    id, given = "schedgym/SingleJob-v0", {"tasks": 10, "arity": 4, "max_moves": 1}
    few, many = ({**given, "max_moves": count} for count in (1, 100))
    policies = {"planned": "min-min", "agent": make_agent("pretrained", id)}
    found = compare(id, policies, episodes=4, parameters={**few, "fallback": "none"})
    frame = found.frame
    assert found.views == {"agent": "search"}
    assert set(values(frame, "decisions", "agent")) == {1.0}
    assert max(values(evaluate(id, policies, 4, parameters=many), "decisions", "agent")) > 1
    alone = evaluate(id, "min-min", 4, parameters={"tasks": 10, "arity": 4})
    assert values(alone, "jct", "min-min") == values(frame, "jct", "planned")
    assert values(alone, "bound", "min-min") == values(frame, "bound", "agent")
    message = "max_moves: has no effect in the view of any of these policies"
    with pytest.raises(InvalidParameter, match=message):
        evaluate(id, ["min-min", "gsa"], 4, parameters=few)
    with pytest.raises(InvalidParameter, match=message):
        schedgym.record_episode(id, "min-min", tmp_path / "one.gif", parameters=few)
    agents = {"agent": "pretrained"}
    own = {"id": id, "parameters": few, "policies": ["min-min"], "agents": agents}
    spec = {"name": "views", "experiments": [own]}
    assert not run_sweep(make_spec({**spec, "episodes": 2}), tmp_path / "some.db", n_jobs=1).failed
    own.pop("agents")
    with pytest.raises(InvalidParameter, match=message):
        run_sweep(make_spec(spec), tmp_path / "none.db", n_jobs=1)


def test_a_sweep_of_geo_has_one_objective():
    id = "schedgym/GeoFair-v0"
    small = {"jobs": 5, "sites": 3}
    with pytest.raises(InvalidParameter, match="a sweep has one, got fairness, mean_response"):
        compare(id, "fcfs", {"objective": ["response", "fairness"]}, 2, parameters=small)
    for objective, name in (("response", "mean_response"), ("weighted", "weighted_cost")):
        found = compare(id, ["amf", "fcfs"], episodes=2, parameters={**small, "objective": objective})
        assert found.objective.name == name and found.views == {"fcfs": "assignment"}
        frame = found.frame
        bounds = {policy: values(frame, "bound", policy) for policy in ("amf", "fcfs")}
        assert bounds["amf"] == bounds["fcfs"]
        gaps = np.array(values(frame, name, "amf")) - bounds["amf"]
        assert np.array_equal(values(frame, "gap", "amf"), gaps)
    assert compare(id, "amf", episodes=1, parameters=small).objective.name == "fairness"


def test_a_trace_is_read_once_per_view_and_setting(picky, monkeypatch):
    made = []
    original = episodes.make_env
    monkeypatch.setattr(episodes, "make_env", lambda *given: made.append(given) or original(*given))
    evaluate(ID, ["picky", "bf-exec", "fcfs"], 3, parameters=SMALL)
    assert len(made) == 2
    made.clear()
    compare(ID, ["bf-exec", "picky"], {"servers": [2, 3]}, 2, parameters={"tasks": 20})
    assert len(made) == 8  # each setting is looked at once before all runs


def test_what_only_compare_takes_is_refused_by_evaluate():
    for function, name in ((evaluate, "observe"), (evaluate, "engine"), (compare, "observed")):
        with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected.* '{name}'"):
            function(ID, "fcfs", episodes=1, parameters=SMALL, **{name: None})
