"""``schedgym.advise``: which policy serves a cluster best, by its own log, and how sure that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from schedgym.core.policy import get_policy_spec, resolve_policy_name
from schedgym.core.problem import Problem, get_problem
from schedgym.core.tokens import tokens_of
from schedgym.documents import check_whole
from schedgym.errors import InvalidParameter
from schedgym.evaluation.advice_page import text_of
from schedgym.evaluation.logs import Part, Run, cut, fitting, loads, run, select
from schedgym.evaluation.reading import How as Reading
from schedgym.evaluation.reading import read_log, size_text
from schedgym.evaluation.replays import LEFT_OUT, Replay, compare_with_record, own_tasks
from schedgym.evaluation.runner import check_keywords, count_processes
from schedgym.evaluation.statistics import bootstrap_interval, ratio_interval
from schedgym.evaluation.stretch import Stretch, find_stretch
from schedgym.evaluation.wording import four_digits, interval_text, time_text
from schedgym.extras import require
from schedgym.traces.base import LeftOut, Trace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Advice", "Comparison", "How", "advise"]

Floats = npt.NDArray[np.float64]

RAMP = (1.5, 2.0, 4.0)
FURTHER = (8.0, 16.0, 32.0, 64.0)  # where policies do not differ up to there
NEGLIGIBLE = 1e-3  # of the median duration: a shorter mean wait is none
AGENT = "agent"
PAIRS = 4_000  # of visible jobs and machines that the agent looks at in a decision: some ms
FEWEST, MOST_VISIBLE = 8, 64  # jobs that it sees
RELATIVE = 0.01  # a smaller difference is none


class How(Reading, total=False):
    """Keyword arguments of :func:`advise`: those of :class:`schedgym.evaluation.reading.How`, and these.

    Attributes:
        policies: names of policies that take part beside those that every log is replayed with; none.
        agent: whether the pretrained agent takes part, if there is one; True.
        n_jobs: processes; -1, the default, means one per core. The result does not depend on it.
        seed: of the sample of a long log, and of random policies; 0.
        progress: True if a bar may show on stderr after two seconds; None: if stderr is a terminal.
    """

    policies: Sequence[str]
    agent: bool
    n_jobs: int
    seed: int
    progress: bool | None


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Policies on the log at so many times its load.

    Attributes:
        factor: number by which the times between arrivals were divided.
        reference: the policy that differences refer to.
        run: outcomes of the tasks.
        knows: policy -> what it must know beyond sizes, e.g. "execution".
    """

    factor: float
    reference: str
    run: Run
    knows: Mapping[str, str]

    def table(self) -> pd.DataFrame:
        """A row per policy, the best first.

        Columns: policy; mean (of the windows' mean waits [s]) with low and high (95% interval); p95 and
        longest wait of a task; difference (to the reference's mean [s], negative: shorter) with
        difference_low and difference_high, paired by window; relative (the same over the reference's mean)
        with relative_low and relative_high, nan where that mean may be 0; bound (least mean wait [s] that any
        policy could reach); knows; seconds (that the policy took to decide). The intervals of differences
        are those of :meth:`against`.
        """
        base = self.run.means(self.reference)
        rows = []
        for policy, waits in self.run.outcomes.items():
            means = self.run.means(policy)
            low, high = bootstrap_interval(means)
            relative = float((means - base).mean() / base.mean()) if base.mean() > 0 else np.nan
            bounds = (np.nan, np.nan)
            if base.mean() > 0:
                bounds = ratio_interval(means - base, base, self._confidence)
            difference = self.against(policy, self.reference)
            rows.append(
                {
                    "policy": policy,
                    **{"mean": float(means.mean()), "low": low, "high": high},
                    **{"p95": float(np.quantile(waits, 0.95)), "longest": float(waits.max())},
                    **dict(zip(("difference", "difference_low", "difference_high"), difference, strict=True)),
                    **{"relative": relative, "relative_low": bounds[0], "relative_high": bounds[1]},
                    "bound": self.run.bound,
                    "knows": self.knows[policy],
                    "seconds": self.run.seconds[policy],
                }
            )
        rows.sort(key=lambda row: (row["mean"], row["policy"] != self.reference))
        frame: pd.DataFrame = require("pandas").DataFrame(rows)
        return frame

    def against(self, policy: str, other: str) -> tuple[float, float, float]:
        """Difference of mean waits, policy minus other, with its interval, paired by window [s].

        Intervals of the differences of all policies to one of them are widened so that together they hold
        with 95% (Bonferroni): the best policy is chosen in the same windows in which it is tested.
        """
        difference = self.run.means(policy) - self.run.means(other)
        return (float(difference.mean()), *bootstrap_interval(difference, self._confidence))

    @property
    def _confidence(self) -> float:
        return 1.0 - 0.05 / max(len(self.run.outcomes) - 1, 1)

    @property
    def differ(self) -> bool:
        """Whether any policy differs from the reference by more than 1%, beyond chance (:meth:`against`)."""
        least = RELATIVE * float(self.run.means(self.reference).mean())
        for policy in self.run.outcomes:
            difference, low, high = self.against(policy, self.reference)
            if (low > 0 or high < 0) and abs(difference) > least:
                return True
        return False


