"""The results store: what goes in comes out, nothing twice, joined with its bounds; and what it refuses."""

import sqlite3
import threading

import numpy as np
import pytest

from schedgym.documents import canonical
from schedgym.errors import InvalidStore, UnknownName
from schedgym.evaluation.episodes import BOUNDS
from schedgym.evaluation.export import leaderboard_frame
from schedgym.evaluation.standings import read_boards
from schedgym.evaluation.store import Line, ResultsStore, Setting, Unit
from schedgym.papers.xu2021.curves import Sizes
from tests.evaluations import evaluation_of

QUEUE, VALUE = "schedgym/QueueDelay-v0", "schedgym/PartialValue-v0"


def setting(code="1", id=QUEUE, **parameters):
    if id == QUEUE:
        return Setting("queue-delay", id, parameters, "mean_delay", "min", code)
    return Setting("partial-value", id, parameters, "value", "max", code)


def line(where, policy, training_seed=None, **options):
    text = canonical([where.id, dict(where.parameters), where.code, policy, training_seed, options])
    return Line(where, policy, options, training_seed, text)


def add(store, who, values, seed=0, first=0, **more):
    """Store a unit of one metric (the bounds: without slack) per episode."""
    values = np.array(values, dtype=float)
    unit = Unit(who, seed, first, len(values))
    if who.policy is None:
        return store.add(unit, BOUNDS, np.column_stack([values, np.zeros(len(values))]), **more)
    table = np.column_stack([values, np.zeros(len(values))])
    return store.add(unit, [who.setting.objective, "truncated"], table, **more)


def leaderboard(store, code=None):
    return leaderboard_frame(read_boards(store, code=code))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


def test_what_goes_in_comes_out(path):
    where = setting(tasks=40)
    with ResultsStore(path, "w") as store:
        add(store, line(where, None), [1.0, 2.0])
        add(store, line(where, "fcfs"), [4.0, 5.0], policy_seconds=0.5, seconds=2.0)
        add(store, line(where, "bf-exec"), [2.0, 3.0], seed=0)
        add(store, line(where, None), [3.0], seed=9)
        add(store, line(where, "bf-exec"), [3.0], seed=9)
        store.add_manifest({"command": "x"})
    store = ResultsStore(path)
    frame = store.frame()
    assert list(frame.columns) == ["id", "policy", "episode", "seed", "metric", "value"]
    rows = frame[frame["policy"] == "bf-exec"].set_index(["seed", "episode", "metric"])["value"].to_dict()
    assert rows == {
        **{(0, 0, "mean_delay"): 2.0, (0, 0, "truncated"): 0.0, (0, 0, "bound"): 1.0, (0, 0, "gap"): 1.0},
        **{(0, 1, "mean_delay"): 3.0, (0, 1, "truncated"): 0.0, (0, 1, "bound"): 2.0, (0, 1, "gap"): 1.0},
        **{(9, 0, "mean_delay"): 3.0, (9, 0, "truncated"): 0.0, (9, 0, "bound"): 3.0, (9, 0, "gap"): 0.0},
    }
    board = leaderboard(store).set_index("policy")
    assert board.loc["bf-exec", ["episodes", "mean", "bound", "gap"]].tolist() == [
        *(3, pytest.approx(8 / 3), 2.0, pytest.approx(2 / 3))
    ]
    assert board.loc["fcfs", ["episodes", "mean", "bound", "seconds"]].tolist() == [2, 4.5, 1.5, 0.25]
    assert store.manifests() == [{"command": "x"}]
    assert store.settings() == [where]
    assert store.codes() == ["1"]
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name], "one file is left"


def test_a_frame_has_a_column_for_what_differs(path):
    with ResultsStore(path, "w") as store:
        for servers in (3, None):
            for policy, values in ((None, [1, 1, 1]), ("fcfs", [4, 6, 5]), ("bf-exec", [2, 3, 2])):
                add(store, line(setting(servers=servers, tasks=9), policy), values)
    frame = ResultsStore(path).frame(QUEUE)
    assert list(frame.columns) == ["id", "servers", "policy", "episode", "seed", "metric", "value"]
    summary = evaluation_of(frame, swept=("servers",)).summary()
    assert summary["mean"].tolist() == [5.0, 7 / 3, 5.0, 7 / 3]
    with ResultsStore(path, "w") as store:  # what differs may be lists
        add(store, line(setting(servers=[1, 2], tasks=9), "fcfs"), [4])
    assert [1, 2] in ResultsStore(path).frame(QUEUE)["servers"].tolist()


