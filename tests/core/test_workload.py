"""Workloads: what the schema refuses and how it says so; files."""

from __future__ import annotations

import functools
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.core import workload_files
from schedgym.core.workload import Field, Schema, Workload
from schedgym.core.workload_files import load_workload, save_workload
from schedgym.errors import InvalidParameter, InvalidWorkload, UnknownName
from schedgym.problems.queue_delay.workload import SCHEMA
from tests.tables import table

SOUND = table(__file__, "sound")


def sound(problem: str, **changes: object) -> dict[str, dict[str, Any]]:
    """A sound instance with some fields replaced ("jobs_cpu": ...); None takes a field out."""
    content = {section: dict(fields) for name, section, fields in SOUND if name == problem}
    for key, value in changes.items():
        section, _, name = key.partition("_")
        if value is None:
            del content[section][name]
        else:
            content[section][name] = value
    return content


sections = functools.partial(sound, "queue-delay")
wide = functools.partial(sound, "wide")
lists = functools.partial(sound, "lists")


def test_a_section_must_be_an_object() -> None:
    with pytest.raises(InvalidWorkload, match="^jobs: must be an object of named fields"):
        SCHEMA.parse({"jobs": [1, 2], "cluster": {}})  # type: ignore[dict-item]
    with pytest.raises(InvalidWorkload, match=r"^jobs\.arrival: missing"):
        SCHEMA.parse({})


def test_a_sound_workload_is_a_fresh_read_only_copy() -> None:
    content = sections(jobs_cpu=np.array([0.5, 0.25, 0.125]))
    workload = SCHEMA.parse(content)
    content["jobs"]["cpu"][0] = 0.75  # type: ignore[index]
    assert workload.jobs["cpu"].tolist() == [0.5, 0.25, 0.125]
    assert workload.jobs["arrival"].dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        workload.jobs["cpu"][0] = 1.0
    assert workload == SCHEMA.parse(sections())
    assert workload != SCHEMA.parse(sections(jobs_arrival=[0, 1, 3]))
    assert workload != "workload" and workload != Workload("other", workload.jobs, workload.cluster)
    with pytest.raises(TypeError, match="unhashable"):
        hash(workload)
    assert repr(workload) == (
        "Workload('queue-delay', jobs[3]: arrival, execution, cpu, memory; cluster[2]: cpu, memory)"
    )
    assert pickle.loads(pickle.dumps(workload)) == workload


def test_values_in_order_and_by_name() -> None:
    jobs, servers = sections()["jobs"], {f"cluster.{n}": v for n, v in sections()["cluster"].items()}
    times, demands = (jobs.pop("arrival"), jobs.pop("execution")), dict(jobs)
    assert SCHEMA.make(*times, **demands, **servers) == SCHEMA.parse(sections())
    jobs = sections()["jobs"]
    assert SCHEMA.make(**jobs, **servers) == SCHEMA.parse(sections())
    for values, names in (((*times, 1), {}), ((jobs["cpu"],), {"arrival": jobs["arrival"]})):
        with pytest.raises(TypeError, match="give arrival, execution in this order"):
            SCHEMA.make(*values, **names)
    with pytest.raises(InvalidWorkload, match="^arival: unknown field; did you mean 'arrival'"):
        SCHEMA.make(arival=[0])


def test_whole_numbers_are_accepted_as_such() -> None:
    assert SCHEMA.parse(sections(jobs_arrival=[0, 1, 2])) == SCHEMA.parse(sections())
    assert SCHEMA.parse(sections(jobs_arrival=(0, np.int32(1), np.float32(2)))) == SCHEMA.parse(sections())


WIDE = Schema(
    problem="wide",
    jobs=(
        Field("size", "", ("task", "server")),
        Field("count", "", ("task",), kind="int", minimum=1),
        Field("note", "", ("task",), optional=True, minimum=-5.0),
    ),
    cluster=(Field("speed", "1/s", ("server",), exclusive=True),),
    parameters=(Field("cap", "J", ()), Field("share", "", (), optional=True, maximum=1.0)),
)


def test_optional_fields_and_whole_numbers() -> None:
    workload = WIDE.parse(wide())
    assert set(workload.jobs) == {"size", "count"} and set(workload.parameters) == {"cap"}
    assert workload.jobs["count"].dtype == np.int64
    assert workload.parameters["cap"].shape == () and float(workload.parameters["cap"]) == 7.0
    assert WIDE.parse(wide(parameters_share=0.5)) != workload


