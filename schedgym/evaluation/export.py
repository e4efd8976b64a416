"""Exports of a results store: every episode's metrics, or the leaderboard with intervals; CSV or Parquet.

Episodes are written setting by setting, so that a store may be larger than the memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from schedgym.core.files import atomic_write, check_output
from schedgym.documents import canonical
from schedgym.errors import InvalidParameter, UnknownName, one_line
from schedgym.evaluation.plan import Setting
from schedgym.evaluation.standings import Board, read_boards
from schedgym.evaluation.store import ResultsStore
from schedgym.extras import require

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".parquet")
TABLES = ("episodes", "leaderboard")
FORMULA = ("=", "+", "-", "@", "|")  # how a text begins that a spreadsheet runs
ESTIMATES = (
    *("mean", "iqm", "gap", "relative_gap", "difference", "relative"),
    *("rival_difference", "rival_relative", "probability"),
)
#: of the columns of both tables; a parameter of the same name gets "parameter." in front
RESERVED = {
    *"id policy training_seed seed episode metric value objective unit better".split(),
    *"trainings episodes bound reference won tied seconds agent rival rival_mean".split(),
    *(f"{name}{end}" for name in ESTIMATES for end in ("", "_low", "_high")),
}


def export(
    store_path: str | Path,
    path: str | Path,
    *,
    table: str = "episodes",
    id: str | None = None,
    code: str | None = None,
    confidence: float = 0.95,
) -> int:
    """Write what a store holds into one file.

    Both tables have a column per parameter that any setting gives; it is empty where another id's setting
    does not, and text (JSON) where values are not of one kind.

    Args:
        store_path: the results store.
        path: ``.csv``, or ``.parquet`` (whose metadata hold the manifests); replaced in one step.
        table: "episodes": a row per policy, episode and metric (also "bound" and "gap"), with the columns id,
            parameters, policy, training_seed, seed, episode, metric, value. "leaderboard": see
            :func:`leaderboard_frame`.
        id: only this environment id, as of :meth:`~schedgym.evaluation.store.ResultsStore.settings`.
        code: version of the code; None: the newest.
        confidence: confidence level of the leaderboard's intervals.

    Returns:
        the number of rows.

    Raises:
        InvalidParameter: for another kind of file, or a store without finished units.
        UnknownName: for a table, id or version that is not there.
        InvalidStore: for a store that cannot be read.
        gymnasium.error.DependencyNotInstalled: for Parquet without pyarrow (extra ``report``).
    """
    path = Path(path)
    check_output(path, SUFFIXES)
    if table not in TABLES:
        raise UnknownName("table", table, TABLES)
    parquet = path.suffix.lower() == ".parquet"
    if parquet:
        require("pyarrow.parquet", "report")
    with ResultsStore(store_path, "r") as store:
        settings = store.settings(code, id)
        if not settings:
            raise InvalidParameter(f"{store_path}: nothing to export: the store has no finished unit")
        names = list(dict.fromkeys(name for setting in settings for name in setting.parameters))
        if table == "episodes":
            frames = _episodes(store, settings, names)
        else:
            boards = read_boards(store, code=code, confidence=confidence, most_settings=len(settings))
            ids = {setting.id for setting in settings}
            frames = iter([leaderboard_frame([board for board in boards if board.id in ids])])
        metadata = {"code": settings[0].code, "manifests": json.dumps(store.manifests())}
        with atomic_write(path, "wb" if parquet else "w") as stream:
            if parquet:
                return _write_parquet(stream, frames, metadata)
            return write_csv(stream, frames)


def _column(name: str) -> str:
    return f"parameter.{name}" if name in RESERVED else name


def _kinds(settings: Sequence[Any], names: Sequence[str]) -> dict[str, str]:
    """Parameter -> the pandas type that holds all its values: numbers stay numbers, all others are text."""
    found = {}
    for name in names:
        values = [s.parameters[name] for s in settings if s.parameters.get(name) is not None]
        types = {type(value) for value in values}
        if types == {bool}:
            found[name] = "boolean"
        elif types == {int} and max(map(abs, values)) < 2**63:
            found[name] = "Int64"
        elif types and types <= {int, float}:
            found[name] = "Float64"
        else:
            found[name] = "string"
    return found


def _value(value: Any, kind: str) -> Any:
    if value is None or kind != "string" or isinstance(value, str):
        return value
    names = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return "+".join(value) if names else canonical(value)


def _episodes(
    store: ResultsStore, settings: Sequence[Setting], names: Sequence[str]
) -> Iterator[pd.DataFrame]:
    """A frame per setting, all with the same columns and types."""
    kinds = _kinds(settings, names)
    types = {"id": "string", **{_column(name): kind for name, kind in kinds.items()}}
    types |= {"policy": "string", "training_seed": "Int64", "seed": "int64", "episode": "int64"}
    types |= {"metric": "string", "value": "float64"}
    for setting in settings:
        given = {_column(n): _value(setting.parameters.get(n), kind) for n, kind in kinds.items()}
        lines = store.contenders(setting)
        parts = [line.tidy({"id": setting.id, **given})[list(types)].astype(types) for line in lines]
        if parts:
            yield require("pandas").concat(parts, ignore_index=True)


def leaderboard_frame(boards: Sequence[Board]) -> pd.DataFrame:
    """The statistics of boards: a row per id, setting and policy, the best mean of a setting first.

    Returns:
        a frame with the columns id, parameters, policy, objective, unit, better, trainings (0: not trained),
        episodes, mean, iqm (interquartile mean), bound, gap, relative_gap (over the bound), reference,
        difference, relative (both to the reference, paired), won, tied, seconds (of the policy, per episode),
        and for agents agent (checksums of the files, a blank between), rival (the best baseline),
        rival_mean, rival_difference, rival_relative and probability (of improvement), see
        :class:`~schedgym.evaluation.statistics.Improvement`; estimates are followed by the ends of their
        intervals, ``_low`` and ``_high``.
    """
    pandas = require("pandas")
    settings = [setting for board in boards for setting in board.settings]
    names = list(dict.fromkeys(name for setting in settings for name in setting.parameters))
    kinds = _kinds(settings, names)
    rows: list[dict[str, Any]] = []
    for board in boards:
        for setting in board.settings:
            for entry in setting.entries:
                bounds = entry.bounds[entry.complete]
                row: dict[str, Any] = {"id": board.id}
                row |= {_column(n): _value(setting.parameters.get(n), k) for n, k in kinds.items()}
                row |= {
                    "policy": entry.policy,
                    "objective": board.metric.name,
                    "unit": board.metric.unit,
                    "better": board.metric.better,
                    "trainings": len(entry.trainings),
                    "episodes": entry.episodes,
                    **entry.mean.row("mean", "mean_"),
                    **entry.middle.row("iqm", "iqm_"),
                    "bound": float(bounds.mean()) if bounds.size else float("nan"),
                    **entry.gap.row("gap", "gap_"),
                    **entry.relative_gap.row("relative_gap", "relative_gap_"),
                    "reference": board.reference,
                    **entry.against.row("difference_"),
                    "seconds": entry.seconds,
                    "agent": " ".join(entry.agents),
                    "rival": entry.improvement.rival,
                    "rival_mean": entry.improvement.rival_mean,
                    **entry.improvement.difference.row("rival_difference", "rival_difference_"),
                    **entry.improvement.relative.row("rival_relative", "rival_relative_"),
                    **entry.improvement.probability.row("probability", "probability_"),
                }
                rows.append(row)
    frame: pd.DataFrame = pandas.DataFrame(rows)
    texts = ("id", "policy", "objective", "unit", "better", "reference", "agent", "rival")
    return frame.astype({**{_column(n): k for n, k in kinds.items()}, **dict.fromkeys(texts, "string")})


def write_csv(stream: IO[Any], frames: Iterable[pd.DataFrame]) -> int:
    """Write frames of the same columns as one table, and return the number of its rows.

    Control characters are shown; texts that a spreadsheet would take for a formula get an apostrophe in
    front, as spreadsheets do.
    """
    rows = 0
    for number, frame in enumerate(frames):
        safe = _with_texts(frame, _cell)
        safe.to_csv(stream, index=False, header=number == 0, lineterminator="\n")
        rows += len(frame)
    return rows


def _with_texts(frame: pd.DataFrame, show: Callable[[str], str]) -> pd.DataFrame:
    """A frame with other texts in its columns and as their names."""
    texts = {
        str(name): column.map(lambda own: show(own) if isinstance(own, str) else own).astype(column.dtype)
        for name, column in frame.items()
        if column.dtype.kind == "O"
    }
    return frame.assign(**texts).rename(columns=show)


def _cell(text: str) -> str:
    text = one_line(text)
    if text.startswith(FORMULA):
        try:
            float(text)
        except ValueError:
            return f"'{text}"
    return text


def _write_parquet(stream: IO[Any], frames: Iterator[pd.DataFrame], metadata: Mapping[str, str]) -> int:
    arrow, parquet = require("pyarrow", "report"), require("pyarrow.parquet", "report")
    rows, writer, schema = 0, None, None
    try:
        for frame in frames:
            table = arrow.Table.from_pandas(_with_texts(frame, one_line), schema=schema, preserve_index=False)
            if writer is None:
                own = {f"schedgym.{name}": text for name, text in metadata.items()}
                schema = table.schema.with_metadata({**(table.schema.metadata or {}), **own})
                writer = parquet.ParquetWriter(stream, schema, compression="zstd")
            writer.write_table(table.cast(schema))
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows
