"""Pictures of a board: what each shows, as panels, and the picture of a comparison as a file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.files import check_output
from schedgym.errors import InvalidParameter
from schedgym.evaluation.canvas import FORMATS, NARROW, draw_panels, save_figure
from schedgym.evaluation.comparison import Evaluation
from schedgym.evaluation.pictures import Line, Panel, Series, axis_of, swept_axis
from schedgym.evaluation.standings import Board, Entry, Setting, board_of
from schedgym.evaluation.statistics import Estimate, estimate
from schedgym.evaluation.wording import change_text, estimate_text, metric_text, setting_texts, short_value

WIDTH = 11.5  # inches
MOST_GAPS = 12  # settings of an id in the panel of gaps
APART = 0.45  # of a row's height, in which the gaps of its policies lie one below the other
FAR = 5.0  # times the best, from where on a profile has a logarithmic axis


def plot_comparison(
    evaluation: Evaluation,
    path: str | Path,
    *,
    reference: str | None = None,
    metric: str | None = None,
    title: str | None = None,
    subtitle: str = "",
    confidence: float = 0.95,
    width: float = WIDTH,
) -> None:
    """Draw a comparison into one picture.

    One setting: each policy's episodes with their quartiles, mean and interval, the bound, and each
    episode's ratio to the reference. A sweep: means with bands over the first swept parameter, the bound,
    and the ratios; a row of panels per combination of the other swept parameters. Ratios stand on a
    logarithmic axis; where a value is not positive, differences are drawn.

    Args:
        evaluation: result of :func:`~schedgym.evaluation.runner.compare`.
        path: ``.png``, ``.svg`` or ``.pdf``; replaced in one step.
        reference: policy that differences refer to; None: the id's, or the first one.
        metric: None: the objective.
        title: None: the id's title; "": neither title nor subtitle.
        subtitle: a second line.
        confidence: confidence level of the intervals.
        width: in inches; below 7, as in the column of a paper, panels stand below one another.

    Raises:
        InvalidParameter: for another kind of file, an empty result, or a width below 2.5.
        UnknownName: for a reference or a metric that it does not have.
        gymnasium.error.DependencyNotInstalled: without matplotlib.
    """
    check_output(path, FORMATS)
    if evaluation.frame.empty:
        raise InvalidParameter("nothing to draw: the result is empty")
    if not 2.5 <= width <= 40:
        raise InvalidParameter(f"width: must be from 2.5 to 40 inches, got {width}")
    board = board_of(evaluation, reference, metric, confidence)
    wide = width >= NARROW
    if board.swept:
        height = 3.7 if wide else 0.7 * width
        panels = [
            dataclasses.replace(panel, title=text if place == 0 else "")
            for text, settings in slices_of(board, board.swept[0]).items()
            for place, panel in enumerate(sweep_panels(board, board.swept[0], settings))
        ]
    else:
        (setting,) = board.settings
        differences = differences_panel(board, setting)
        panels = [means_panel(board, setting, confidence), *([differences] if differences else [])]
        height = 0.8 + (0.52 if wide else 0.27) * len(panels[0].rows)
    if title is None:
        title = evaluation.problem.ids[evaluation.id].title
    interval = f"{confidence * 100:g}% interval"
    figure = draw_panels(panels, width, height, title=title, subtitle=subtitle, interval=interval)
    save_figure(figure, path)


def _bound_name(board: Board) -> str:
    return "upper bound" if board.metric.better == "max" else "lower bound"


# one setting ---------------------------------------------------------------------------------------


def _strip(own: Series, row: int, values: Floats, mean: Estimate, told: str) -> list[Series]:
    """The values of a row with their middle half, and their mean with its interval.

    Args:
        own: label, number and texts of the values.
        row: number of the row.
        values: [episodes].
        mean: their mean.
        told: what is said of it.
    """

    def series(kind: str, x: list[float], *ends: list[float], texts: Sequence[str] = ()) -> Series:
        low, high = ends or (None, None)
        return dataclasses.replace(own, x=x, y=[row] * len(x), low=low, high=high, kind=kind, texts=texts)

    found = []
    if len(values) > 1:
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        found.append(series("dots", values.tolist(), texts=own.texts))
        found.append(series("halves", [middle], [low], [high]))
    return [*found, series("means", [mean.value], [mean.low], [mean.high], texts=[told])]


def means_panel(board: Board, setting: Setting, confidence: float) -> Panel:
    """The episodes of each policy with their middle half, mean and interval, and the bounds."""
    rows, series = [entry.policy for entry in setting.entries], []
    for row, entry in enumerate(setting.entries):
        names = [
            f"{entry.policy}, seed {seed}, episode {episode}"
            + (f", training seed {training}" if training is not None else "")
            for training in (entry.trainings or (None,))
            for seed, episode in setting.episodes
        ]
        values = entry.table.ravel()
        known = np.flatnonzero(~np.isnan(values)).tolist()
        texts = [f"{names[i]}\n{values[i]:.5g}" for i in known]
        own = Series(entry.policy, [], [], number=board.policies.index(entry.policy), texts=texts)
        told = f"{entry.policy}\nmean {estimate_text(entry.mean)}"
        told += f"\ninterquartile mean {estimate_text(entry.middle)}"
        series += _strip(own, row, values[known], entry.mean, told)
    label = f"{metric_text(board.metric)} of each episode"
    panel = Panel(label, "", series, kind="means", x_scale="value", rows=rows)
    if math.isnan(setting.bound):
        return panel
    name, bounds = _bound_name(board), setting.entries[0].bounds
    if axis_of(panel, "x").scale == "log" and not (bounds > 0).any():
        return dataclasses.replace(panel, rows=[*rows, f"{name}: 0"])  # off the axis
    mean = estimate(bounds, confidence=confidence)
    own = Series(name, [], [], bound=True, number=len(board.policies))
    series += _strip(own, len(rows), bounds, mean, f"{name}\nmean {estimate_text(mean)}")
    line = Line("x", mean.value, bound=f"mean {name}")
    return dataclasses.replace(panel, rows=[*rows, name], series=series, lines=[line])


def _ratios(board: Board, settings: Iterable[Setting]) -> bool:
    """True if all values are positive: policies are then compared by ratios."""
    entries = [entry for setting in settings for entry in setting.entries]
    paired = [entry for entry in entries if math.isfinite(entry.against.difference.value)]
    relative = all(math.isfinite(entry.against.relative.value) for entry in paired)
    return relative and not any((entry.table <= 0).any() for entry in entries)


def _compared(entry: Entry, ratios: bool) -> Estimate:
    """The difference to the reference, or the ratio to it."""
    own = entry.against.relative
    return Estimate(1 + own.value, 1 + own.low, 1 + own.high) if ratios else entry.against.difference


def _compared_label(board: Board, ratios: bool) -> str:
    if ratios:
        return f"{board.metric.name.replace('_', ' ')} / that of {board.reference}"
    return f"difference to {board.reference}: {metric_text(board.metric)}"


def differences_panel(board: Board, setting: Setting) -> Panel | None:
    """Each policy's paired differences to the reference, or ratios, with their mean; None without any."""
    base, series, remarks = setting.entry(board.reference), [], []
    if base is None or len(setting.entries) < 2:
        return None
    ratios, rival = _ratios(board, [setting]), base.table.mean(axis=0)
    for row, entry in enumerate(setting.entries):
        mean = _compared(entry, ratios)
        if entry is base or not math.isfinite(mean.value):
            remarks.append("reference" if entry is base else "")
            continue
        values = ((entry.table / rival) if ratios else (entry.table - rival)).ravel()
        remarks.append(change_text(mean, ratios))
        told = f"{entry.policy}\n{remarks[-1]}\nbetter in {entry.against.won:.0%} of the episodes"
        own = Series(entry.policy, [], [], number=board.policies.index(entry.policy))
        told += f", equal in {entry.against.tied:.0%}"
        series += _strip(own, row, values[~np.isnan(values)], mean, told)
    better = "more" if board.metric.better == "max" else "less"
    return Panel(
        f"{_compared_label(board, ratios)} ({better} is better)",
        "",
        series,
        kind="means",
        x_scale="ratio" if ratios else "difference",
        rows=[entry.policy for entry in setting.entries],
        remarks=remarks,
        lines=[Line("x", float(ratios))],
    )