# Files ----------------------------------------------------------------------------------------


SWITCHED = Schema(
    problem="switched",
    jobs=(Field("load", "s", ("task",)),),
    cluster=(
        Field("cpu", "vCPU", ("server",)),
        Field("caps", "", (), kind="bool", optional=True),
        Field("up", "", ("server",), kind="bool", optional=True),
        Field(
            "beta", "", ("level",), maximum=1.0, exclusive=True, optional=True, keys=("rack", "pod", "all")
        ),
        Field("most", "tasks", ("level",), kind="int", optional=True, keys=("rack", "pod", "all")),
    ),
)


def switched(**cluster: object) -> dict[str, dict[str, object]]:
    return {"jobs": {"load": [1.0]}, "cluster": {"cpu": [1.0, 2.0], **cluster}}


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_truth_values(truth: bool, kind: type) -> None:
    workload = SWITCHED.parse(switched(caps=kind(truth), up=[kind(truth), not truth]))
    caps, up = workload.cluster["caps"], workload.cluster["up"]
    assert caps.dtype == np.bool_ and caps.shape == () and caps.item() is truth
    assert up.dtype == np.bool_ and up.tolist() == [truth, not truth]
    assert not caps.flags.writeable and not up.flags.writeable
    assert workload == SWITCHED.parse(switched(caps=truth, up=np.array([truth, not truth])))
    assert workload != SWITCHED.parse(switched(caps=not truth, up=[truth, not truth]))


def test_an_object_with_fixed_keys_is_a_list() -> None:
    listed = SWITCHED.parse(switched(beta=[0.3, 0.2, 1], most=[3, 2, 1]))
    named = SWITCHED.parse(
        switched(beta={"pod": 0.2, "rack": np.float32(0.3), "all": 1}, most={"all": 1, "pod": 2.0, "rack": 3})
    )
    assert named.cluster["most"].dtype == np.int64 and not named.cluster["most"].flags.writeable
    assert named.cluster["most"].tolist() == [3, 2, 1]
    assert named.cluster["beta"].tolist() == [float(np.float32(0.3)), 0.2, 1.0]
    assert SWITCHED.parse(switched(beta={"all": 1, "rack": 0.3, "pod": 0.2}, most=[3, 2, 1])) == listed
    # the keys say nothing about the length of a list
    assert SWITCHED.parse(switched(beta=[0.3, 0.2])).cluster["beta"].shape == (2,)


def test_only_lists_have_keys() -> None:
    with pytest.raises(ValueError, match="beta: a field with keys has 1 dimension"):
        Field("beta", "", (), keys=("rack",))


NAMED = Schema(
    problem="named",
    jobs=(Field("utility", "", ("job",), kind="int", choices=("linear", "power", "log")),),
    cluster=(
        Field("order", "", (), kind="int", choices=("fifo", "edf"), optional=True),
        Field("table", "", ("row", "column"), kind="int", choices=("no", "yes"), optional=True),
    ),
)


def named(utility: object, **cluster: object) -> dict[str, dict[str, object]]:
    return {"jobs": {"utility": utility}, "cluster": cluster}


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda names: np.array(names, dtype=object)])
def test_names_are_stored_as_numbers(form: Callable[[list[str]], object]) -> None:
    workload = NAMED.parse(named(form(["log", "linear", "power"]), order="edf", table=[["yes"], ["no"]]))
    utility = workload.jobs["utility"]
    assert utility.dtype == np.int64 and utility.tolist() == [2, 0, 1] and not utility.flags.writeable
    assert workload.cluster["order"].item() == 1 and workload.cluster["order"].shape == ()
    assert workload.cluster["table"].tolist() == [[1], [0]]
    given = {"order": np.int32(1), "table": np.array([[1], [0]], dtype=np.uint8)}
    again = NAMED.parse(named(np.array([2, 0, 1], dtype=np.int8), **given))
    assert again == workload and again.jobs["utility"].dtype == np.int64
    assert workload.choices == {
        "jobs.utility": ("linear", "power", "log"),
        "cluster.order": ("fifo", "edf"),
        "cluster.table": ("no", "yes"),
    }


