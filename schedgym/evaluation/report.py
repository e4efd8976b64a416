"""The report: one HTML file on all that a results store holds, which opens without a network.

Leaderboards with intervals and gaps to the bound, interactive plots, performance profiles, the schedule of an
episode that is played again, and the manifest. plotly.js, the styles and the script are inlined; a content
security policy allows these scripts by their hashes and nothing else, so that no text of a store can run.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib
import importlib.resources
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from schedgym._version import __version__
from schedgym.core.files import atomic_write, check_output
from schedgym.core.policy import make_policy
from schedgym.drawing import short_time
from schedgym.envs import SchedulingEnv
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName, printable
from schedgym.evaluation.engines import Failure, make_engine
from schedgym.evaluation.episodes import Environments, Result
from schedgym.evaluation.figures import Figure, figure_of, formulas, gantt_figure
from schedgym.evaluation.pictures import COLOURS, DECADE, MARKS, Panel, appearance
from schedgym.evaluation.plan import Entrant, Line, Unit, acting_parameters, setting_of
from schedgym.evaluation.plot import (
    differences_panel,
    effort_panel,
    gaps_panel,
    means_panel,
    profile_panel,
    slices_of,
    sweep_panels,
    swept_name,
)
from schedgym.evaluation.runner import check_keywords, run
from schedgym.evaluation.standings import Board, Entry, Setting, read_boards
from schedgym.evaluation.statistics import FEW, Estimate, judge_interval
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.wording import (
    effort_text,
    estimate_text,
    json_data,
    make_templates,
    number,
    setting_text,
    short_value,
)
from schedgym.extras import require
from schedgym.traces.declaration import FILES

SUFFIXES = (".html", ".htm")
SLOW = 20.0  # s of an episode that is not played again unless it is asked for
SOON, PATIENCE = 120.0, 3600.0  # s after which it is ended, if it is not asked for and if it is
TRUST = "--trust lets the report open the files that the store names"
MOST_VARIANTS = 40  # settings that a plot lets choose from
DIGITS = 9  # of the numbers of a figure


class Which(TypedDict, total=False):
    """The choice of the episodes whose schedules are shown: keyword arguments of :func:`write_report`.

    Attributes:
        policy: label of the policy whose schedule is shown, where it was run; None: the best one's, and the
            reference's.
        episode: number of the episode whose schedule is shown; None: the first.
        seed: seed of that episode; None: the first.
        schedules: False if no episodes are to be played again; True if it is left out.
        trust: True if the files that the store names may be opened to play episodes again: workloads, traces
            and agents; False if it is left out.
    """

    policy: str | None
    episode: int | None
    seed: int | None
    schedules: bool
    trust: bool


def write_report(
    store_path: str | Path,
    output: str | Path,
    *,
    title: str | None = None,
    confidence: float = 0.95,
    code: str | None = None,
    **which: Unpack[Which],
) -> list[str]:
    """Write a report on a results store.

    The schedule shown of each problem is that of the best policy, and of the reference, in the first episode
    of the first setting; these episodes are played again and compared with what the store says of them. That
    happens in a process of its own, which is ended when it takes too long.

    Args:
        store_path: a store of :func:`~schedgym.evaluation.sweeps.run_sweep`.
        output: the file, ``.html``; replaced in one step.
        title: None: of the store's file name.
        confidence: confidence level of all intervals.
        code: version of the code whose results are shown; None: the newest.
        **which: ``policy``, ``episode``, ``seed``, ``schedules`` and ``trust`` of :class:`Which`.

    Returns:
        remarks, one line each, on things that could not be shown, with the reason.

    Raises:
        InvalidParameter: for another kind of file, a confidence out of range, a store without finished units.
        UnknownName: for a policy, episode, seed or version that the store does not have.
        InvalidStore: for a store that cannot be read.
        gymnasium.error.DependencyNotInstalled: without plotly or jinja2 (extra ``report``).
    """
    check_keywords("write_report", which, Which)
    output, store_path = Path(output), Path(store_path)
    check_output(output, SUFFIXES)
    if not 0.0 < confidence < 1.0:
        raise InvalidParameter(f"confidence: must lie between 0 and 1, got {confidence!r}")
    library = str(require("plotly.offline", "report").get_plotlyjs())
    require("jinja2", "report")
    with ResultsStore(store_path, "r") as store:
        boards = read_boards(store, code=code, confidence=confidence)
        failures = store.failed(code)
        if not boards and not failures:
            raise InvalidParameter(f"{store_path}: nothing to report: the store has no finished unit")
        _check_choice(boards, which)
        codes = store.codes()
        page = _Page(boards, failures, store.manifests(), code or codes[0], codes, confidence)
        page.play(which)
        text = page.render(title or f"Results of {store_path.stem}", store_path.name, library)
    with atomic_write(output) as stream:
        stream.write(text)
    return page.remarks


def _check_choice(boards: Sequence[Board], which: Which) -> None:
    policy = which.get("policy")
    policies = {label for board in boards for label in board.policies}
    if policy is not None and policy not in policies:
        raise UnknownName("policy", policy, policies)
    known = {pair for board in boards for setting in board.settings for pair in setting.episodes}
    for kind, value, place in (("seed", which.get("seed"), 0), ("episode", which.get("episode"), 1)):
        if value is not None and value not in {pair[place] for pair in known}:
            raise UnknownName(kind, str(value), {str(pair[place]) for pair in known})


# the page ------------------------------------------------------------------------------------------

#: label, figure, and what is said below the plot when this is chosen
Variant = tuple[str, Figure, str]
Shown = tuple[str, Panel | Figure | None, str]


def _variants(shown: Iterable[Shown]) -> list[Variant]:
    """The variants of a plot that have a panel or a figure."""
    return [
        (label, figure_of(drawn) if isinstance(drawn, Panel) else drawn, remark)
        for label, drawn, remark in shown
        if drawn is not None
    ]


def _counted(count: int, one: str, many: str = "") -> tuple[str, str, str]:
    """A fact of :meth:`_Page.facts`: the number, and what it counts in the singular or plural."""
    return f"{count:,}", one if count == 1 else many or f"{one}s", ""


@dataclasses.dataclass
class _Page:
    """The content of the report; ``remarks`` collects what could not be shown."""

    boards: list[Board]
    failures: Sequence[Mapping[str, Any]]
    manifests: list[dict[str, Any]]
    code: str
    codes: list[str]
    confidence: float
    schedules: dict[int, list[Variant]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.percent = f"{self.confidence:.0%}" if self.confidence < 0.995 else f"{self.confidence:.4g}"
        self.remarks = [
            f"{board.id}: {board.hidden} further settings are not shown; the export has all of them"
            for board in self.boards
            if board.hidden
        ]

    def render(self, title: str, store: str, library: str) -> str:
        """Return the text of the whole file."""
        last = self.manifests[-1] if self.manifests else {}
        script, library = _asset("report.js"), library.replace("</script", "<\\/script")
        gaps = gaps_panel(self.boards, [self.short(board) for board in self.boards])
        plots = {"gaps": _variants([("", *gaps)])}
        for index, board in enumerate(self.boards):
            plots |= self.plots(index, board)
        figures = {
            name: [{"figure": figure, "note": remark} for _, figure, remark in variants]
            for name, variants in plots.items()
            if variants
        }
        text: str = (
            _environment()
            .from_string(_asset("report.html"))
            .render(
                page=self,
                title=title,
                store=store,
                version=__version__,
                date=str(last.get("date", "")).partition("T")[0],
                plots=plots,
                figures=_inline_json({"plots": figures}),
                library=library,
                script=script,
                style=_asset("report.css"),
                policy=f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; "
                "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'",
            )
        )
        return text.lstrip()

    # words -----------------------------------------------------------------------------------------

    def short(self, board: Board) -> str:
        """The id without its namespace, and without its version where that is the only one."""
        name = board.id.rpartition("/")[2]
        bare = name.rpartition("-v")[0] or name
        ids = {other.id for other in self.boards}
        same = [id for id in ids if (id.rpartition("/")[2].rpartition("-v")[0] or id) == bare]
        return bare if len(same) == 1 else name

    def tabs(self) -> list[str]:
        """The name of each board's tab."""
        several = {board.id for board in self.boards if sum(o.id == board.id for o in self.boards) > 1}
        return [
            self.short(board) + (f" ({self.objective(board)})" if board.id in several else "")
            for board in self.boards
        ]

    def objective(self, board: Board) -> str:
        """The name of a board's objective."""
        return board.metric.name.replace("_", " ")

    def unit(self, board: Board) -> str:
        """The objective's unit in brackets, if it has one."""
        return formulas(f" [{board.metric.unit}]") if board.metric.unit else ""

    def colour(self, board: Board, policy: str) -> int:
        """The number of a policy's colour."""
        return board.policies.index(policy) % COLOURS

    def letter(self, board: Board, policy: str) -> str:
        """The mark of a policy in the figure of gaps."""
        return MARKS[appearance(board.policies.index(policy))[0]][2]

    def verdict(self, board: Board, entry: Entry) -> str:
        """Return "good" or "bad" for a policy beside the reference; "" if the difference may be chance."""
        judged = judge_interval(entry.against.relative.low, entry.against.relative.high, board.metric.better)
        return {"better": "good", "worse": "bad"}.get(judged, "")

    def facts(self) -> list[tuple[str, str, str]]:
        """The numbers at the head of the report: (number, what it counts, "bad" or "")."""
        boards = self.boards
        entries = [entry for board in boards for setting in board.settings for entry in setting.entries]
        played = [int((~np.isnan(entry.table)).sum()) for entry in entries]
        seconds = sum(e.seconds * count for e, count in zip(entries, played, strict=True) if e.seconds > 0)
        facts = [
            _counted(len({board.id for board in boards}), "environment"),
            _counted(sum(len(board.settings) for board in boards), "setting"),
            _counted(len({(board.id, p) for board in boards for p in board.policies}), "policy", "policies"),
            _counted(sum(played), "episode played", "episodes played"),
            (effort_text(float(seconds)), "of policies' time", ""),
        ]
        if count := len(self.failures):
            facts.append((*_counted(count, "failed unit")[:2], "bad"))
        return facts

    def overall(self, board: Board) -> list[tuple[Estimate, str, int, int]]:
        """(factor to the best, policy, episodes, times it was first), best first; empty for one setting."""
        found = []
        for policy in board.policies if len(board.settings) > 1 else ():
            estimate = board.overall(policy, self.confidence)
            if not math.isnan(estimate.value):
                own = [(e, s.entries[0]) for s in board.settings if (e := s.entry(policy)) is not None]
                first = sum((e.episodes, e.mean.value) == (b.episodes, b.mean.value) for e, b in own)
                found.append((estimate, policy, sum(e.episodes for e, _ in own), first))
        return sorted(found, key=lambda item: (-item[2], item[0].value))

    def line(self, board: Board, entry: Entry, setting: Setting) -> dict[str, str]:
        """Positions of the mean, the ends of its interval and the bound on a line, and the tooltip's text."""
        mean, bound, width = entry.mean, setting.bound, 110.0
        values = [bound, *(v for e in setting.entries for v in (e.mean.value, e.mean.low, e.mean.high))]
        known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        least, most = min(known), max(known)
        log = least > 0 and most > DECADE * least
        warp = math.log if log else float

        def place(value: float) -> float:
            whole = warp(most) - warp(least)
            return 5 + (width - 10) * ((warp(value) - warp(least)) / whole if whole > 0 else 0.5)

        tip = f"{entry.policy}: {estimate_text(mean)}"
        found = {}
        if math.isfinite(bound):
            found["bound"] = f"{place(bound):.1f}"
            tip += f"\nmean bound {number(bound)}"
        if math.isfinite(mean.low):
            for name, end in (("low", mean.low), ("high", mean.high)):
                found[name] = f"{min(max(place(max(end, least)), 0.0), width):.1f}"
        if math.isfinite(mean.value):
            found["mean"] = f"{place(mean.value):.1f}"
        return found | {"tip": tip + ("\nlogarithmic scale" if log else "")}

    # plots -----------------------------------------------------------------------------------------

    def plots(self, index: int, board: Board) -> dict[str, list[Variant]]:
        """The plots of a board by name: over the swept parameter, of each setting, and a schedule."""
        shown, confidence = board.settings[:MOST_VARIANTS], self.confidence
        whole = "all settings" if len(board.settings) > 1 else ""
        profiles = [(whole, profile_panel(board, board.settings, confidence), "")]
        for setting in shown[: MOST_VARIANTS // 2] if whole else ():
            profiles.append((setting.label, profile_panel(board, [setting], confidence), ""))
        name = swept_name(board) if whole and board.swept else ""
        slices = slices_of(board, name).items() if name else ()
        swept = [(label, own) for label, own in slices if len(own) > 1 or len(slices) == 1]

        def each(panel: Callable[..., Panel | None], *more: Any) -> list[Variant]:
            return _variants((setting.label, panel(board, setting, *more), "") for setting in shown)

        return {
            f"sweep{index}": _variants((at, sweep_panels(board, name, own)[0], "") for at, own in swept),
            f"means{index}": each(means_panel, confidence),
            f"differences{index}": each(differences_panel),
            f"profile{index}": _variants(profiles),
            f"effort{index}": each(effort_panel),
            f"schedule{index}": self.schedules.get(index, []),
        }

    # schedules -------------------------------------------------------------------------------------

    def play(self, which: Which) -> None:
        """Play the chosen episodes again."""
        policy = which.get("policy")
        asked = any(which.get(name) is not None for name in ("policy", "episode", "seed"))
        replays: list[_Replay] = []
        units: list[Unit] = []
        for index, board in enumerate(self.boards if which.get("schedules", True) else ()):
            wanted = [board.settings[0].entries[0].policy, board.reference]
            for label in dict.fromkeys(wanted if policy is None else [policy]):
                found = _choose(index, board, label, which)
                if found is None:
                    continue
                if not asked and found.entry.seconds > SLOW:
                    took = short_time(found.entry.seconds)
                    self.remarks.append(f"{found.where}: takes {took}: name the policy to see its schedule")
                    continue
                try:
                    manifests = self.manifests if which.get("trust") else None
                    units.append(_unit(len(replays), found, board, manifests))
                    replays.append(found)
                except (SchedgymError, OSError) as error:
                    reason = " ".join(str(error).split())
                    self.remarks.append(f"{found.where}: cannot be played again: {reason}")
        engine = make_engine("local", 1, PATIENCE if asked else SOON)
        context = Environments(), SchedulingEnv.record, ()
        for unit, played, _ in run(units, engine, None, False, context) if units else ():
            found = replays[unit.line.entrant.setting]
            if isinstance(played, Failure):
                reason = played.error.strip().splitlines()[-1]
                self.remarks.append(f"{found.where}: cannot be played again: {reason}")
            else:
                self._show(found, unit.line.training_seed, played[0])

    def _show(self, unit: _Replay, training: int | None, played: Result) -> None:
        """Add the schedule of an episode that was played again, by this training of an agent."""
        board, setting = self.boards[unit.board], unit.setting
        figure, note = gantt_figure(played.observed)
        value = played.values[board.metric.name]
        head = f"Seed {unit.seed}, episode {unit.number}"
        head += f", training seed {training}" if training is not None else ""
        head += f", {setting.label}" if setting.label else ""
        row = unit.entry.trainings.index(training) if training is not None else 0
        stored = float(unit.entry.table[row, setting.episodes.index((unit.seed, unit.number))])
        measure = formulas(f" {board.metric.unit}") if board.metric.unit else ""
        check = f"played again: {self.objective(board)} {number(value)}{measure}, as stored"
        if not math.isclose(value, stored, rel_tol=1e-9, abs_tol=1e-12):
            check = check.removesuffix("as stored") + f"but the store says {number(stored)}"
            self.remarks.append(f"{unit.where}: {check}: was it another version of the code?")
        variant = (unit.entry.policy, figure, f"{head}; {check}. {note}")
        self.schedules.setdefault(unit.board, []).append(variant)


# how the page is written ---------------------------------------------------------------------------


@functools.cache
def _environment() -> Any:
    """The templates' environment, with the functions that the page calls."""
    environment = make_templates()
    environment.globals |= {"nan": math.nan, "few": FEW, "most_variants": MOST_VARIANTS, "most_failures": 50}
    environment.tests |= {"nan": math.isnan, "finite": math.isfinite}
    environment.filters |= {
        "formulas": formulas,
        "interval": _interval,
        "json": lambda value: json.dumps(value, indent=2, ensure_ascii=False, default=str),
        "number": number,
        "pairs": _pairs,
        "repr": repr,
        "seconds": effort_text,
        "setting": setting_text,
        "share": "{:.0%}".format,
        "short_value": short_value,
        "thousands": "{:,}".format,
    }
    return environment


def _interval(estimate: Estimate, always: bool = False) -> str:
    """The interval of an estimate in brackets; "" if it has none."""
    if not (always or math.isfinite(estimate.low)):
        return ""
    return f" [{number(estimate.low)}, {number(estimate.high)}]"


def _pairs(values: Mapping[str, Any] | None, between: str) -> str:
    """Names and values in one line, without those that are missing."""
    return ", ".join(f"{k}{between}{v}" for k, v in (values or {}).items() if v not in (None, ""))


def _inline_json(value: Any) -> str:
    """JSON for a script element: no ``<`` can end it."""
    text = json.dumps(json_data(value, DIGITS, printable), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _hash(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _asset(name: str) -> str:
    return importlib.resources.files("schedgym.evaluation").joinpath(name).read_text(encoding="utf-8")


# replays -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class _Replay:
    """An episode to be played again, of the board of this number."""

    board: int
    id: str
    setting: Setting
    entry: Entry
    seed: int
    number: int

    @property
    def where(self) -> str:
        """Its name in remarks."""
        return f"{self.id}, {self.entry.policy}, seed {self.seed}, episode {self.number}"


def _choose(index: int, board: Board, policy: str, which: Which) -> _Replay | None:
    """The first episode of a policy in a board that ``which`` admits."""
    for setting in board.settings:
        entry = setting.entry(policy)
        if entry is not None:
            for (seed, episode), ran in zip(setting.episodes, entry.complete, strict=True):
                if ran and which.get("seed") in (None, seed) and which.get("episode") in (None, episode):
                    return _Replay(index, board.id, setting, entry, seed, episode)
    return None


def _unit(number: int, found: _Replay, board: Board, manifests: Sequence[Mapping[str, Any]] | None) -> Unit:
    """An episode with its policy, and the parameters under which that acts.

    Args:
        number: by which the unit's entrant is known.
        found: the episode.
        board: the board of the episode.
        manifests: they name the files of agents; None: no file that the store names may be opened, and only
            the shipped agent is known.
    """
    entry, parameters, training = found.entry, found.setting.parameters, None
    if board.problem is None:
        raise UnknownName("environment id", board.id, ())
    for name in FILES if manifests is None else ():
        if parameters.get(name) is not None:
            raise InvalidParameter(f"{name}: names the file {parameters[name]!r}: {TRUST}")
    if "agent" in entry.options:
        policy = _find_agent(board.id, entry, manifests)
        policy.name, training = entry.policy, policy.agent.training_seed
    else:
        options = dict(entry.options)
        policy = make_policy(str(options.pop("policy", entry.policy)), board.problem.name, **options)
    acting = acting_parameters(board.problem, board.id, parameters, policy)
    setting = setting_of(board.problem, board.id, parameters, stored=False)
    entrant = Entrant(number, entry.policy, policy, acting)
    return Unit(Line(setting, entry.policy, {}, training, "", entrant), found.seed, found.number, 1)


def _find_agent(id: str, entry: Entry, manifests: Sequence[Mapping[str, Any]] | None) -> Any:
    """The agent whose checksum the store has: the shipped one, or that of a file which a manifest names."""
    agents_of = importlib.import_module("schedgym.agents.agent_policy").agents_of
    named = [
        source
        for manifest in reversed(manifests or ())
        for experiment in (manifest.get("sweep") or {}).get("experiments", ())
        for sources in [(experiment.get("agents") or {}).get(entry.policy, ())]
        for source in ([sources] if isinstance(sources, str) else sources)
    ]
    reason = f"is in a file: {TRUST}" if manifests is None else "no manifest names its file"
    for source in ("pretrained", *named):
        try:
            for policy in agents_of(source, id):
                if policy.agent.sha256 == entry.options["agent"]:
                    return policy
            found = f"{source}: is another agent now"
        except (SchedgymError, OSError) as error:
            found = str(error)
        reason = found if source in named else reason
    raise InvalidParameter(f"agent {entry.policy}: {reason}")