def effort_panel(board: Board, setting: Setting) -> Panel | None:
    """The objective over the time that a policy takes in an episode; None without times."""
    entries = [e for e in setting.entries if e.seconds > 0 and math.isfinite(e.mean.value)]
    if len(entries) < 2:
        return None
    series = [
        Series(
            entry.policy,
            [entry.seconds],
            [entry.mean.value],
            number=board.policies.index(entry.policy),
            texts=[f"{entry.policy}\n{estimate_text(entry.mean)}\n{entry.seconds:.3g} s per episode"],
        )
        for entry in entries
    ]
    means, lines = [entry.mean.value for entry in entries], []
    if 0.5 * min(means) <= setting.bound <= 2 * max(means):
        lines = [Line("y", setting.bound, bound=f"mean {_bound_name(board)}")]
    return Panel(
        "policy time per episode",
        metric_text(board.metric, mean=True),
        series,
        kind="points",
        x_scale="time",
        y_scale="value",
        y_from_zero=False,
        lines=lines,
    )


# several settings ----------------------------------------------------------------------------------


def swept_name(board: Board) -> str:
    """The parameter over which means are drawn: the first with several numbers, else the first."""
    axes = {name: swept_axis([own.parameters.get(name) for own in board.settings]) for name in board.swept}
    return next((name for name, axis in axes.items() if axis != "category"), board.swept[0])