def test_an_archive_may_hold_names(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez(path, problem="named", **{"jobs/utility": np.array(["log", "linear"])})
    assert load_workload(path, NAMED).jobs["utility"].tolist() == [2, 0]


def test_only_numbers_have_names() -> None:
    for field in ({"kind": "float"}, {"kind": "bool"}, {"kind": "int", "keys": ("a",)}):
        with pytest.raises(ValueError, match="x: a field with choices is of kind int, without lists or keys"):
            Field("x", "", ("job",), choices=("a", "b"), **field)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="x: a field with choices is of kind int"):
        Field("x", "", ("job", "task"), kind="int", ragged=True, choices=("a", "b"))


def test_a_key_that_is_given_twice(tmp_path: Path) -> None:
    named = {"problem": "switched", **switched(beta={"rack": 0.3, "pod": 0.2, "all": 0.1})}
    text = json.dumps(named).replace('"pod": 0.2', '"pod": 0.2, "pod": 0.2')
    with pytest.raises(InvalidWorkload, match="w.json: pod: given twice"):
        load_workload(write(tmp_path / "w.json", text), SWITCHED)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def content(**changes: object) -> dict[str, object]:
    return {"problem": "queue-delay", **sections(), **changes}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *table(__file__, "test_bad_json_is_refused_with_one_line"),
        ("[" * 100_000, ""),
        ('{"problem": "queue-delay", "jobs": {"arrival": [1' + "0" * 5000 + "]}}", ""),
    ],
)
def test_bad_json_is_refused_with_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "w.json", text)
    with pytest.raises(InvalidWorkload) as caught:
        load_workload(path, SCHEMA)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "message"),
    [*table(__file__, "test_bad_numbers_in_a_file"), ("1" + "0" * 400, "jobs.cpu[1]: must be a number")],
)
def test_bad_numbers_in_a_file(number: str, message: str, tmp_path: Path) -> None:
    text = json.dumps(content()).replace("0.25", number)
    path = write(tmp_path / "w.json", text)
    with pytest.raises(InvalidWorkload) as caught:
        load_workload(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_files_that_are_none(tmp_path: Path) -> None:
    for suffix in (".json", ".npz"):
        with pytest.raises(FileNotFoundError):
            load_workload(tmp_path / f"missing{suffix}")
    for name in ("w.csv", "w", "w.JSON.gz"):
        with pytest.raises(InvalidWorkload, match="ends in .json or .npz"):
            load_workload(tmp_path / name)
        with pytest.raises(InvalidWorkload, match="ends in .json or .npz"):
            save_workload(SCHEMA.parse(sections()), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "w.json"
    path.write_bytes(b'{"problem": "\xff"}')
    with pytest.raises(InvalidWorkload, match="byte 13: not UTF-8 text"):
        load_workload(path)
    write(path, json.dumps(content(problem="queue-delays")))
    with pytest.raises((UnknownName, InvalidWorkload), match="did you mean 'queue-delay'"):
        load_workload(path)


def test_pickled_archives_are_refused(tmp_path: Path) -> None:
    """Loading a pickle would run whatever it says."""
    path = tmp_path / "w.npz"
    np.savez(path, problem=np.array("queue-delay"), **{"jobs/cpu": np.array([{}], dtype=object)})
    with pytest.raises(InvalidWorkload, match="not a readable numpy archive"):
        load_workload(path)
    path.write_bytes(pickle.dumps({"problem": "queue-delay"}))
    with pytest.raises(InvalidWorkload, match="not a"):
        load_workload(path)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.save(tmp_path / "array.npy", np.zeros(3))
    path.write_bytes((tmp_path / "array.npy").read_bytes())
    with pytest.raises(InvalidWorkload, match="not a readable numpy archive"):
        load_workload(path)
    path.write_bytes(b"")
    with pytest.raises(InvalidWorkload, match="not a readable numpy archive"):
        load_workload(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InvalidWorkload):
        load_workload(path)
    np.savez(path, problem=np.array("queue-delay"), extra=np.zeros(2))
    with pytest.raises(InvalidWorkload, match="extra: unknown field"):
        load_workload(path)
    np.savez(path, problem=np.array("queue-delay"), **{"jobs/cpu": np.array(["a"])})
    with pytest.raises(InvalidWorkload, match="missing|must be a number"):
        load_workload(path)
    np.savez(path, **{"jobs/cpu": np.zeros(2)})
    with pytest.raises(InvalidWorkload, match="problem: missing"):
        load_workload(path)


def test_writing_is_atomic(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    workload = SCHEMA.parse(sections())
    save_workload(workload, path)
    before = path.read_bytes()
    broken = Workload("queue-delay", {"arrival": np.array([np.nan])}, workload.cluster)
    with pytest.raises(ValueError, match="[Oo]ut of range float"):
        save_workload(broken, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["w.json"]
    with pytest.raises(InvalidParameter, match="there is no folder"):
        save_workload(workload, tmp_path / "missing" / "w.json")


# Tasks, and lists of different lengths ----------------------------------------------------------

LISTS = Schema(
    problem="lists",
    jobs=(Field("arrival", "s", ("job",), ascending=True),),
    tasks=(
        Field("job", "", ("task",), kind="int"),
        Field("sites", "site", ("task", "choice"), kind="int", ragged=True),
        Field("speed", "1/s", ("task", "site"), optional=True),
    ),
    cluster=(Field("slots", "slots", ("site",), kind="int", minimum=1),),
)
SITES = [[0, 1], [2], [1, 0, 2], [0]]


def padded(rows: list[list[int]], width: int) -> np.ndarray:
    return np.array([row + [-1] * (width - len(row)) for row in rows])


HUGE = 10**400
NONE = [[]]
INNER = np.array([[0, 1], [2, -1], [-1, 0], [0, -1]])

WRONG: list[tuple[Schema, dict[str, dict[str, object]], str]] = [
    *((SCHEMA, sections(**changes), message) for changes, message in table(__file__, "queue-delay")),
    (SCHEMA, sections(jobs_cpu=np.array([True, False, True])), "jobs.cpu: must be a number"),
    (SCHEMA, sections(jobs_cpu=[0.5, HUGE, 0.1]), "jobs.cpu[1]: must be a number"),
    (SCHEMA, sections(jobs_cpu=[0.5, 1j, 0.1]), "jobs.cpu[1]: must be a number"),
    (SCHEMA, sections(jobs_cpu=[0.5, np.array(0.5), 0.1]), "jobs.cpu[1]: must be a number"),
    *((WIDE, wide(**changes), message) for changes, message in table(__file__, "wide")),
    *((SWITCHED, switched(**cluster), message) for cluster, message in table(__file__, "switched")),
    (SWITCHED, switched(up=[True, np.array(True)]), "cluster.up[1]: must be true or false"),
    (SWITCHED, switched(up=np.array([1, 0])), "cluster.up: must be true or false"),
    (SWITCHED, switched(beta={"rack": HUGE, "pod": 0.2, "all": 1}), "cluster.beta.rack: must be a number"),
    *((NAMED, content, message) for content, message in table(__file__, "named")),
    (NAMED, named(np.array([0, 3])), "jobs.utility[1]: must be one of linear, power, log, got 3"),
    (NAMED, named(np.array([-1])), "jobs.utility[0]: must be one of linear, power, log, got -1"),
    (NAMED, named(np.array([1.0])), "jobs.utility[0]: must be one of linear, power, log, got 1.0"),
    (NAMED, named(np.array(1)), "jobs.utility: must have 1 dimensions (job), got 0"),
    *((LISTS, lists(tasks_sites=sites), message) for sites, message in table(__file__, "lists")),
    *(
        (LISTS, lists(tasks_sites=sites), f"tasks.sites{message}")
        for sites, message in (
            ([[0], [0], [2, HUGE], [1]], "[2][1]: must be a number"),
            ([[0], [0, np.True_], [2], [1]], "[1][1]: must be a number"),
            ([np.zeros((1, 1)), [0], [0], [0]], "[0]: must be a list of numbers"),
            (np.zeros(4), ": must have 2 dimensions (task, choice), got 1"),
            (np.zeros((4, 1), dtype=bool), ": must be a number"),
            (np.array([NONE, NONE, NONE, NONE]), ": must have 2 dimensions (task, choice), got 3"),
            (np.array([[0], [0], [-2], [1]]), "[2][0]: must be >= 0 (site), got -2"),
            (np.array([[0], [0], [0.5], [1]]), "[2][0]: must be a whole number, got 0.5"),
            (np.array([[0], [np.nan], [1], [1]]), "[1][0]: must be finite, got nan"),
            (INNER, "[2][0]: must be >= 0 before the end of its list, got -1"),
        )
    ),
]


@pytest.mark.parametrize(("schema", "content", "message"), WRONG, ids=[message for *_, message in WRONG])
def test_what_is_wrong_is_named(schema: Schema, content: dict[str, dict[str, object]], message: str) -> None:
    with pytest.raises(InvalidWorkload) as caught:
        schema.parse(content, prefix="w.json: ")
    assert str(caught.value) == f"w.json: {message}"


@pytest.mark.parametrize(
    "sites",
    [
        SITES,
        tuple(map(tuple, SITES)),
        [np.array(row) for row in SITES],
        [[np.int32(site) for site in row] for row in SITES],
        [[float(site) for site in row] for row in SITES],
        padded(SITES, 3),
        padded(SITES, 5),
        padded(SITES, 3).astype(float),
        np.asfortranarray(padded(SITES, 4).astype(np.int8)),
    ],
)
def test_lists_are_stored_padded(sites: object) -> None:
    workload = LISTS.parse(lists(tasks_sites=sites))
    array = workload.tasks["sites"]
    assert array.tolist() == padded(SITES, 3).tolist()
    assert array.dtype == np.int64 and array.flags.c_contiguous and not array.flags.writeable
    assert workload.ragged == {"tasks.sites"}
    assert workload == LISTS.parse(lists())


def test_lists_may_be_empty_unless_the_problem_objects() -> None:
    assert LISTS.parse(lists(tasks_sites=[[], [1], [], []])).tasks["sites"].tolist() == [
        [-1],
        [1],
        [-1],
        [-1],
    ]
    for none in ([[]] * 4, np.full((4, 3), -1), np.zeros((4, 0))):
        assert LISTS.parse(lists(tasks_sites=none)).tasks["sites"].shape == (4, 0)


def test_one_absurdly_long_list_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgym.core.workload.MOST_PADDED", 4)
    monkeypatch.setattr("schedgym.core.workload.MOST_PADDED_PER_ELEMENT", 2)
    assert LISTS.parse(lists(tasks_sites=[[0], [0] * 5, [0], [0]])).tasks["sites"].shape == (4, 5)
    with pytest.raises(InvalidWorkload, match=r"^tasks.sites\[1\]: 6 elements are too many for 4 lists$"):
        LISTS.parse(lists(tasks_sites=[[0], [0] * 6, [0], [0]]))


@pytest.mark.parametrize(
    "field",
    [{"dimensions": ("task",)}, {"kind": "float"}, {"minimum": -1.0}],
)
def test_ragged_fields_are_lists_of_whole_numbers(field: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="a ragged field has 2 dimensions and whole numbers >= 0"):
        Field(
            **{"name": "x", "unit": "", "dimensions": ("task", "choice"), "kind": "int", **field}, ragged=True
        )  # type: ignore[arg-type]


def test_a_workload_with_tasks() -> None:
    speed = np.arange(12.0).reshape(4, 3)
    workload = LISTS.parse(lists(tasks_speed=speed))
    assert repr(workload) == (
        "Workload('lists', jobs[2]: arrival; tasks[4]: job, sites, speed; cluster[3]: slots)"
    )
    assert pickle.loads(pickle.dumps(workload)) == workload
    assert workload != LISTS.parse(lists()) and workload != LISTS.parse(lists(tasks_speed=speed + 1))
    assert LISTS.parse(lists()) != LISTS.parse(lists(tasks_sites=[*SITES[:3], [1]]))
    with pytest.raises(
        InvalidWorkload, match="^cluster.slots: must have one value per site: 2 as in tasks.speed, got 3$"
    ):
        LISTS.parse(lists(tasks_speed=speed[:, :2]))
    with pytest.raises(InvalidWorkload, match="^tasks.job: missing$"):
        LISTS.parse({"jobs": {"arrival": [0.0]}, "cluster": {"slots": [1]}})
    with pytest.raises(InvalidWorkload, match=r"^tasks.jobs: unknown field; did you mean 'job'\?$"):
        LISTS.parse(lists(tasks_jobs=[0]))
    with pytest.raises(InvalidWorkload, match="^tasks: must be an object of named fields$"):
        LISTS.parse({**lists(), "tasks": [1, 2]})  # type: ignore[dict-item]


def test_whole_numbers_must_be_exact() -> None:
    with pytest.raises(InvalidWorkload, match=r"^tasks.job\[1\]: must be <= 9.0072e\+15 \(\), got 1e\+300"):
        LISTS.parse(lists(tasks_job=[0, 1e300, 1, 1]))


@given(
    rows=st.lists(st.lists(st.integers(0, 2**53), max_size=4), min_size=1, max_size=6),
    suffix=st.sampled_from([".json", ".npz"]),
)
def test_lists_survive_files(rows: list[list[int]], suffix: str, tmp_path_factory) -> None:
    workload = LISTS.parse(lists(tasks_job=[0] * len(rows), tasks_sites=rows))
    path = tmp_path_factory.mktemp("files") / f"w{suffix}"
    save_workload(workload, path)
    again = load_workload(path, LISTS)
    assert again == workload and again.ragged == workload.ragged
    assert again.tasks["sites"].shape == workload.tasks["sites"].shape
    if suffix == ".json":
        assert json.loads(path.read_text())["tasks"]["sites"] == rows
    else:
        with np.load(path) as archive:
            assert archive["tasks/sites"].shape == (len(rows), max(map(len, rows)))


def test_tasks_may_stand_inside_jobs(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    beside = {"problem": "lists", **lists()}
    inside = {
        "problem": "lists",
        "jobs": {"arrival": [0.0, 1.5], "tasks": beside["tasks"]},
        "cluster": beside["cluster"],
    }
    for form in (beside, inside):
        write(path, json.dumps(form))
        assert load_workload(path, LISTS) == LISTS.parse(lists())
    save_workload(LISTS.parse(lists()), path)
    assert list(json.loads(path.read_text())) == ["problem", "jobs", "tasks", "cluster", "parameters"]
    write(path, json.dumps({**inside, "tasks": beside["tasks"]}))
    with pytest.raises(InvalidWorkload, match="w.json: tasks: given twice, beside jobs and inside it$"):
        load_workload(path, LISTS)
    inside["jobs"]["tasks"] = {**beside["tasks"], "sites": [[0], [0], [1], [1, 0.5]]}  # type: ignore[index, dict-item]
    write(path, json.dumps(inside))
    with pytest.raises(InvalidWorkload, match=r"w.json: tasks.sites\[3\]\[1\]: must be a whole number"):
        load_workload(path, LISTS)
    inside["jobs"]["tasks"] = [1]  # type: ignore[index]
    write(path, json.dumps(inside))
    with pytest.raises(InvalidWorkload, match="w.json: tasks: must be an object of named fields"):
        load_workload(path, LISTS)


def test_problems_without_tasks_know_none(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    tasks = {"job": [0]}
    for text, message in (
        (content(tasks={}), "tasks: unknown field; known: cluster, jobs, parameters, problem"),
        (content(task={}), "task: unknown field; known: cluster, jobs, parameters, problem"),
        (content(jobs={**sections()["jobs"], "tasks": tasks}), "jobs.tasks: unknown field"),
    ):
        write(path, json.dumps(text))
        for schema in (None, SCHEMA):
            with pytest.raises(InvalidWorkload) as caught:
                load_workload(path, schema)
            assert str(caught.value).startswith(f"{path}: {message}")
    with pytest.raises(InvalidWorkload, match="^tasks.job: unknown field"):
        SCHEMA.parse({**sections(), "tasks": tasks})
    assert SCHEMA.parse({**sections(), "tasks": {}}) == SCHEMA.parse(sections())
    save_workload(SCHEMA.parse(sections()), path)
    assert list(json.loads(path.read_text())) == ["problem", "jobs", "cluster", "parameters"]
    write(path, '{"tasks": {}}')
    with pytest.raises(InvalidWorkload, match="w.json: problem: missing, or not a string"):
        load_workload(path)


@pytest.mark.parametrize(("suffix", "limit"), [(".json", "LARGEST_TEXT"), (".npz", "LARGEST")])
def test_what_could_not_be_read_back_is_not_written(
    suffix: str, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload, path = SCHEMA.parse(sections()), tmp_path / f"a{suffix}"
    save_workload(workload, path)
    size, before = path.stat().st_size, path.read_bytes()
    if suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            size = max(size, sum(entry.file_size for entry in archive.infolist()))
    monkeypatch.setattr(workload_files, limit, size)
    save_workload(workload, path)
    assert load_workload(path) == workload
    monkeypatch.setattr(workload_files, limit, size - 1)
    with pytest.raises(InvalidWorkload, match=f"a{suffix}: would have {size} bytes, and no more than"):
        save_workload(workload, path)
    with pytest.raises(InvalidWorkload, match=f"a{suffix}: "):
        load_workload(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
