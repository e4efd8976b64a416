"""The report: one HTML file on all that a results store holds, which opens without a network.

Leaderboards with intervals and gaps to the bound, interactive plots, performance profiles, the schedule of an
episode that is played again, and the manifest. plotly.js, the styles and the script are inlined; a content
security policy allows these scripts by their hashes and nothing else, so that no text of a store can run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib
import importlib.resources
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym._version import __version__
from schedgym.core.files import atomic_write
from schedgym.core.policy import make_policy
from schedgym.core.record import ScheduleRecord
from schedgym.drawing import JOB_COLOURS
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName
from schedgym.evaluation import require
from schedgym.evaluation.figures import (
    COLOURS,
    Figure,
    difference_figure,
    effort_figure,
    gantt_figure,
    gap_figure,
    mean_figure,
    number,
    profile_figure,
    sweep_figures,
)
from schedgym.evaluation.runner import acting_parameters, make_env, play
from schedgym.evaluation.standings import Board, Entry, Estimate, Setting, read_boards, setting_text
from schedgym.evaluation.store import ResultsStore

__all__ = ["write_report"]

SUFFIXES = (".html", ".htm")
SLOW = 20.0  # s of an episode that is not played again unless it is asked for
FEW = 8  # episodes; bootstrap intervals of fewer are noticeably too narrow
MOST_FAILURES = 50
MOST_VARIANTS = 40  # settings that a plot lets choose from
DIGITS = 9  # of the numbers of a figure


def write_report(
    store_path: str | Path,
    output: str | Path,
    *,
    policy: str | None = None,
    episode: int | None = None,
    seed: int | None = None,
    title: str | None = None,
    confidence: float = 0.95,
    code: str | None = None,
    schedules: bool = True,
) -> list[str]:
    """Write a report on a results store.

    The schedule shown of each problem is that of the best policy, and of the reference, in the first episode
    of the first setting; these episodes are played again and compared with what the store says of them.

    Args:
        store_path: of :func:`~schedgym.evaluation.sweeps.run_sweep`.
        output: the file, ``.html``; replaced in one step.
        policy: label of the policy whose schedule is shown, where it was run.
        episode: number of the episode whose schedule is shown; None: the first.
        seed: of that episode; None: the first.
        title: None: of the store's file name.
        confidence: of all intervals.
        code: version of the code whose results are shown; None: the newest.
        schedules: whether episodes are played again at all.

    Returns:
        remarks, one line each: what could not be shown, and why.

    Raises:
        InvalidParameter: for another kind of file, a confidence out of range, a store without finished units.
        UnknownName: for a policy, episode, seed or version that the store does not have.
        InvalidStore: for a store that cannot be read.
        gymnasium.error.DependencyNotInstalled: without plotly (extra ``report``).
    """
    output, store_path = Path(output), Path(store_path)
    if output.suffix.lower() not in SUFFIXES:
        raise InvalidParameter(f"{output}: a report ends in {' or '.join(SUFFIXES)}")
    if not 0.0 < confidence < 1.0:
        raise InvalidParameter(f"confidence: must lie between 0 and 1, got {confidence!r}")
    library = str(require("plotly.offline", "report").get_plotlyjs())
    with ResultsStore(store_path, "r") as store:
        boards = read_boards(store, code=code, confidence=confidence)
        failures = store.failed(code)
        if not boards and not failures:
            raise InvalidParameter(f"{store_path}: nothing to report: the store has no finished unit")
        _check_choice(boards, policy, episode, seed)
        codes = store.codes()
        page = _Page(boards, failures, store.manifests(), code or codes[0], codes, confidence)
        page.play(policy, episode, seed, schedules)
        text = page.render(title or f"Results of {store_path.stem}", store_path.name, library)
    with atomic_write(output) as stream:
        stream.write(text)
    return page.remarks


def _check_choice(boards: Sequence[Board], policy: str | None, episode: int | None, seed: int | None) -> None:
    policies = {label for board in boards for label in board.policies}
    if policy is not None and policy not in policies:
        raise UnknownName("policy", policy, policies)
    known = {pair for board in boards for setting in board.settings for pair in setting.episodes}
    for kind, value, place in (("seed", seed, 0), ("episode", episode, 1)):
        if value is not None and value not in {pair[place] for pair in known}:
            raise UnknownName(kind, str(value), {str(pair[place]) for pair in known})


# text ----------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    """Escaped for element content and for attributes in quotes."""
    return html.escape(str(value), quote=True)


def _tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; ``content`` is HTML already, attributes are text (``_``: a hyphen; None: left out)."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{content}</{name}>"


def _estimate_cell(
    estimate: Estimate,
    factor: float = 1.0,
    unit: str = "",
    kind: str = "",
    tip: str | None = None,
    digits: int = 4,
) -> str:
    """A table cell with a number and, lighter, its interval."""
    value = estimate.value * factor
    if math.isnan(value):
        return '<td data-value="">–</td>'
    signed = "+" if kind and value > 0 else ""
    shown = _tag(
        "span", _text(f"{signed}{number(value, digits=digits)}{unit}"), class_=kind if kind.strip() else None
    )
    if math.isfinite(estimate.low):
        low, high = (number(end * factor, value, digits) for end in (estimate.low, estimate.high))
        shown += _tag("span", _text(f"[{low}, {high}]"), class_="range")
    if tip:
        shown = _tag("span", shown, data_tip=tip, tabindex="0")
    return _tag("td", shown, data_value=repr(value))


def _number_cell(value: float, text: str | None = None) -> str:
    if math.isnan(value):
        return '<td data-value="">–</td>'
    return _tag("td", _text(number(value) if text is None else text), data_value=repr(value))


def _heading(text: str, tip: str, kind: str = "") -> str:
    button = _tag("button", _text(text), type="button", data_tip=tip)
    return _tag("th", button, scope="col", class_=kind or None)


def _duration(seconds: float) -> str:
    for name, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.1f} s"


def _seconds(value: float) -> str:
    if value >= 100:
        return _duration(value)
    if value >= 0.1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-4 else f"{value * 1e6:.3g} µs"


def _compact(value: Any) -> Any:
    """JSON values of a figure: shorter numbers, null for what is not finite."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _compact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_compact(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _inline_json(value: Any) -> str:
    """JSON for a script element: no ``<`` can end it."""
    text = json.dumps(_compact(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _hash(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _asset(name: str) -> str:
    return importlib.resources.files("schedgym.evaluation").joinpath(name).read_text(encoding="utf-8")


# the page ------------------------------------------------------------------------------------------


class _Page:
    """What the report says; ``remarks`` collects what it cannot."""

    def __init__(
        self,
        boards: list[Board],
        failures: Sequence[Mapping[str, Any]],
        manifests: list[dict[str, Any]],
        code: str,
        codes: list[str],
        confidence: float,
    ) -> None:
        self.boards, self.failures, self.manifests = boards, failures, manifests
        self.code, self.codes = code, codes
        self.confidence = confidence
        self.remarks: list[str] = []
        self.plots: dict[str, list[dict[str, Any]]] = {}
        self.schedules: dict[int, list[tuple[str, Figure, str]]] = {}
        self.entries = [entry for board in boards for setting in board.settings for entry in setting.entries]
        for board in boards:
            if board.hidden:
                self.remarks.append(
                    f"{board.id}: {board.hidden} further settings are not shown; the export has all of them"
                )

    @property
    def percent(self) -> str:
        return f"{self.confidence:.0%}" if self.confidence < 0.995 else f"{self.confidence:.4g}"

    def short(self, board: Board) -> str:
        """The id without its namespace, and without its version where that is the only one."""
        name = board.id.rpartition("/")[2]
        bare = name.rpartition("-v")[0] or name
        ids = {other.id for other in self.boards}
        same = [id for id in ids if (id.rpartition("/")[2].rpartition("-v")[0] or id) == bare]
        return bare if len(same) == 1 else name

    # schedules -------------------------------------------------------------------------------------

    def play(self, policy: str | None, episode: int | None, seed: int | None, schedules: bool) -> None:
        """Play the chosen episodes again."""
        if not schedules:
            return
        for index, board in enumerate(self.boards):
            wanted = (
                [policy] if policy is not None else [board.settings[0].entries[0].policy, board.reference]
            )
            asked = policy is not None or episode is not None or seed is not None
            for label in dict.fromkeys(wanted):
                found = _choose(board, str(label), episode, seed)
                if found is None:
                    continue
                setting, entry, (seed_, number_) = found
                where = f"{board.id}, {label}, seed {seed_}, episode {number_}"
                if not asked and entry.seconds > SLOW:
                    self.remarks.append(
                        f"{where}: takes {_duration(entry.seconds)}: name the policy to see its schedule"
                    )
                    continue
                try:
                    training, record, value = _replay(board, setting, entry, seed_, number_, self.manifests)
                    assert board.problem is not None
                    figure, note = gantt_figure(record, board.problem.schema)
                except (SchedgymError, OSError, RuntimeError, ImportError) as error:
                    self.remarks.append(f"{where}: cannot be played again: {' '.join(str(error).split())}")
                    continue
                head = f"Seed {seed_}, episode {number_}"
                head += f", training seed {training}" if training is not None else ""
                head += f", {setting.label}" if setting.label else ""
                row = entry.trainings.index(training) if training is not None else 0
                stored = float(entry.table[row, setting.episodes.index((seed_, number_))])
                name = board.metric.name.replace("_", " ")
                unit = f" {board.metric.unit}" if board.metric.unit else ""
                check = f"played again: {name} {number(value)}{unit}, as stored"
                if not math.isclose(value, stored, rel_tol=1e-9, abs_tol=1e-12):
                    check = f"played again: {name} {number(value)}{unit}, but the store says {number(stored)}"
                    self.remarks.append(f"{where}: {check}: was it another version of the code?")
                self.schedules.setdefault(index, []).append(
                    (entry.policy, figure, f"{head}; {check}. {note}")
                )

    # plots -----------------------------------------------------------------------------------------

    def card(
        self,
        name: str,
        title: str,
        note: str,
        variants: Sequence[tuple[str, Figure | None, str]],
        choose: str = "Setting",
    ) -> str:
        """A plot with its variants (label, figure, remark); "" without any."""
        known = [(label, figure, remark) for label, figure, remark in variants if figure is not None]
        if not known:
            return ""
        self.plots[name] = [{"figure": figure, "note": remark} for _, figure, remark in known]
        head = _tag("h3", _text(title))
        if len(known) > 1:
            options = "".join(_tag("option", _text(label), value=i) for i, (label, _, _) in enumerate(known))
            select = _tag("select", options, data_plot=name, aria_label=f"{choose} of: {title}")
            head += _tag("label", _text(choose) + select, class_="pick")
        body = _tag("div", head, class_="head")
        if note:
            body += _tag("p", _text(note), class_="note")
        if any(remark for _, _, remark in known):
            body += _tag("p", _text(known[0][2]), class_="note", id=f"note-{name}")
        assert known[0][1] is not None
        height = known[0][1]["layout"]["height"]
        place = _tag("div", "", class_="plot", data_plot=name, style=f"height:{height:g}px", role="figure")
        return _tag("div", body + place, class_="card")

    def board_plots(self, index: int, board: Board) -> str:
        shown = board.settings[:MOST_VARIANTS]
        several = len(board.settings) > 1
        interval = f"{self.percent} interval"
        parts = []
        sweeps = sweep_figures(board)
        parts.append(
            self.card(
                f"sweep{index}",
                "Over the swept parameter",
                f"Means with their {interval}; click a name to hide it, twice to see it alone.",
                [(label, figure, "") for label, figure in sweeps.items()],
                "At",
            )
        )
        sweep = parts.pop()
        parts.append(
            self.card(
                f"means{index}",
                "Episodes and means",
                f"A dot is an episode, the diamond the mean with its {interval}.",
                [(s.label, mean_figure(board, s), "") for s in shown],
            )
        )
        parts.append(
            self.card(
                f"differences{index}",
                f"Paired difference to {board.reference}",
                f"Mean over the same episodes, with its {interval}; where that leaves out 0, chance does "
                "not explain it.",
                [(s.label, difference_figure(board, s), "") for s in shown],
            )
        )
        profiles: list[tuple[str, Figure | None, str]] = [
            ("all settings" if several else "", profile_figure(board, board.settings, self.confidence), "")
        ]
        if several:
            profiles += [
                (s.label, profile_figure(board, [s], self.confidence), "")
                for s in shown[: MOST_VARIANTS // 2]
            ]
        parts.append(
            self.card(
                f"profile{index}",
                "Performance profile",
                "In what share of the episodes a policy comes within a factor of the episode's best; "
                f"higher is better. Bands: {self.percent}, pointwise, resampled within each setting.",
                profiles,
            )
        )
        parts.append(
            self.card(
                f"effort{index}",
                "Quality and decision time",
                "The mean time that a policy takes for all decisions of an episode.",
                [(s.label, effort_figure(board, s), "") for s in shown],
            )
        )
        schedule = self.card(
            f"schedule{index}", "Schedule of an episode", "", self.schedules.get(index, []), "Policy"
        )
        return sweep + _tag("div", "".join(parts), class_="grid") + schedule

    # tables ----------------------------------------------------------------------------------------

    def dot(self, board: Board, policy: str) -> str:
        return _tag("span", "", class_=f"dot c{board.policies.index(policy) % COLOURS}")

    def name_cell(self, board: Board, entry: Entry) -> str:
        inner = self.dot(board, entry.policy) + _text(entry.policy)
        if entry.policy == board.reference:
            inner += _tag(
                "span", "reference", class_="tag", data_tip="Differences refer to it.", tabindex="0"
            )
        if entry.trainings:
            n = len(entry.trainings)
            tip = "Trained with several seeds: the training is the unit of its intervals."
            if n == 1:
                tip = "One training: its intervals are over episodes, and say nothing of another training."
            label = f"{n} trainings" if n > 1 else "1 training"
            inner += _tag("span", label, class_="tag", data_tip=tip, tabindex="0")
        return _tag("td", inner, class_="text policy", data_value=entry.policy)

    def gap_cell(self, board: Board, entry: Entry) -> str:
        unit = f" {board.metric.unit}" if board.metric.unit else ""
        if math.isnan(entry.relative_gap.value):
            return _estimate_cell(entry.gap, 1.0, unit)
        tip = f"{number(entry.gap.value)}{unit}"
        if math.isfinite(entry.gap.low):
            tip += f" [{number(entry.gap.low)}, {number(entry.gap.high)}]"
        return _estimate_cell(entry.relative_gap, 100.0, " %", tip=tip, digits=3)

    def leaderboard(self, index: int, board: Board) -> str:
        several = len(board.settings) > 1
        metric = board.metric
        unit = f" [{metric.unit}]" if metric.unit else ""
        less = "more is better" if metric.better == "max" else "less is better"
        interval = f"{self.percent} interval"
        side = "upper" if metric.better == "max" else "lower"
        heads = [_heading("#", "Rank of the mean in its setting.")]
        if several:
            heads.append(_heading("Setting", "The parameters that differ between settings.", "text setting"))
        heads += [
            _heading("Policy", "In the colour of the plots.", "text"),
            _heading(
                f"Mean{unit}",
                f"{metric.help or metric.name}; {less}.\nIn brackets its {interval}: BCa bootstrap over "
                "episodes; over trainings and episodes where an agent was trained several times.",
            ),
            _tag("th", "", aria_label="interval, drawn"),
            _heading(
                "IQM",
                "Interquartile mean: that of the middle half of the episodes, whatever the extreme ones are.",
            ),
            _heading(
                "Gap to bound",
                f"Distance of the mean from the mean {side} bound on the optimum, in percent of the bound: "
                "no policy could gain more.",
            ),
            _heading(
                f"To {board.reference}",
                f"Mean paired difference in percent of the reference's mean, with its {interval}.",
            ),
            _heading("Better in", "Share of the episodes in which it is strictly better than the reference."),
            _heading("Episodes", "That it finished, and met by every one of its trainings."),
            _heading("Decisions", "Mean time that it takes for all decisions of an episode."),
        ]
        rows = []
        for place, setting in enumerate(board.settings):
            scale = _scale(setting)
            for rank, entry in enumerate(setting.entries, 1):
                rows.append(self.row(board, setting, entry, rank, place, scale, several))
        table = _tag(
            "table",
            _tag("thead", _tag("tr", "".join(heads))) + _tag("tbody", "".join(rows)),
            id=f"table{index}",
        )
        head = _tag("h3", "Leaderboard")
        if several:
            options = _tag("option", "all settings", value="all")
            options += "".join(
                _tag("option", _text(s.label), value=i, selected="" if i == 0 else None)
                for i, s in enumerate(board.settings)
            )
            head += _tag(
                "label",
                "Setting"
                + _tag("select", options, data_table=f"table{index}", aria_label="Setting of the table"),
                class_="pick",
            )
        bounds = [s.bound for s in board.settings if math.isfinite(s.bound)]
        objective = metric.name.replace("_", " ")
        note = f"Objective: {objective}{unit}; {less}. Brackets: {interval}."
        if bounds:
            mark = "grey tick" if not several else "grey ticks"
            note += f" The {mark} in the drawn intervals: the mean {side} bound"
            note += (
                f" ({number(bounds[0])}{' ' + metric.unit if metric.unit else ''})." if not several else "."
            )
        else:
            note += " There is no bound on this objective here."
        fewest = min((e.episodes for s in board.settings for e in s.entries), default=0)
        body = _tag("div", head, class_="head") + _tag("p", _text(note), class_="note")
        if fewest < FEW:
            body += _tag(
                "p",
                _text(f"Intervals of fewer than {FEW} episodes are noticeably too narrow."),
                class_="note",
            )
        return _tag("div", body + _tag("div", table, class_="scroll"), class_="card long")

    def row(
        self,
        board: Board,
        setting: Setting,
        entry: Entry,
        rank: int,
        place: int,
        scale: tuple[float, float],
        several: bool,
    ) -> str:
        cells = [_number_cell(rank, str(rank))]
        if several:
            cells.append(
                _tag("td", _text(setting.label), class_="text wide setting", data_value=setting.label)
            )
        cells.append(self.name_cell(board, entry))
        cells.append(_estimate_cell(entry.mean))
        cells.append(
            _tag("td", _drawn(board, entry, setting.bound, scale), data_value=repr(entry.mean.value))
        )
        tip = f"{self.percent} interval [{number(entry.middle.low)}, {number(entry.middle.high)}]"
        cells.append(_estimate_cell(Estimate(entry.middle.value), tip=tip))
        cells.append(self.gap_cell(board, entry))
        kind = " "
        if math.isfinite(entry.relative.low) and (entry.relative.low > 0 or entry.relative.high < 0):
            kind = "good" if (entry.relative.value > 0) == (board.metric.better == "max") else "bad"
        cells.append(_estimate_cell(entry.relative, 100.0, " %", kind, digits=3))
        tie = f" ({entry.tied:.0%} equal)" if entry.tied > 0 else ""
        cells.append(_number_cell(entry.won, f"{entry.won:.0%}{tie}" if not math.isnan(entry.won) else None))
        total = len(setting.episodes)
        count = f"{entry.episodes:,}" + (f" of {total:,}" if entry.episodes < total else "")
        cells.append(_number_cell(entry.episodes, count))
        shown = _seconds(entry.seconds) if math.isfinite(entry.seconds) else None
        cells.append(_number_cell(entry.seconds, shown))
        return _tag("tr", "".join(cells), class_="best" if rank == 1 else None, data_setting=place)

    def overall(self, board: Board) -> str:
        """The table over all settings; "" for a single one."""
        if len(board.settings) < 2:
            return ""
        found = []
        for policy in board.policies:
            estimate = board.overall(policy, self.confidence)
            if math.isnan(estimate.value):
                continue
            entries = [e for s in board.settings if (e := s.entry(policy)) is not None]
            first = sum(s.entries[0].policy == policy for s in board.settings)
            found.append((estimate, policy, len(entries), first))
        if not found:
            return ""
        found.sort(key=lambda item: item[0].value)
        heads = [
            _heading("#", "Rank of the interquartile mean."),
            _heading("Policy", "In the colour of the plots.", "text"),
            _heading(
                "Factor to the best",
                "Interquartile mean, over the episodes of all settings, of the factor by which it is worse "
                "than the episode's best policy (1: it is the best). Brackets: "
                f"{self.percent} interval, stratified bootstrap: episodes (of agents: trainings and "
                "episodes) are resampled within each setting.",
            ),
            _heading("Settings", "In how many it ran."),
            _heading("First in", "In how many its mean is the best."),
        ]
        rows = []
        for rank, (estimate, policy, count, first) in enumerate(found, 1):
            cells = _number_cell(rank, str(rank))
            cells += _tag(
                "td", self.dot(board, policy) + _text(policy), class_="text policy", data_value=policy
            )
            cells += (
                _estimate_cell(estimate) + _number_cell(count, str(count)) + _number_cell(first, str(first))
            )
            rows.append(_tag("tr", cells, class_="best" if rank == 1 else None))
        table = _tag("table", _tag("thead", _tag("tr", "".join(heads))) + _tag("tbody", "".join(rows)))
        head = _tag("div", _tag("h3", "Over all settings"), class_="head")
        return _tag("div", head + _tag("div", table, class_="scroll"), class_="card")

    # panels ----------------------------------------------------------------------------------------

    def overview(self) -> str:
        episodes = sum(int((~np.isnan(entry.table)).sum()) for entry in self.entries)
        seconds = sum(e.seconds * (~np.isnan(e.table)).sum() for e in self.entries if e.seconds > 0)
        facts = [
            (f"{len({board.id for board in self.boards}):,}", "environments", ""),
            (f"{sum(len(board.settings) for board in self.boards):,}", "settings", ""),
            (f"{len({(board.id, p) for board in self.boards for p in board.policies}):,}", "policies", ""),
            (f"{episodes:,}", "episodes played", ""),
            (_duration(float(seconds)), "of decisions", ""),
        ]
        if self.failures:
            facts.append(
                (f"{len(self.failures):,}", f"failed unit{'s' if len(self.failures) > 1 else ''}", "bad")
            )
        body = _tag(
            "div",
            "".join(
                _tag("div", _tag("b", _text(b)) + _tag("span", _text(s)), class_=f"fact {kind}".strip())
                for b, s, kind in facts
            ),
            class_="facts",
        )
        others = len(self.codes) - 1
        if others > 0:
            plural = "s" if others > 1 else ""
            body += _tag(
                "p",
                _text(
                    f"The store also holds results of {others} other version{plural} of the code; shown are "
                    f"those of {self.code}, as results of several versions are not compared."
                ),
                class_="warn",
            )
        for remark in self.remarks:
            body += _tag("p", _text(remark), class_="warn")
        if self.boards:
            body += self.summary()
        body += self.card(
            "gaps",
            "Gaps to the bound",
            "Every policy's mean gap to the bound on the optimum, which no schedule beats. Touch a mark for "
            "the policy's name.",
            [("", gap_figure(self.boards, [self.short(board) for board in self.boards]), "")],
        )
        return body + self.failed()

    def summary(self) -> str:
        heads = [
            _heading("Environment", "Its id; the tab has the whole leaderboard.", "text"),
            _heading("Setting", "The parameters that differ between settings.", "text"),
            _heading("Best policy", "By the mean of the objective.", "text"),
            _heading("Mean", "Of the objective."),
            _heading("Objective", "What the rewards sum to, up to the sign.", "text"),
            _heading("Gap", "Distance of the mean from the bound on the optimum, in percent of the bound."),
            _heading("To reference", "Mean paired difference to the id's reference policy, in percent."),
        ]
        rows = []
        for board in self.boards:
            for setting in board.settings[:MOST_VARIANTS]:
                best = setting.entries[0]
                short = self.short(board)
                objective = board.metric.name.replace("_", " ")
                objective += f" [{board.metric.unit}]" if board.metric.unit else ""
                label = setting.label or "–"
                kind = " "
                if math.isfinite(best.relative.low) and (best.relative.low > 0 or best.relative.high < 0):
                    gained = (best.relative.value > 0) == (board.metric.better == "max")
                    kind = "good" if gained else "bad"
                rows.append(
                    _tag(
                        "tr",
                        _tag("td", _text(short), class_="text", data_value=short)
                        + _tag("td", _text(label), class_="text wide", data_value=label)
                        + _tag(
                            "td",
                            self.dot(board, best.policy) + _text(best.policy),
                            class_="text policy",
                            data_value=best.policy,
                        )
                        + _estimate_cell(best.mean)
                        + _tag("td", _text(objective), class_="text", data_value=objective)
                        + self.gap_cell(board, best)
                        + _estimate_cell(
                            best.relative, 100.0, " %", kind, f"reference: {board.reference}", 3
                        ),
                        class_="best",
                    )
                )
        table = _tag("table", _tag("thead", _tag("tr", "".join(heads))) + _tag("tbody", "".join(rows)))
        head = _tag("div", _tag("h3", "Best policy of each problem"), class_="head")
        note = _tag("p", _text(f"Brackets: {self.percent} intervals."), class_="note")
        return _tag("div", head + note + _tag("div", table, class_="scroll"), class_="card")

    def failed(self) -> str:
        if not self.failures:
            return ""
        items = ""
        for unit in self.failures[:MOST_FAILURES]:
            error = str(unit["error"] or "").strip()
            last = error.splitlines()[-1] if error else "no message"
            setting = setting_text(unit["setting"])
            what = f"{unit['id']}, {unit['policy'] or 'bounds'}, seed {unit['seed']}"
            last_episode = unit["first"] + unit["episodes"] - 1
            what += f", episodes {unit['first']}–{last_episode}" + (f", {setting}" if setting else "")
            items += _tag("details", _tag("summary", _text(f"{what}: {last}")) + _tag("pre", _text(error)))
        if len(self.failures) > MOST_FAILURES:
            items += _tag("p", _text(f"and {len(self.failures) - MOST_FAILURES:,} more"), class_="note")
        plural = "s" if len(self.failures) > 1 else ""
        head = _tag("h3", _text(f"{len(self.failures):,} unit{plural} failed"))
        return _tag("div", _tag("div", head, class_="head") + items, class_="card")

    def board_panel(self, index: int, board: Board) -> str:
        title = board.variant.title if board.variant else board.id
        body = _tag("h2", _text(title))
        lead = _tag("code", _text(board.id))
        if board.problem is not None:
            lead += " · " + _text(board.problem.source)
        body += _tag("p", lead, class_="lead")
        chips = "".join(
            _tag(
                "span", _text(name) + " " + _tag("b", _text(setting_text({name: value}).partition(" = ")[2]))
            )
            for name, value in board.common.items()
        )
        if chips:
            body += _tag("div", chips, class_="chips")
        return body + self.leaderboard(index, board) + self.overall(board) + self.board_plots(index, board)

    def manifest(self) -> str:
        body = _tag("h2", "Manifest") + _tag(
            "p", "What these results were made with, so that they can be made again.", class_="lead"
        )
        if not self.manifests:
            body += _tag("p", "The store has no manifest.", class_="warn")
        for place, manifest in enumerate(reversed(self.manifests[-20:])):
            machine, git = manifest.get("machine") or {}, manifest.get("git")
            versions = manifest.get("versions") or {}
            pairs: list[tuple[str, str]] = [
                ("command", _tag("code", _text(manifest.get("command", "–")))),
                ("date", _text(manifest.get("date", "–"))),
                ("versions", _text(", ".join(f"{k} {v}" for k, v in versions.items() if v))),
            ]
            if isinstance(git, Mapping):
                changed = ", with changes since" if git.get("modified") else ""
                pairs.append(("commit", _tag("code", _text(git.get("commit", ""))) + _text(changed)))
            pairs.append(("seeds", _text(", ".join(map(str, manifest.get("seeds") or [])) or "–")))
            if isinstance(machine, Mapping):
                pairs.append(
                    (
                        "machine",
                        _text(", ".join(f"{k}: {v}" for k, v in machine.items() if v not in (None, ""))),
                    )
                )
            inner = _tag("dl", "".join(_tag("dt", _text(k)) + _tag("dd", v) for k, v in pairs))
            raw = json.dumps(manifest, indent=2, ensure_ascii=False, default=str)
            inner += _tag("details", _tag("summary", "as JSON") + _tag("pre", _text(raw)))
            name = "Last run" if place == 0 else f"Run {len(self.manifests) - place}"
            body += _tag("div", _tag("div", _tag("h3", name), class_="head") + inner, class_="card")
        return body + self.sources()

    def sources(self) -> str:
        """How the numbers were made."""
        items = [
            "Policies of one episode met the same workload; differences are taken within the episode.",
            f"Intervals ({self.percent}) of means: bias-corrected and accelerated bootstrap over episodes "
            "(Efron 1987). Where an agent was trained with several seeds, trainings and episodes are both "
            "resampled, percentiles (Owen 2007): more episodes of one training are no more trainings.",
            "Interquartile means and performance profiles: stratified bootstrap, percentiles (Agarwal et al. "
            "2021; profiles of ratios: Dolan and Moré 2002).",
            "Bounds hold for every schedule of the episode's workload: the optimum lies between the bound "
            "and the best policy.",
        ]
        head = _tag("div", _tag("h3", "How the numbers were made"), class_="head")
        return _tag(
            "div", head + "".join(_tag("p", _text(item), class_="note") for item in items), class_="card"
        )

    def render(self, title: str, store: str, library: str) -> str:
        """The whole file."""
        names = ["overview"]
        labels = ["Overview"]
        panels = [self.overview()]
        for index, board in enumerate(self.boards):
            short = self.short(board)
            if sum(other.id == board.id for other in self.boards) > 1:
                short += f" ({board.metric.name.replace('_', ' ')})"
            names.append(short)
            labels.append(short)
            panels.append(self.board_panel(index, board))
        names.append("manifest")
        labels.append("Manifest")
        panels.append(self.manifest())
        tabs = "".join(
            _tag(
                "button",
                _text(label),
                type="button",
                role="tab",
                id=f"tab{i}",
                aria_controls=f"panel{i}",
                aria_selected="true" if i == 0 else "false",
                data_name=name,
            )
            for i, (name, label) in enumerate(zip(names, labels, strict=True))
        )
        body = "".join(
            _tag("section", panel, class_="panel", role="tabpanel", id=f"panel{i}", aria_labelledby=f"tab{i}")
            for i, panel in enumerate(panels)
        )
        last = self.manifests[-1] if self.manifests else {}
        date = str(last.get("date", "")).partition("T")[0]
        sub = [_tag("b", _text(store)), _text(f"schedgym {__version__}")]
        if date:
            sub.append(_text(date))
        sub.append(_text(f"results of {self.code}"))
        script, style = _asset("report.js"), _asset("report.css")
        library = library.replace("</script", "<\\/script")
        data = _inline_json(
            {"jobs": ["#{:02x}{:02x}{:02x}".format(*colour) for colour in JOB_COLOURS], "plots": self.plots}
        )
        policy = (
            f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; style-src 'unsafe-inline'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        )
        return "".join(
            (
                '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
                f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
                '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
                f'<meta name="generator" content="schedgym {_text(__version__)}">\n',
                '<link rel="icon" href="data:,">\n',
                f"<title>{_text(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n",
                _tag(
                    "header",
                    _tag(
                        "div",
                        _tag("h1", _text(title)) + _tag("p", " · ".join(sub), class_="sub"),
                        class_="wrap",
                    ),
                ),
                "\n<nav>",
                _tag("div", _tag("div", tabs, class_="tabs", role="tablist"), class_="wrap"),
                "</nav>\n<main>",
                _tag("div", body, class_="wrap"),
                "</main>\n<footer>",
                _tag("div", "Written by schedgym; this file needs no network.", class_="wrap"),
                '</footer>\n<div id="tip" role="tooltip"></div>\n',
                f'<script type="application/json" id="plots">{data}</script>\n',
                f"<script>{library}</script>\n<script>{script}</script>\n</body>\n</html>\n",
            )
        )


def _scale(setting: Setting) -> tuple[float, float]:
    """The range of the drawn intervals of a setting."""
    values = [setting.bound]
    for entry in setting.entries:
        values += [entry.mean.value, entry.mean.low, entry.mean.high]
    known = [value for value in values if math.isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 1.0)


def _drawn(board: Board, entry: Entry, bound: float, scale: tuple[float, float]) -> str:
    """The mean, its interval and the bound on a line, as SVG."""
    width, low, high = 110.0, *scale
    log = low > 0 and high > 40 * low

    def place(value: float) -> float:
        if high <= low:
            return width / 2
        share = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
        return 5 + (width - 10) * share

    parts = f'<line class="track" x1="0" x2="{width:g}" y1="9" y2="9"/>'
    if math.isfinite(bound):
        parts += f'<line class="low" x1="{place(bound):.1f}" x2="{place(bound):.1f}" y1="3" y2="15"/>'
    if math.isfinite(entry.mean.low):
        ends = [min(max(place(max(end, low)), 0.0), width) for end in (entry.mean.low, entry.mean.high)]
        parts += f'<line class="range" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="9" y2="9"/>'
    if math.isfinite(entry.mean.value):
        style = f"s{board.policies.index(entry.policy) % COLOURS}"
        parts += f'<circle class="{style}" cx="{place(entry.mean.value):.1f}" cy="9" r="4.5"/>'
    tip = f"{entry.policy}: {number(entry.mean.value)}"
    if math.isfinite(entry.mean.low):
        tip += f" [{number(entry.mean.low)}, {number(entry.mean.high)}]"
    if math.isfinite(bound):
        tip += f"\nmean bound {number(bound)}"
    if log:
        tip += "\nlogarithmic scale"
    size = f'width="{width:g}" height="18" viewBox="0 0 {width:g} 18"'
    said = f'data-tip="{_text(tip)}" tabindex="0" role="img" aria-label="{_text(tip)}"'
    return f'<svg class="bar" {size} {said}>{parts}</svg>'


# replays -------------------------------------------------------------------------------------------


def _choose(
    board: Board, policy: str, episode: int | None, seed: int | None
) -> tuple[Setting, Entry, tuple[int, int]] | None:
    """The first setting in which a policy ran an episode like this, and that episode."""
    for setting in board.settings:
        entry = setting.entry(policy)
        for pair, ran in zip(setting.episodes, entry.complete if entry is not None else (), strict=False):
            if ran and seed in (None, pair[0]) and episode in (None, pair[1]):
                assert entry is not None
                return setting, entry, pair
    return None


def _replay(
    board: Board,
    setting: Setting,
    entry: Entry,
    seed: int,
    episode: int,
    manifests: Sequence[Mapping[str, Any]],
) -> tuple[int | None, ScheduleRecord, float]:
    """Play an episode again: the training that it is of, its schedule and its objective."""
    training: int | None = None
    if board.problem is None:
        raise UnknownName("environment id", board.id, ())
    if "agent" in entry.options:
        policy = _find_agent(board.id, entry, manifests)
        training = policy.agent.metadata["training"].get("seed")
        policy.name = entry.policy
    else:
        options = dict(entry.options)
        policy = make_policy(str(options.pop("policy", entry.policy)), board.problem.name, **options)
    acting = acting_parameters(board.problem, board.id, setting.parameters, policy)
    env = make_env(board.id, acting)
    outcome = play(env, policy, seed=seed, episode=episode, label=entry.policy)
    return training, env.record(), outcome.metrics[board.metric.name]


def _find_agent(id: str, entry: Entry, manifests: Sequence[Mapping[str, Any]]) -> Any:
    """An agent whose file a manifest names, and whose checksum the store has."""
    make_agent = importlib.import_module("schedgym.agents.policy").make_agent
    reason = "no manifest names its file"
    for manifest in reversed(manifests):
        for experiment in (manifest.get("sweep") or {}).get("experiments", ()):
            sources = (experiment.get("agents") or {}).get(entry.policy, ())
            for source in [sources] if isinstance(sources, str) else sources:
                try:
                    policy = make_agent(source, id)
                except (SchedgymError, OSError) as error:
                    reason = str(error)
                    continue
                if policy.agent.sha256 == entry.options["agent"]:
                    return policy
                reason = f"{source}: is another agent now"
    raise InvalidParameter(f"agent {entry.policy}: {reason}")