def slices_of(board: Board, name: str) -> dict[str, list[Setting]]:
    """The settings that differ in one parameter only, by the text of the others."""
    found: dict[str, list[Setting]] = {}
    kept = [own for own in board.swept if own != name]
    others = [{k: v for k, v in own.parameters.items() if k in kept} for own in board.settings]
    for text, setting in zip(setting_texts(others), board.settings, strict=True):
        found.setdefault(text, []).append(setting)
    return found


def sweep_panels(board: Board, name: str, settings: Sequence[Setting]) -> list[Panel]:
    """Means with bands over a swept parameter, and the bound; and the differences to the reference."""
    scale = swept_axis([own.parameters.get(name) for own in board.settings])
    values: list[Any] = [own.parameters.get(name) for own in settings]
    if scale == "category":
        texts = list(map(short_value, values))
        values = texts if len(set(texts)) == len(texts) else list(map(str, values))
    else:
        settings = sorted(settings, key=lambda own: float(own.parameters[name]))
        values = sorted(map(float, values))
    ratios = _ratios(board, board.settings)
    means: list[Series] = []
    differences: list[Series] = []
    for number, policy in enumerate(board.policies):
        found = [
            (x, own) for x, setting in zip(values, settings, strict=True) if (own := setting.entry(policy))
        ]
        dots = [(x, y) for x, entry in found for y in entry.table.ravel().tolist() if not math.isnan(y)]
        at = [x for x, _ in dots]
        means.append(Series(policy, at, [y for _, y in dots], kind="dots", number=number))
        means.append(_band(policy, number, {x: entry.mean for x, entry in found}))
        if policy != board.reference:
            shown = {x: _compared(entry, ratios) for x, entry in found}
            differences.append(_band(policy, number, shown))
    labels = name.replace("_", " "), metric_text(board.metric, mean=True)
    panel = Panel(*labels, means, x_scale="log" if scale == "log" else "linear", y_scale="value", apart=True)
    bounds = [setting.bound for setting in settings]
    if any(map(math.isfinite, bounds)):
        hidden = axis_of(panel, "y").scale == "log" and min(bounds) <= 0
        text = _bound_name(board) + (" (0: off the axis)" if hidden else "")
        told = [f"{_bound_name(board)}: {bound:.5g}" for bound in bounds]
        bound = Series(text, values, bounds, bound=True, number=len(board.policies), texts=told)
        panel = dataclasses.replace(panel, series=[*means, bound])
    beside = dataclasses.replace(
        panel,
        y_label=_compared_label(board, ratios),
        series=differences,
        y_scale="ratio" if ratios else "difference",
        lines=[Line("y", float(ratios), number=board.policies.index(board.reference))],
    )
    return [panel, beside]