@dataclasses.dataclass(frozen=True, eq=False)
class Advice:
    """What :func:`advise` found; ``print`` shows it.

    Attributes:
        read: what was read, line by line.
        comparison: the policies at the log's own load.
        ramp: the same at higher loads, where next to nothing waits at its own.
        replay: waits against those recorded; None where the log has no starts.
        verdict: one sentence: which policy, by how much, how sure.
        notes: what to bear in mind.
        problem: the problem that the log feeds.
        others: problem -> why the log does not feed it.
        stretch: of the log, with its schedules under the best policy and under the reference, at the highest
            load that was run.
    """

    read: tuple[str, ...]
    comparison: Comparison
    ramp: tuple[Comparison, ...]
    replay: Replay | None
    verdict: str
    notes: tuple[str, ...]
    problem: str
    others: Mapping[str, str]
    stretch: Stretch

    def __str__(self) -> str:
        return text_of(self)

    def content(self) -> dict[str, Any]:
        """All of it as JSON data."""
        found: dict[str, Any] = {
            "problem": self.problem,
            "read": list(self.read),
            "verdict": self.verdict,
            "notes": list(self.notes),
            "others": dict(self.others),
            "loads": [
                {"factor": one.factor, "reference": one.reference, "policies": one.table().to_dict("records")}
                for one in (self.comparison, *self.ramp)
            ],
        }
        if self.replay is not None:
            found["replay"] = {
                "verdict": self.replay.verdict,
                "credible": self.replay.credible,
                "waits": self.replay.table().to_dict("records"),
                "by_hour": self.replay.by_hour().to_dict("records"),
                "left_out": list(LEFT_OUT),
            }
        return found


