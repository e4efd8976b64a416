"""Exports hold what the store holds, number by number, in both formats."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from gymnasium.error import DependencyNotInstalled

from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.episodes import BOUNDS
from schedgym.evaluation.export import RESERVED, export, leaderboard_frame
from schedgym.evaluation.standings import read_boards
from schedgym.evaluation.store import Line, ResultsStore, Setting, Unit

QUEUE, VALUE = "schedgym/QueueDelay-v0", "schedgym/PartialValue-v0"
EPISODES = 3


def setting(id, parameters):
    objective, better = ("mean_delay", "min") if id == QUEUE else ("value", "max")
    problem = "queue-delay" if id == QUEUE else "partial-value"
    return Setting(problem, id, parameters, objective, better, "1.0+abc")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Three settings of two ids, policies with commas and quotes in their names, an agent trained twice."""
    path = tmp_path_factory.mktemp("export") / "r.db"
    rng = np.random.default_rng(0)
    with ResultsStore(path, "w") as made:
        for i, (id, parameters) in enumerate(
            [
                (QUEUE, {"servers": 4, "load": 0.5, "workload": None}),
                (QUEUE, {"servers": 8, "load": 1, "workload": "a,b.json"}),
                (VALUE, {"jobs": 5, "rate": "all"}),
            ]
        ):
            own = setting(id, parameters)
            whole = Unit(Line(own, None, {}, None, f"bounds {i}"), 7, 0, EPISODES)
            bound = [0.1, 0.2, 0.3] if id == QUEUE else [90.0, 91.0, 92.0]
            made.add(whole, BOUNDS, np.column_stack([bound, np.zeros(EPISODES)]))
            for policy, trainings in (('a "policy", really', [None]), ("agent", [1, 2]), ("ünï", [None])):
                for training in trainings:
                    options = {"agent": f"file{training}"} if training else {}
                    line = Line(own, policy, options, training, f"{i} {policy} {training}")
                    values = rng.random((EPISODES, 2)) * 50 + 1
                    made.add(Unit(line, 7, 0, EPISODES), [own.objective, "other"], values, policy_seconds=0.3)
        made.add_manifest({"command": "x", "seeds": [7]})
    return path