def _band(policy: str, number: int, found: dict[Any, Estimate]) -> Series:
    """Estimates over a swept parameter."""
    y, low, high = ([getattr(own, end) for own in found.values()] for end in ("value", "low", "high"))
    told = [f"{policy}: {estimate_text(own)}" for own in found.values()]
    return Series(policy, list(found), y, low, high, number=number, texts=told)


def profile_panel(board: Board, settings: Sequence[Setting], confidence: float) -> Panel | None:
    """Performance profiles: the share of episodes within a factor of the episode's best policy."""
    chosen = dataclasses.replace(board, settings=list(settings))
    ratios = [stratum.ravel() for policy in board.policies for stratum in chosen.strata(policy)]
    known = np.concatenate([*ratios, np.empty(0)])
    known = known[np.isfinite(known)]  # infinitely worse than a best value of 0
    if not known.size:
        return None
    largest = max(1.02 * float(np.quantile(known, 0.99)), 1.02)
    far = largest > FAR
    thresholds = np.geomspace(1.0, largest, 120) if far else np.linspace(1.0, largest, 120)
    series = []
    for number, policy in enumerate(board.policies):
        profile = chosen.profile(policy, thresholds, confidence)
        if profile is not None:
            share, low, high = (values.tolist() for values in profile)
            told = [f"{policy}: {own:.0%} of the episodes" for own in share]
            series.append(Series(policy, thresholds.tolist(), share, low, high, number=number, texts=told))
    labels = "factor to the best policy of the episode", "share of episodes within it"
    return Panel(*labels, series, kind="steps", x_scale="log" if far else "linear", y_scale="share")


def gaps_panel(boards: Sequence[Board], names: Sequence[str]) -> tuple[Panel | None, str]:
    """Every policy's mean gap to the bound with its interval, a row per board (of these names) and setting.

    Returns:
        the panel, None if nothing is bounded; and a sentence on the settings and policies that it leaves out.
    """
    rows: list[str] = []
    series: list[Series] = []
    missing: list[str] = []
    for board, name in zip(boards, names, strict=True):
        more = len(board.settings) - MOST_GAPS
        if more > 0:
            missing.append(f"{name}, all but the first {MOST_GAPS} settings ({more} more)")
        for setting in board.settings[:MOST_GAPS]:
            row = name + (f", {setting.label}" if setting.label else "")
            entries = [e for e in setting.entries if math.isfinite(e.relative_gap.value)]
            lost = [e for e in setting.entries if not math.isfinite(e.relative_gap.value)]
            if lost:
                zero = any(math.isfinite(e.gap.value) for e in lost)
                whom = f": {', '.join(e.policy for e in lost)}" if entries else ""
                missing.append(f"{row}{whom} ({'the bound is 0' if zero else 'no bound is known'})")
            heights = len(rows) + APART * np.linspace(-1, 1, len(entries) + 2)[1:-1]
            for entry, y in zip(entries, heights.tolist(), strict=True):
                gap, place = entry.relative_gap, board.policies.index(entry.policy)
                x, low, high = ([100 * part] for part in (gap.value, gap.low, gap.high))
                text = f"{entry.policy}\n{row}\ngap {estimate_text(gap, 100, '%')}"
                series.append(Series(entry.policy, x, [y], low, high, number=place, texts=[text]))
            rows += [row] if entries else []
    remark = f"Left out: {'; '.join(missing)}." if missing else ""
    if not rows:
        return None, remark
    label = "mean gap [% of the bound]"
    return Panel(label, "", series, kind="points", x_scale="value", rows=rows), remark