def advise(log: Any, **how: Unpack[How]) -> Advice:
    """Say which policy serves a cluster best, by replaying its log at its own load.

    The log's tasks arrive at a cluster of the given machines, and each policy decides where and when they
    start. Results are compared window by window of the log. Nothing of the log is scaled, unless next to
    nothing waits: then it is also run at higher loads, up to the one at which policies differ.

    Args:
        log: a file (CSV, TSV, Parquet, or of a trace format that is known), a pandas data frame, or a
            :class:`~schedgym.traces.Trace`.
        **how: see :class:`How`: ``columns``, ``machines`` or ``servers``, ``cpus`` and ``memory``, ...

    Returns:
        an :class:`Advice`.

    Raises:
        TraceFormatError: when the log or the file of machines breaks its format.
        InvalidParameter, UnknownName: for an argument that is wrong, or when the machines are not known.
        FileNotFoundError: when there is no such file.
        gymnasium.error.DependencyNotInstalled: without the extra ``eval``.
    """
    check_keywords("advise", how, How)
    seed = how.get("seed", 0)
    check_whole(seed, "seed", 0)
    reading = {name: value for name, value in how.items() if name in Reading.__annotations__}
    read = read_log(log, cast("Reading", reading))
    trace = read.trace
    processes = count_processes(how.get("n_jobs", -1))
    problem = get_problem("queue-delay")
    fits = fitting(trace)
    if not fits.any():
        raise InvalidParameter("machines: no job of the log fits any of them")
    left_out = list(trace.left_out)
    if not fits.all():
        left_out.append(_too_large(trace, fits))
        trace = select(trace, fits)
    parts = cut(trace, seed)
    lines = (*read.lines, *_facts(trace, read.trace.rows, left_out, parts))
    policies, knows, note = _policies(problem, len(trace.machine_cores), how)
    reference = problem.module("log").REFERENCE
    own: dict[str, Any] = {"seed": seed, "n_jobs": processes, "progress": how.get("progress")}
    comparison = Comparison(1.0, reference, run(problem, parts, policies, **own), knows)
    idle = _idle(trace, comparison)
    ramp: tuple[Comparison, ...] = ()
    if idle and len(comparison.run.windows) > 1:
        ramp = _ramp(problem, trace, parts, comparison, policies, own)
    tasks = own_tasks(parts)
    last = ramp[-1] if ramp else comparison
    shown = tuple(dict.fromkeys((last.table().iloc[0]["policy"], reference)))
    replayed = {name: comparison.run.outcomes[name] for name in problem.module("log").REPLAYED}
    return Advice(
        lines,
        comparison,
        ramp,
        compare_with_record(tasks, replayed),
        _verdict(comparison, ramp, trace) if idle else _best(comparison),
        (*note, *_notes(trace, comparison, parts)),
        problem.name,
        _others(trace),
        find_stretch(last.run, parts, shown, reference),
    )


# what was read -------------------------------------------------------------------------------------


def _too_large(trace: Trace, fits: npt.NDArray[np.bool_]) -> LeftOut:
    first = int(np.argmax(~fits))
    size = size_text(trace, f"{trace.cores[first]:g}", f"{trace.memory[first]:g}")
    when = time_text(float(trace.arrival[first] - trace.arrival[0]))
    detail = f"the first needs {size}, {when} after the log begins"
    return LeftOut("fits no machine", int((~fits).sum()), 0, "", detail)


def _facts(trace: Trace, rows: int, left_out: Sequence[LeftOut], parts: Sequence[Part]) -> list[str]:
    count = len(trace.arrival)
    lines = [f"rows: {rows}, of which {count} are jobs"]
    for one in left_out:
        lines.append(
            f"left out: {one}" if one.line else f"left out: {one.count} rows: {one.reason}: {one.detail}"
        )
    counted = {one.reason for one in left_out}
    lines += [f"left out: {n} rows: {why}" for why, n in trace.dropped.items() if n and why not in counted]
    lines += [f"{name}: taken as 0 in {n} jobs" for name, n in trace.filled.items() if n]
    span = float(trace.arrival[-1] - trace.arrival[0])
    lines.append(f"span: {time_text(span)} between the first and the last submission{_since(trace)}")
    found = loads(trace)
    cores, memory = trace.machine_cores, trace.machine_memory
    limit = four_digits(float(memory.sum())) if memory.any() else ""
    size = f"{len(cores)} machines, {size_text(trace, four_digits(float(cores.sum())), limit)}"
    size += "" if limit else ", memory not limited"
    texts = [f"{name} {100 * load:.3g}%" for name, load in found.items()]
    none = "none, as jobs take nothing" if span > 0 else "unknown, as all jobs come at once"
    lines.append(f"machines: {size}; offered load: {', '.join(texts) or none}")
    if len(parts) > 1 or parts[0].carried:
        run_tasks = sum(len(part.trace.arrival) - part.carried for part in parts)
        lines.append(
            f"sampled: {run_tasks} of the {count} jobs, in {len(parts)} parts of the log; each part begins "
            "with the jobs that run then, and no queue"
        )
    return lines


