"""The scorer: its batch form against a loop over tokens, permutations, and what each parameter does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schedgym.agents.scorer import FLAT, Scorer, ScorerOptions, statistics_of
from schedgym.agents.views import layout_of
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter, UnknownName
from tests.agents.cases import CASES, fitted, observations, permute, vector
from tests.long import some
from tests.tables import table

PICK = ("schedgym/QueueDelay-v0", "pick")
FORMS = [
    {"hidden": 0, "context": "globals"},
    {"hidden": 3, "context": "pooled"},
    {"hidden": 2, "context": "none"},
]


def split(scorer: Scorer, theta: np.ndarray) -> list[dict[str, np.ndarray]]:
    """The parameters of each segment by name, cut off one after the other as the docstring says."""
    found, at = [], 0
    for part in scorer._parts:
        own = {}
        for name, shape in part.shapes.items():
            own[name] = theta[at : at + int(np.prod(shape))].astype(float).reshape(shape)
            at += int(np.prod(shape))
        found.append(own)
    assert at == len(theta) == scorer.size
    return found


def one_by_one(scorer: Scorer, theta: np.ndarray, observation: dict[str, Any], wanted: np.ndarray) -> Any:
    """The scores of one environment, [size], token by token in double precision; NaN: not wanted."""
    layout, options = scorer.layout, scorer.options
    one = {name: array[np.newaxis] for name, array in observation.items()}

    def normal(name: str, x: np.ndarray) -> np.ndarray:
        mean = scorer.statistics.get(f"{name} mean", np.zeros(len(x)))
        scale = scorer.statistics.get(f"{name} scale", np.ones(len(x)))
        return (x - mean) / np.where(scale > FLAT, scale, 1.0)

    def kept(name: str, count: int) -> np.ndarray:
        return scorer.statistics.get(f"{name} scale", np.ones(count)) > FLAT

    columns, at = [], 0  # of each segment: slot -> columns of its token
    for index, segment in enumerate(layout.segments):
        here = wanted[at : at + segment.count]
        at += segment.count
        own = {}
        for slot in np.flatnonzero(here) if segment.tokens else ():
            only = np.zeros((1, layout.size), dtype=bool)
            only[0, at - segment.count + slot] = True
            own[int(slot)] = scorer.inspect(one, only)[f"columns {index}"][:, 0].astype(float)
        columns.append(own)
    context: list[float] = [] if options.context == "none" else observation["globals"].tolist()
    if options.context == "pooled":
        for index, segment in enumerate(layout.segments):
            if segment.tokens:
                empty = [np.zeros(len(scorer.columns[index]))]
                context += np.mean(list(columns[index].values()) or empty, axis=0).tolist()
    c = np.array(context)
    d = normal("context", c)[kept("context", len(c))]
    result = np.full(layout.size, np.nan)
    at = 0
    for index, (segment, own) in enumerate(zip(layout.segments, split(scorer, theta), strict=True)):
        weights = dict(options.skip.get(segment.name, {}))
        added = weights.pop("bias", 0.0)
        names = scorer.columns[index] if segment.tokens else scorer.context_columns
        skip = np.array([weights.get(name, 0.0) for name in names])
        for slot, x in columns[index].items():
            z = normal(f"columns {index}", x)[kept(f"columns {index}", len(x))]
            score = skip @ x + added + own["w"] @ z + own.get("bias", np.zeros(1))[0]
            if "U" in own:
                score += own["v"] @ np.tanh(own["U"] @ z + own["A"] @ d + own["b"])
            result[at + slot] = score
        for k in range(0 if segment.tokens else segment.count):
            result[at + k] = skip @ c + added + own["w"][k] @ d + own["bias"][k]
        at += segment.count
    return result


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form['hidden']}-{form['context']}")
@pytest.mark.parametrize(("id", "view"), some(CASES, of=6, late=5))
def test_batches_against_a_loop_over_tokens(id: str, view: str, form: dict[str, Any]) -> None:
    env, layout = vector(id, view, 6)
    plain = Scorer(layout, ScorerOptions(context=form["context"]))
    skip = {}
    for index, segment in enumerate(layout.segments):
        names = plain.columns[index] if segment.tokens else plain.context_columns
        skip[segment.name] = {"bias": 0.5, **{name: 0.3 - 0.2 * i for i, name in enumerate(names[:3])}}
    scorer, _ = fitted(env, layout, skip=skip, **form)
    rng = np.random.default_rng(1)
    table = rng.normal(size=(3, scorer.size)).astype(np.float32)
    seen = 0
    for observation in observations(
        env, layout, 40 if layout.problem == "geo" else 6
    ):  # its choices are rare
        wanted = scorer.wanted(observation)
        scores = scorer.scores(table, observation, wanted)
        assert scores.dtype == np.float64
        for i in range(6):
            own = {name: array[i] for name, array in observation.items()}
            expected = one_by_one(scorer, table[i // 2], own, wanted[i])
            known = ~np.isnan(expected) & wanted[i]
            np.testing.assert_allclose(scores[i, known], expected[known], rtol=2e-3, atol=2e-3)
            seen += int(known.sum())
            alone = {name: array[np.newaxis] for name, array in own.items()}
            np.testing.assert_allclose(
                scorer.scores(table[i // 2], alone)[0, known], scores[i, known], rtol=1e-3, atol=1e-3
            )
    assert seen > 10


@pytest.mark.parametrize(("id", "view"), CASES)
def test_permuted_tokens_have_permuted_scores(id: str, view: str) -> None:
    env, layout = vector(id, view)
    scorer, theta = fitted(env, layout, hidden=3, context="pooled")
    rng = np.random.default_rng(1)
    moved = 0
    for observation in observations(env, layout):
        permuted, order = permute(layout, observation, rng)
        moved += int((order != np.arange(layout.size)).sum())
        scores = scorer.scores(theta, observation)
        np.testing.assert_allclose(
            scorer.scores(theta, permuted), scores[:, order], rtol=1e-3, atol=1e-3, err_msg=view
        )
    assert moved or not any(segment.tokens for segment in layout.segments)


@pytest.mark.parametrize(("id", "view"), CASES)
def test_what_is_not_wanted_changes_nothing(id: str, view: str) -> None:
    """Tokens that are not there, actions that are closed, environments whose episode is over."""
    env, layout = vector(id, view)
    scorer, theta = fitted(env, layout, hidden=2, context="pooled")
    rng = np.random.default_rng(2)
    live = np.array([True, False, True, True, False])
    for observation in observations(env, layout, 5):
        wanted = scorer.wanted(observation, live)
        assert not wanted[~live].any()
        filled = {name: array.copy() for name, array in observation.items()}
        for sequence in layout.context:
            filled[sequence.key][~live] = rng.random(filled[sequence.key][~live].shape)
            # features of other tokens may refer to a token that is not there only as "nothing"
            if sequence.mask is not None and layout.problem == "queue-delay":
                gone = observation[sequence.mask] == 0
                filled[sequence.key][gone] = rng.random(filled[sequence.key][gone].shape)
        before = scorer.scores(theta, observation, wanted)
        after = scorer.scores(theta, filled, wanted)
        np.testing.assert_allclose(after[live], before[live], rtol=1e-4, atol=1e-4)
        own = observation.get("action_mask")
        if layout.kind == "choice":
            forced = own.sum(axis=1) == 1
            assert not wanted[forced].any()
            np.testing.assert_array_equal(wanted[live & ~forced], own[live & ~forced].astype(bool))


@pytest.mark.parametrize(("id", "view"), CASES)
@pytest.mark.parametrize("hidden", [0, 2])
def test_a_training_starts_at_the_skip_connection(id: str, view: str, hidden: int) -> None:
    env, layout = vector(id, view)
    plain, _ = fitted(env, layout)
    name = layout.segments[0].name
    column = plain.inputs[name][0] if name in plain.inputs else plain.inputs["context"][0]
    scorer, _ = fitted(env, layout, hidden=hidden, skip={name: {column: 2.0, "bias": 3.0}})
    start = scorer.start(7)
    assert start.shape == (scorer.size,) and start.dtype == np.float32
    np.testing.assert_array_equal(start, scorer.start(7))
    if hidden and layout.segments[0].tokens:
        assert start.any() and not np.array_equal(start, scorer.start(8))
    for observation in observations(env, layout, 3):
        wanted = scorer.wanted(observation)
        scores = scorer.scores(start, observation, wanted)
        here = wanted[:, : layout.segments[0].count]
        if layout.segments[0].tokens:
            x = scorer.inspect(observation, wanted)["columns 0"][0]
            np.testing.assert_allclose(scores[:, : here.shape[1]][here], 2.0 * x + 3.0, rtol=1e-5)
        else:
            raw = observation["globals"][wanted[:, 0], 0]
            np.testing.assert_allclose(scores[wanted[:, 0], 0], 2.0 * raw + 3.0, rtol=1e-5)


@pytest.mark.parametrize(("id", "view"), [(id, view) for id, view in CASES if "rule" not in view])
def test_no_parameter_is_dead(id: str, view: str) -> None:
    env, layout = vector(id, view, 8)
    scorer, theta = fitted(env, layout, hidden=2)
    seen = list(observations(env, layout, 40))
    alive = np.zeros(scorer.size, dtype=bool)
    for observation in seen:
        wanted = scorer.wanted(observation)
        base = scorer.scores(theta, observation, wanted)
        for k in np.flatnonzero(~alive):
            changed = theta.copy()
            changed[k] += 1.0
            alive[k] = (scorer.scores(changed, observation, wanted) != base)[wanted].any()
    assert alive.all(), np.flatnonzero(~alive)


def test_spread() -> None:
    env, layout = vector(*PICK)
    scorer, theta = fitted(env, layout, hidden=2)
    spread = scorer.spread(0.25)
    first, second = split(scorer, spread)
    assert {name: set(values.ravel()) for name, values in first.items()} == {
        **{name: {1.0} for name in ("w", "U", "A", "b", "v")},
        "bias": {0.25},
    }
    assert all(set(values.ravel()) == {0.25} for values in second.values())


def test_statistics() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.normal(3.0, 2.0, (4, n)).astype(np.float32) for n in (5, 9))
    nothing = np.empty((2, 0), dtype=np.float32)
    found = statistics_of([{"a": first, "b": nothing}, {"a": second, "b": nothing}])
    whole = np.concatenate([first, second], axis=1)
    assert set(found) == {"a mean", "a scale"}
    np.testing.assert_allclose(found["a mean"], [row.mean() for row in whole], rtol=1e-5)
    np.testing.assert_allclose(found["a scale"], [row.std() for row in whole], rtol=1e-5)


def test_columns_are_those_of_wanted_tokens_and_live_environments() -> None:
    env, layout = vector(*PICK)
    scorer, _ = fitted(env, layout)
    live = np.array([True, False, True, False, True])
    most = 0
    for observation in observations(env, layout):
        wanted = scorer.wanted(observation, live)
        seen = scorer.inspect(observation, wanted)
        assert set(seen) == {"columns 0", "context"}
        assert seen["columns 0"].shape == (len(scorer.inputs["task"]), wanted[:, :-1].sum())
        assert seen["context"].shape[1] == wanted.any(axis=1).sum()
        most = max(most, seen["context"].shape[1])
    assert 0 < most <= 3


def test_chosen_columns() -> None:
    env, layout = vector(*PICK)
    scorer, _ = fitted(env, layout, columns={"task": ["log execution"], "close": []})
    assert scorer.size == 1 + 1 + 1  # a weight and a constant of the tasks, a constant of the end
    everything, _ = fitted(env, layout)
    assert everything.size > scorer.size


def test_errors() -> None:
    env, layout = vector(*PICK)
    observation = next(observations(env, layout))
    scorer, theta = fitted(env, layout)
    with pytest.raises(UnknownName, match="segment 'tasks'; did you mean 'task'"):
        Scorer(layout, ScorerOptions(skip={"tasks": {}}))
    with pytest.raises(UnknownName, match="column 'log executon'; did you mean 'log execution'"):
        Scorer(layout, ScorerOptions(skip={"task": {"log executon": 1.0}}))
    with pytest.raises(UnknownName, match="column 'nothing'"):
        Scorer(layout, ScorerOptions(columns={"task": ["nothing"]}))
    with pytest.raises(InvalidParameter, match="theta: 3 rows do not divide 5 environments"):
        scorer.scores(np.zeros((3, scorer.size), dtype=np.float32), observation)
    with pytest.raises(InvalidParameter, match="statistics: columns 0 must have"):
        Scorer(layout, None, {"columns 0 mean": np.zeros(3)})
    # kernels do not check what they read
    fewer = {**observation, "tasks": observation["tasks"][:, :-1]}
    with pytest.raises(InvalidParameter, match=r"observation: task has not \d+ scores"):
        scorer.scores(theta, fewer)
    narrow = {**observation, "servers": observation["servers"][..., :-1]}
    with pytest.raises(InvalidParameter, match="observation: servers has not 5 features"):
        scorer.scores(theta, narrow)
    blind = {name: array for name, array in observation.items() if name != "action_mask"}
    with pytest.raises(InvalidParameter, match="no action_mask"):
        scorer.scores(theta, blind)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *table(__file__, "test_bad_options"),
        ({"skip": {"task": {"a": 10**400}}}, "skip: task: must map columns to numbers"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidParameter, UnknownName), match=message) as caught:
        ScorerOptions.build(**options)
    assert "\n" not in str(caught.value)


def test_rows_of_another_length_than_the_columns_are_made_of_are_refused() -> None:
    shapes = {"jobs": (5, 20), "servers": (2, 5), "globals": (len(tokens_of("flowtime").globals),)}
    one = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    one |= {"job_mask": np.ones(5, np.int8)}
    scorer = Scorer(layout_of("flowtime", "priority", one))
    with pytest.raises(InvalidParameter, match="made of 4 numbers a row, the environment has 5"):
        scorer.scores(np.zeros(scorer.size), {name: array[np.newaxis] for name, array in one.items()})