def read(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_episodes_are_those_of_the_store(store, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"out{suffix}"
    rows = export(store, path)
    table = read(path)
    with ResultsStore(store) as opened:
        expected = opened.frame()
    assert rows == len(table) == len(expected) == 3 * 4 * EPISODES * 4
    keys = ["id", "servers", "load", "policy", "training_seed", "seed", "episode", "metric"]
    for frame in (table, expected):
        for name in keys:
            frame[name] = frame[name].astype(object).where(frame[name].notna(), "none").astype(str)
            frame[name] = frame[name].str.removesuffix(".0")
    ours = table.set_index(keys)["value"].sort_index()
    theirs = expected.set_index(keys)["value"].sort_index()
    assert ours.index.equals(theirs.index) and ours.tolist() == theirs.tolist()  # bit for bit
    assert table.columns[0] == "id" and list(table.columns[-1:]) == ["value"]


def test_parquet_keeps_types_and_the_manifest(store, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(store, tmp_path / "out.parquet")
    table = pd.read_parquet(tmp_path / "out.parquet")
    kinds = {name: str(table[name].dtype) for name in table.columns}
    assert kinds["servers"] == kinds["training_seed"] == kinds["jobs"] == "Int64"
    assert kinds["load"] == "Float64" and kinds["value"] == "float64" and kinds["episode"] == "int64"
    assert set(table["workload"].dropna()) == {"a,b.json"} and set(table["rate"].dropna()) == {"all"}
    metadata = parquet.read_schema(tmp_path / "out.parquet").metadata
    assert metadata[b"schedgym.code"] == b"1.0+abc"
    assert json.loads(metadata[b"schedgym.manifests"]) == [{"command": "x", "seeds": [7]}]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_leaderboard_has_intervals_and_gaps(store, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"out{suffix}"
    assert export(store, path, table="leaderboard") == 9
    table = read(path)
    for name in ("unit", "agent", "rival"):
        table[name] = table[name].astype(object).fillna("")
    with ResultsStore(store) as opened:
        boards, values = read_boards(opened), opened.frame(metrics=["mean_delay", "value"])
    pd.testing.assert_frame_equal(
        table, leaderboard_frame(boards), check_dtype=False, check_exact=True, check_column_type=False
    )
    plain = values.groupby(["id", "servers", "policy"], dropna=False)["value"].mean()
    assert sorted(table["mean"]) == pytest.approx(sorted(plain))
    assert (table["mean_low"] <= table["mean"]).all() and (table["mean"] <= table["mean_high"]).all()
    assert table["gap"].tolist() == pytest.approx(
        np.where(table["better"] == "max", table["bound"] - table["mean"], table["mean"] - table["bound"])
    )
    assert table["trainings"].tolist().count(2) == 3
    agents = table[table["policy"] == "agent"]
    assert agents["agent"].tolist() == ["file1 file2"] * 3
    assert agents["seconds"].tolist() == pytest.approx([0.1] * 3)
    for agent in agents.itertuples():
        own = table[(table["id"] == agent.id) & (table["policy"] != "agent")]
        own = own[own["servers"].eq(agent.servers) | pd.isna(agent.servers)]
        best = own["mean"].max() if agent.better == "max" else own["mean"].min()
        assert agent.rival in own.loc[own["mean"] == best, "policy"].tolist()
        assert agent.rival_mean == best and 0 <= agent.probability <= 1
        assert agent.rival_relative == pytest.approx(agent.mean / best - 1), "the middle of two is their mean"
    assert table.loc[table["policy"] != "agent", ["rival_mean", "rival_relative"]].isna().all(axis=None)


def test_one_id(store, tmp_path):
    for name in (VALUE, "PartialValue-v0", "partial-value"):  # as other commands take it
        export(store, tmp_path / "out.csv", id=name)
        table = pd.read_csv(tmp_path / "out.csv")
        assert set(table["id"]) == {VALUE} and "servers" not in table.columns
        assert export(store, tmp_path / "out.csv", id=name, table="leaderboard") == 3


def test_a_parameter_may_have_the_name_of_a_column(tmp_path):
    own = setting(QUEUE, {"seed": 3, "mixed": [1, 2]})
    with ResultsStore(tmp_path / "r.db", "w") as made:
        made.add(Unit(Line(own, "p", {}, None, "x"), 0, 0, 1), ["mean_delay"], np.ones((1, 1)))
    for table in ("episodes", "leaderboard"):
        export(tmp_path / "r.db", tmp_path / "out.csv", table=table)
        found = pd.read_csv(tmp_path / "out.csv")
        assert found["parameter.seed"].tolist() == [3] and found["mixed"].tolist() == ["[1,2]"]
        assert set(found.columns) <= RESERVED | {"parameter.seed", "mixed"}


def test_errors(store, tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    for arguments, error, match in (
        ({"path": tmp_path / "out.xlsx"}, InvalidParameter, "must end in .csv, .parquet"),
        ({"table": "episode"}, UnknownName, "did you mean 'episodes'"),
        ({"id": "schedgym/QueueDelay-v9"}, UnknownName, "QueueDelay-v0"),
        ({"code": "2"}, UnknownName, "version"),
        ({"store_path": tmp_path / "none.db"}, FileNotFoundError, "no results store"),
    ):
        with pytest.raises(error, match=match):
            export(**{"store_path": store, "path": path, **arguments})
    ResultsStore(tmp_path / "empty.db", "w").close()
    with pytest.raises(InvalidParameter, match="nothing to export"):
        export(tmp_path / "empty.db", path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DependencyNotInstalled, match=r"schedgym\[report\]"):
        export(store, tmp_path / "out.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["empty.db"]