def _since(trace: Trace) -> str:
    if not trace.origin:
        return ""
    pandas = require("pandas")
    first = pandas.Timestamp(trace.origin) + pandas.Timedelta(seconds=float(trace.arrival[0]))
    return f", from {first.strftime('%Y-%m-%d %H:%M:%S')} UTC"


def _others(trace: Trace) -> dict[str, str]:
    """Why the log does not feed the other problems."""
    return {
        "partial-value": "needs a value of each job beside its deadline",
        "geo": "needs, of each task, the sites that hold its data"
        if not len(trace.site)
        else "needs slots of sites",
        "flowtime": "needs work that may be interrupted, which no column says",
        "parallel-jct": "needs the network between machines, and energy",
    }


# what is run ---------------------------------------------------------------------------------------


def _policies(
    problem: Problem, machines: int, how: How
) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Label -> policy, label -> what it knows, and a note on the agent."""
    log = problem.module("log")
    names = [resolve_policy_name(name, problem.name) for name in (*log.POLICIES, *how.get("policies", ()))]
    policies: dict[str, Any] = {name: name for name in (n.removeprefix(f"{problem.name}/") for n in names)}
    knows = {name: ", ".join(get_policy_spec(name, problem.name).knows) for name in policies}
    if not how.get("agent", True):
        return policies, knows, ()
    if machines * FEWEST > 8 * PAIRS:
        return policies, knows, (f"The agent is left out: {machines} machines would take it too long.",)
    from schedgym.agents.policy import make_agent

    trained = make_agent("pretrained", log.ID)
    note: tuple[str, ...] = ()
    if "window" in tokens_of(problem.name).acting:
        window = int(np.clip(PAIRS // machines, FEWEST, MOST_VISIBLE))
        trained.environment = {**trained.environment, "window": window}
        note = (f"The agent sees the first {window} waiting jobs; it was trained on a synthetic workload.",)
    knows[AGENT] = "execution"
    return {AGENT: trained, **policies}, knows, note  # it takes longest, so it begins


def _idle(trace: Trace, comparison: Comparison) -> bool:
    """Whether next to nothing waits under the reference; under other policies jobs may wait all the same."""
    return comparison.reference not in _waiting(trace, comparison)


def _waiting(trace: Trace, comparison: Comparison) -> set[str]:
    """The policies under which the mean wait is not negligible."""
    least = NEGLIGIBLE * float(np.median(trace.duration))
    run = comparison.run
    return {policy for policy in run.outcomes if not float(run.means(policy).mean()) < least}


def _ramp(
    problem: Problem,
    trace: Trace,
    parts: Sequence[Part],
    own: Comparison,
    policies: Mapping[str, Any],
    how: Mapping[str, Any],
) -> tuple[Comparison, ...]:
    """The policies but the agent at higher loads, up to the first at which they differ."""
    found: list[Comparison] = []
    names = {label: policy for label, policy in policies.items() if label != AGENT}
    most = _all_at_once(trace)
    for factor in RAMP if most <= 1.0 else (*RAMP, *FURTHER):
        result = run(problem, parts, names, factor, **how)
        found.append(Comparison(factor, own.reference, result, own.knows))
        if found[-1].differ and not _idle(trace, found[-1]):
            break
    return tuple(found)


def _all_at_once(trace: Trace) -> float:
    """Share of the machines that all tasks would take together, of the resource that they take most of."""
    shares = [trace.cores.sum() / trace.machine_cores.sum()]
    if trace.machine_memory.any():
        shares.append(trace.memory.sum() / trace.machine_memory.sum())
    return float(max(shares))


# what is said --------------------------------------------------------------------------------------


def _verdict(own: Comparison, ramp: Sequence[Comparison], trace: Trace) -> str:
    """The sentence on a log in which next to nothing waits."""
    shares = loads(trace).values()
    load = f" ({100 * max(shares):.3g}%)" if shares else ""
    waiting = _waiting(trace, own)
    whom = "whatever the policy" if not waiting else f"under {own.reference}"
    if waiting == {AGENT}:
        whom = "under every policy but the agent"
    text = f"Next to nothing waits at the log's own load{load}, {whom}"
    if not ramp:
        return f"{text}; whether policies differ at a higher load cannot be told from so few jobs."
    last = ramp[-1]
    if not last.differ or _idle(trace, last):
        if _idle(trace, last):
            text += f"; nor at {last.factor:g} times that load, under {own.reference}"
        else:
            text += f"; policies do not differ at {last.factor:g} times that load either"
        share = _all_at_once(trace)
        return text + (
            "." if share > 1 else f", and all its jobs at once would take {100 * share:.3g}% of it."
        )
    return f"{text}; policies begin to differ at {last.factor:g} times that load, where: {_best(last)}"


def _best(comparison: Comparison) -> str:
    """The sentence on the best policy."""
    table = comparison.table()
    first, second = table.iloc[0], table.iloc[1]
    name, reference, windows = first["policy"], comparison.reference, len(comparison.run.windows)
    mean, low, high = time_text(first["mean"]), first["difference_low"], first["difference_high"]
    if name == reference:
        text = f"No policy serves this cluster better than {name}: a job waits {mean} on average"
    elif not high < 0:
        base = time_text(first["mean"] - first["difference"])
        text = f"{name} has the shortest mean wait, {mean} against {base} under {reference}"
        text += ", but that may be chance" if np.isfinite(high) else ""
        text += f" (interval of the difference {interval_text(low, high, time_text)}, {windows} windows)"
    else:
        text = f"{name} serves this cluster best: a job waits {mean} on average, "
        interval = f"{interval_text(-high, -low, time_text)} less"
        if np.isfinite(first["relative_low"]):
            interval = f"{interval_text(-100 * first['relative_high'], -100 * first['relative_low'])}%"
        text += f"{-100 * first['relative']:.3g}% less than under {reference} "
        text += f"(interval {interval}, {windows} windows of the log)"
    _, low, high = comparison.against(name, second["policy"])
    if name != reference and second["policy"] != reference and not high < 0:
        text += f"; it cannot be told from {second['policy']} ({time_text(second['mean'])})"
    bound = comparison.run.bound
    if bound is not None and bound > 0:
        text += f", and no policy can have less than {time_text(bound)}"
    return text + "." + _blind(comparison, table)


def _blind(comparison: Comparison, table: pd.DataFrame) -> str:
    """The best of the policies that need not know durations, if the best one does."""
    if not table.iloc[0]["knows"]:
        return ""
    rest = table[table["knows"] == ""]
    if rest.empty:
        return ""
    best = rest.iloc[0]
    base = table[table["policy"] == comparison.reference].iloc[0]
    if best["mean"] >= base["mean"]:
        return (
            f" It must know how long jobs run; of those that need not, none is better than {base['policy']}."
        )
    return (
        f" It must know how long jobs run; of those that need not, {best['policy']} is best "
        f"({time_text(best['mean'])})."
    )


def _notes(trace: Trace, comparison: Comparison, parts: Sequence[Part]) -> list[str]:
    windows = len(comparison.run.windows)
    notes = []
    if max(loads(trace).values(), default=0.0) > 1.0:
        notes.append(
            "The jobs offer more than the machines can do, so that the queue grows as long as the log lasts"
            + ("; parts that begin without one underestimate the waits." if len(parts) > 1 else ".")
        )
    if windows < 2:
        notes.append("The log is too short for intervals: they need two windows of jobs.")
    elif windows < 8:
        notes.append(f"Intervals of only {windows} windows tend to be too narrow.")
    else:
        notes.append("Windows follow one another: where a queue outlasts one, intervals are too narrow.")
    notes.append(
        "Intervals of differences are widened so that those of all policies hold together with 95% "
        "(Bonferroni)."
    )
    unfinished = [name for name, waits in comparison.run.outcomes.items() if not np.isfinite(waits).all()]
    if unfinished:
        notes.append(f"Some jobs never start under {', '.join(unfinished)}.")
    return [*notes, f"Not in the model: {'; '.join(LEFT_OUT)}."]