def test_bounds_and_units_meet_in_any_order_and_any_pieces(path):
    where = setting()
    with ResultsStore(path, "w") as store:
        add(store, line(where, "a"), [5.0, 6.0, 7.0, 8.0])
        add(store, line(where, None), [1.0], first=3)
        assert np.isnan(leaderboard(store)["bound"]).all()
        add(store, line(where, None), [2.0, 3.0, 4.0], first=0)
        add(store, line(where, "b"), [6.0, 7.0], first=1)
        board = leaderboard(store).set_index("policy")
    assert board["bound"].to_dict() == {"a": 2.5, "b": 3.5}
    assert board["gap"].to_dict() == {"a": 4.0, "b": 3.0}
    frame = ResultsStore(path).frame(metrics=["gap"])
    assert frame["value"].tolist() == [3.0, 3.0, 3.0, 7.0, 3.0, 3.0]


@pytest.mark.parametrize("bound_first", [True, False])
@pytest.mark.parametrize(("id", "values", "bounds"), [(QUEUE, [2, 1], [1, 1.5]), (VALUE, [2, 4], [2, 3])])
def test_what_beats_its_bound_has_failed(path, id, values, bounds, bound_first):
    where = setting(id=id)
    pieces = [(line(where, None), bounds), (line(where, "a"), values), (line(where, "ok"), [bounds[0]])]
    if not bound_first:
        pieces = [*pieces[1:], pieces[0]]
    with ResultsStore(path, "w") as store:
        said = [text for who, numbers in pieces for text in add(store, who, numbers)]
        assert len(said) == 1 and "a, seed 0, episode 1" in said[0] and "beats the bound" in said[0]
        (failed,) = store.failed()
        assert failed["policy"] == "a" and "beats the bound" in failed["error"]
        assert leaderboard(store)["policy"].tolist() == ["ok"]
        assert set(store.frame()["policy"]) == {"ok"}


def test_without_a_bound_there_is_no_gap(path):
    with ResultsStore(path, "w") as store:
        add(store, line(setting(), None), [np.nan, 1.0])
        add(store, line(setting(), "a"), [5.0, 6.0])
        assert np.isnan(leaderboard(store)["gap"]).all()
        frame = store.frame(metrics=["gap", "bound"])
    assert frame[["episode", "metric", "value"]].values.tolist() == [[1, "bound", 1.0], [1, "gap", 5.0]]


def test_what_observers_return_is_kept(path):
    who = line(setting(), "a")
    sizes = Sizes(*(np.arange(2) for _ in Sizes._fields))
    values = {"curve": np.arange(3.0), "share": np.float64(0.25), "more": [sizes, "text", None]}
    with ResultsStore(path, "w") as store:
        add(store, who, [np.nan], first=4, seconds=2.0, policy_seconds=0.5, observed=values)
        (found,) = store.results(who, 0)
        assert list(store.results(who, 1)) == []
        assert (found.episode, found.values, found.seconds, found.cpu) == (4, {"truncated": 0.0}, 0.5, 2.0)
        seen = found.observed
        assert seen["curve"].tolist() == [0.0, 1.0, 2.0] and seen["share"] == 0.25
        assert isinstance(seen["more"][0], Sizes) and seen["more"][0].mean.tolist() == [0, 1]
        assert seen["more"][1:] == ["text", None]
        run = store._connection.execute
        run("UPDATE outcomes SET observed = replace(observed, 'schedgym.papers.xu2021.curves', 'os')")
        with pytest.raises(InvalidStore, match="its checksum does not fit"):
            list(store.results(who, 0))
        store._seal(1)
        with pytest.raises(InvalidStore, match=r"damaged: os\.Sizes is not a named tuple of schedgym"):
            list(store.results(who, 0))


def test_no_episode_is_stored_twice(path):
    who = line(setting(), "a")
    with ResultsStore(path, "w") as store:
        add(store, who, [1.0, 2.0, 3.0], first=2)
        for first, count in ((2, 3), (0, 3), (4, 1), (0, 9)):
            with pytest.raises(InvalidStore, match="already"):
                add(store, who, [0.0] * count, first=first)
        with pytest.raises(InvalidStore, match="already"):
            store.fail(Unit(who, 0, 2, 3), "no")
        add(store, who, [0.0, 0.5], first=0)
        add(store, who, [9.0], first=5)
        assert store.frame(metrics=["mean_delay"])["value"].tolist() == [0.0, 0.5, 1.0, 2.0, 3.0, 9.0]
        assert store.spans(who) == {0: [(0, 2), (2, 3), (5, 1)]}


def test_a_failed_unit_makes_way_for_a_finished_one(path):
    who = line(setting(), "a")
    with ResultsStore(path, "w") as store:
        store.fail(Unit(who, 0, 0, 4), "Traceback 1")
        store.fail(Unit(who, 0, 0, 4), "Traceback 2")
        store.fail(Unit(who, 1, 0, 4), "Traceback 3")
        assert [row["error"] for row in store.failed()] == ["Traceback 2", "Traceback 3"]
        assert store.spans(who) == {} and store.spans(who, "failed") == {0: [(0, 4)], 1: [(0, 4)]}
        assert read_boards(store) == [] and store.frame().empty
        add(store, who, [1.0, 1.0])
        assert [row["seed"] for row in store.failed()] == [1]


def test_versions_of_the_code_are_kept_apart(path):
    with ResultsStore(path, "w") as store:
        for code, value in (("old", 1.0), ("new", 2.0)):
            add(store, line(setting(code), "a"), [value])
        assert store.codes() == ["new", "old"]
        assert leaderboard(store)["mean"].tolist() == [2.0]
        assert leaderboard(store, "old")["mean"].tolist() == [1.0]
        assert store.frame(code="old", metrics=["mean_delay"])["value"].tolist() == [1.0]
        with pytest.raises(UnknownName, match="did you mean 'old'"):
            leaderboard(store, "olt")


def test_trainings_of_one_agent_share_a_label(path):
    with ResultsStore(path, "w") as store:
        for seed in (3, 4):
            add(store, line(setting(), "ppo", seed), [seed, seed + 1.0])
        add(store, line(setting(), "fcfs"), [9.0, 9.0])
        frame = store.frame(metrics=["mean_delay"])
        board = leaderboard(store).set_index("policy")
    assert frame["training_seed"].tolist()[:4] == [3, 3, 4, 4] and frame["training_seed"].isna().sum() == 2
    assert board.loc["ppo", ["trainings", "episodes", "mean"]].tolist() == [2, 2, 4.0]


def test_a_label_means_one_thing(path):
    one, other = line(setting(), "a", beta=1), line(setting(), "a", beta=2)
    with ResultsStore(path, "w") as store:
        add(store, one, [1.0])
        with pytest.raises(InvalidStore, match="another label"):
            add(store, other, [1.0], seed=5)
        with pytest.raises(InvalidStore, match="another label"):
            store.spans(other)
        add(store, one, [1.0], seed=5)


def test_names_that_are_not_there(path):
    with ResultsStore(path, "w") as store:
        add(store, line(setting(), "a"), [1.0])
        with pytest.raises(UnknownName, match="metric 'mean_dely'; did you mean"):
            store.frame(metrics=["mean_dely"])
        with pytest.raises(UnknownName, match="environment id"):
            store.frame(VALUE)
        with pytest.raises(ValueError, match="must be"):
            store.add(Unit(line(setting(), "b"), 0, 0, 2), ["mean_delay"], np.zeros((1, 1)))


def test_one_writes_and_others_read(path):
    with ResultsStore(path, "w") as store:
        add(store, line(setting(), "a"), [1.0])
        with pytest.raises(InvalidStore, match="another process is writing"):
            ResultsStore(path, "w")
        with ResultsStore(path) as reader:
            assert len(leaderboard(reader)) == 1
            add(store, line(setting(), "b"), [1.0])
            assert len(leaderboard(reader)) == 2
            with pytest.raises(InvalidStore, match="cannot be read: attempt to write a readonly database"):
                add(reader, line(setting(), "c"), [1.0])
    with ResultsStore(path, "w") as store:
        add(store, line(setting(), "c"), [1.0])


def test_another_name_of_a_store_is_no_other_store(path, tmp_path):
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.db"
    with ResultsStore(path, "w"):
        link.symlink_to(path)
        with pytest.raises(InvalidStore, match="link.db: another process is writing to it"):
            ResultsStore(link, "w")
    with ResultsStore(link, "w"), pytest.raises(InvalidStore, match="another process"):
        ResultsStore(path, "w")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["link.db", "other", "results.db"]


def test_the_lock_is_one_persons_at_a_time(path):
    """Writers that come and go at once: each store is alone while it is open."""
    inside, most = [], []

    def write():
        for _ in range(30):
            try:
                with ResultsStore(path, "w"):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except InvalidStore as error:
                assert "another process is writing" in str(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


def test_sql_sees_all_of_it(path):
    with ResultsStore(path, "w") as store:
        add(store, line(setting(tasks=4), None), [1.0])
        add(store, line(setting(tasks=4), "a", 7), [3.0], seed=2)
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    rows = [dict(row) for row in connection.execute("SELECT * FROM units ORDER BY policy")]
    assert [row["policy"] for row in rows] == [None, "a"]
    assert rows[1] | {"finished": 0, "key": ""} == {
        **{"key": "", "problem": "queue-delay", "id": QUEUE, "setting": '{"tasks":4}', "policy": "a"},
        **{"options": "{}", "seed": 2, "first": 0, "episodes": 1, "status": "done"},
        **{"objective": "mean_delay", "training_seed": 7, "error": None, "finished": 0},
        **{"better": "min", "mean": 3.0, "bound": None, "seconds": 0.0, "policy_seconds": 0.0, "code": "1"},
    }
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
