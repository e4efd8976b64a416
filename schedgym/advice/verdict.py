"""``schedgym.advise``: which policy serves a cluster best, by its own log, and how sure that is."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from schedgym.advice.logs import Part, Run, cut, loads, run
from schedgym.advice.page import text_of
from schedgym.advice.reading import How as Reading
from schedgym.advice.reading import read_log, size_text
from schedgym.advice.replays import LEFT_OUT, Replay, compare_with_record, own_tasks
from schedgym.advice.stretch import Stretch, find_stretch
from schedgym.core.policy import get_policy_spec, resolve_policy_name
from schedgym.core.problem import Metric, Problem, get_problem, list_problems
from schedgym.core.tokens import tokens_of
from schedgym.documents import check_whole
from schedgym.errors import InvalidParameter
from schedgym.evaluation.comparison import Comparison
from schedgym.evaluation.engines import make_engine
from schedgym.evaluation.runner import check_keywords
from schedgym.evaluation.statistics import Estimate
from schedgym.evaluation.wording import four_digits, interval_text, outcome_text, time_text
from schedgym.extras import require
from schedgym.traces.base import LeftOut, Trace, fitting
from schedgym.traces.feed import WAIT, Feed, Outcome, select

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Advice", "How", "LoadComparison", "advise"]

Floats = npt.NDArray[np.float64]

ORDER = ("flowtime", "partial-value", "geo", "queue-delay")  # the first that a log feeds is the default
RAMP = (1.5, 2.0, 4.0)
FURTHER = (8.0, 16.0, 32.0, 64.0)  # where policies do not differ up to there
NEGLIGIBLE = 1e-3  # of the median duration: a shorter mean wait is none
AGENT = "agent"
PAIRS = 4_000  # of visible jobs and machines that the agent looks at in a decision: some ms
FEWEST, MOST_VISIBLE = 8, 64  # jobs that it sees
RELATIVE = 0.01  # a smaller difference is none
#: what a policy knows, in words
KNOWN = {"execution": "how long jobs run", "value": "what jobs are worth", "deadline": "deadlines"}


class How(Reading, total=False):
    """Keyword arguments of :func:`advise`: those of :class:`schedgym.advice.reading.How`, and these.

    Attributes:
        policies: names of further policies that take part; those of every log always do.
        agent: True (the default) if the pretrained agent is to take part, if there is one.
        problem: name of the problem that the log is to feed; None: the first that its columns feed of
            flowtime (work that may be interrupted), partial-value (deadlines), geo (sites of tasks and of
            machines), else queue-delay.
        preemptible: True if all of the log's work may be interrupted, for logs without a column that says so.
        n_jobs: processes; -1, the default, means one per core. The result does not depend on it.
        seed: of the sample of a long log, and of random policies; 0.
        progress: True if a bar may show on stderr after two seconds; None: if stderr is a terminal.
    """

    policies: Sequence[str]
    agent: bool
    problem: str | None
    preemptible: bool
    n_jobs: int
    seed: int
    progress: bool | None


def _ends(name: str, found: Estimate, prefix: str) -> dict[str, float]:
    return {name: found.value, f"{prefix}low": found.low, f"{prefix}high": found.high}


@dataclasses.dataclass(frozen=True, eq=False)
class LoadComparison:
    """The policies on the log, at a multiple of its load.

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
    outcome: Outcome = WAIT

    def table(self) -> pd.DataFrame:
        """A row per policy, the best first.

        Columns: policy; mean (of the windows' mean outcomes, e.g. waits [s]) with low and high (95%
        interval); p95 and longest outcome of a job, p5 and least where more is better; difference (to the
        reference's mean) with difference_low and difference_high, paired by window; relative (the same over
        the reference's mean) with relative_low and relative_high, nan where that mean may be 0; bound (best
        mean that any policy could reach); knows; seconds (that the policy took to decide). The intervals of
        differences are those of :meth:`against`.
        """
        less = self.outcome.better == "min"
        tail, worst = ("p95", "longest") if less else ("p5", "least")
        rows: list[dict[str, Any]] = []
        for policy, waits in self.run.outcomes.items():
            mean, own = self.means.mean(policy), self.means.against(policy, self.reference)
            rows.append(
                {
                    "policy": policy,
                    **_ends("mean", mean, ""),
                    tail: float(np.quantile(waits, 0.95 if less else 0.05)),
                    worst: float(waits.max() if less else waits.min()),
                    **_ends("difference", own.difference, "difference_"),
                    **_ends("relative", own.relative, "relative_"),
                    "bound": self.run.bound,
                    "knows": self.knows[policy],
                    "seconds": self.run.seconds[policy],
                }
            )
        sign = self.outcome.sign
        rows.sort(key=lambda row: (sign * row["mean"], row["policy"] != self.reference))
        frame: pd.DataFrame = require("pandas").DataFrame(rows)
        return frame

    @functools.cached_property
    def means(self) -> Comparison:
        """The windows' mean outcomes of the policies.

        Intervals of the differences of all policies to one of them are widened so that together they hold
        with 95% (Bonferroni): the best policy is chosen in the same windows in which it is tested.
        """
        metric = Metric(self.outcome.name, "", "", self.outcome.better)
        tables = {policy: self.run.means(policy)[np.newaxis] for policy in self.run.outcomes}
        return Comparison(metric, tables, together=max(len(tables) - 1, 1))

    def against(self, policy: str, other: str) -> tuple[float, float, float]:
        """Difference of mean outcomes, policy minus other, with its interval, paired by window."""
        own = self.means.against(policy, other).difference
        return own.value, own.low, own.high

    @property
    def differ(self) -> bool:
        """True if a policy differs significantly from the reference, by more than 1% (:meth:`against`)."""
        least = RELATIVE * float(self.run.means(self.reference).mean())
        for policy in self.run.outcomes:
            difference, low, high = self.against(policy, self.reference)
            if (low > 0 or high < 0) and abs(difference) > least:
                return True
        return False


@dataclasses.dataclass(frozen=True, eq=False)
class Advice:
    """The result of :func:`advise`; ``print`` shows it.

    Attributes:
        read: description of the log, a line each.
        comparison: the policies at the log's own load.
        ramp: the same at higher loads, if jobs hardly wait at the log's own load.
        replay: waits against those recorded; None where the log has no starts.
        verdict: one sentence: the best policy, its difference to the reference, and the interval.
        notes: limitations of the result.
        problem: the problem that the log feeds.
        others: problem -> why the log does not feed it.
        stretch: the period of the log that is drawn, with the schedules of the best policy and of the
            reference at the highest load that was run.
    """

    read: tuple[str, ...]
    comparison: LoadComparison
    ramp: tuple[LoadComparison, ...]
    replay: Replay | None
    verdict: str
    notes: tuple[str, ...]
    problem: str
    others: Mapping[str, str]
    stretch: Stretch

    def __str__(self) -> str:
        return text_of(self)

    def content(self) -> dict[str, Any]:
        """The whole result as JSON data."""
        found: dict[str, Any] = {
            "problem": self.problem,
            "outcome": self.comparison.outcome.name,
            "better": self.comparison.outcome.better,
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
                "left_out": [*get_problem(self.problem).module("log").LEFT_OUT, *LEFT_OUT],
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
    if how.get("preemptible", False):
        trace = dataclasses.replace(trace, preemptible=np.ones(len(trace.arrival)))
    engine = make_engine("local", how.get("n_jobs", -1), stays=True)  # one run follows another
    problem, others = _choose(trace, how.get("problem"))
    feed = _feed(problem, trace)
    module, trace = problem.module("log"), feed.trace
    parts = cut(trace, seed, feed.most, feed.part)
    lines = (*read.lines, *_facts(read.trace, feed, parts), *feed.lines)
    policies, knows, note = _policies(problem, len(trace.machine_cores), how)
    own: dict[str, Any] = {"seed": seed, "engine": engine, "progress": how.get("progress")}
    own["slot"] = feed.slot
    found = run(problem, parts, policies, **own)
    comparison = LoadComparison(1.0, module.REFERENCE, found, knows, module.OUTCOME)
    idle = _idle(trace, comparison)
    ramp: tuple[LoadComparison, ...] = ()
    if idle and len(comparison.run.windows) > 1:
        ramp = _ramp(problem, trace, parts, comparison, policies, own)
    last = ramp[-1] if ramp else comparison
    shown = tuple(dict.fromkeys((last.table().iloc[0]["policy"], module.REFERENCE)))
    replayed = {name: comparison.run.outcomes[name] for name in module.REPLAYED}
    return Advice(
        lines,
        comparison,
        ramp,
        compare_with_record(own_tasks(parts), replayed) if replayed else None,
        _verdict(comparison, ramp, trace) if idle else _best(comparison),
        (*note, *_notes(trace, comparison, parts, module.LEFT_OUT)),
        problem.name,
        others,
        find_stretch(last.run, parts, shown, module.REFERENCE, module.OUTCOME),
    )


def _choose(trace: Trace, asked: str | None) -> tuple[Problem, dict[str, str]]:
    """The problem that the log is to feed, and of each other one why it does not."""
    lacks = {}
    for name, problem in list_problems().items():
        if find_spec(f"{problem.package}.log") is not None:
            lacks[name] = problem.module("log").lacks(trace)
    if asked is None:
        name = next(name for name in (*ORDER, *lacks) if lacks.get(name) == "")
    else:
        name = get_problem(asked).name
        if lacks.get(name, "takes no log of jobs"):
            raise InvalidParameter(f"problem: {name} {lacks.get(name, 'takes no log of jobs')}")
    others = {other: why or f"is asked for by --problem {other}" for other, why in lacks.items()}
    del others[name]
    return get_problem(name), others


def _feed(problem: Problem, trace: Trace) -> Feed:
    """The log as the problem takes it, without the jobs that fit no machine, before and after rounding."""
    module = problem.module("log")
    trace, out = (trace, []) if module.POOLED else _fitting(trace)
    feed: Feed = module.feed(trace)
    if not len(feed.trace.arrival):
        why = "; ".join(f"{one.count} jobs: {one.reason}: {one.detail}" for one in feed.left_out)
        raise InvalidParameter(f"problem: no job of the log feeds {problem.name} (left out: {why})")
    fed, more = _fitting(feed.trace)
    return dataclasses.replace(feed, trace=fed, left_out=(*out, *feed.left_out, *more))


def _fitting(trace: Trace) -> tuple[Trace, list[LeftOut]]:
    """The trace without the jobs that fit no machine."""
    fits = fitting(trace)
    if not fits.any():
        first = size_text(trace, f"{trace.cores[0]:g}", f"{trace.memory[0]:g}" if trace.memory[0] else "")
        raise InvalidParameter(
            f"machines: no job of the log fits any of them; the first needs {first}: if its unit is another, "
            "give it, as in --columns 'memory=COLUMN [MiB]'"
        )
    return (trace, []) if fits.all() else (select(trace, fits), [_too_large(trace, fits)])


# what was read -------------------------------------------------------------------------------------


def _too_large(trace: Trace, fits: npt.NDArray[np.bool_]) -> LeftOut:
    first = int(np.argmax(~fits))
    size = size_text(trace, f"{trace.cores[first]:g}", f"{trace.memory[first]:g}")
    when = time_text(float(trace.arrival[first] - trace.arrival[0]))
    detail = f"the first needs {size}, {when} after the log begins"
    return LeftOut("fits no machine", int((~fits).sum()), 0, "", detail)


def _facts(log: Trace, feed: Feed, parts: Sequence[Part]) -> list[str]:
    """Return facts of a log, and of the tasks of it that a problem takes."""
    trace, left_out = feed.trace, (*log.left_out, *feed.left_out)
    count = len(trace.arrival)
    lines = [f"rows: {log.rows}, of which {count} are {'tasks' if len(trace.job) else 'jobs'}"]
    for one in left_out:
        lines.append(
            f"left out: {one}" if one.line else f"left out: {one.count} rows: {one.reason}: {one.detail}"
        )
    counted = {one.reason for one in left_out}
    lines += [f"left out: {n} rows: {why}" for why, n in log.dropped.items() if n and why not in counted]
    lines += [f"{name}: taken as 0 in {n} jobs" for name, n in log.filled.items() if n]
    span = float(trace.arrival[-1] - trace.arrival[0])
    lines.append(f"span: {time_text(span)} between the first and the last submission{_since(trace)}")
    found = loads(trace)
    own = log if trace.unit == log.unit else trace  # not a pool
    cores, memory = own.machine_cores, own.machine_memory
    limit = four_digits(float(memory.sum())) if memory.any() else ""
    places = "sites" if len(trace.machine_site) else "machines"
    size = f"{len(cores)} {places}, {size_text(trace, four_digits(float(cores.sum())), limit)}"
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
        which = "waiting" if log.OUTCOME is WAIT else "active"
        note = (f"The agent sees the first {window} {which} jobs; it was trained on a synthetic workload.",)
    knows[AGENT] = log.KNOWS
    return {AGENT: trained, **policies}, knows, note  # it takes longest, so it begins


def _idle(trace: Trace, comparison: LoadComparison) -> bool:
    """Return True if jobs hardly wait under the reference; they may wait under other policies."""
    return comparison.reference not in _waiting(trace, comparison)


def _waiting(trace: Trace, comparison: LoadComparison) -> set[str]:
    """The policies under which what jobs lose by sharing the cluster is not negligible."""
    run, sign = comparison.run, comparison.outcome.sign
    least = NEGLIGIBLE * (float(np.median(trace.duration)) if comparison.outcome.timed else run.alone)
    return {
        policy for policy in run.outcomes if not sign * (float(run.means(policy).mean()) - run.alone) < least
    }


def _ramp(
    problem: Problem,
    trace: Trace,
    parts: Sequence[Part],
    own: LoadComparison,
    policies: Mapping[str, Any],
    how: Mapping[str, Any],
) -> tuple[LoadComparison, ...]:
    """The policies but the agent at higher loads, up to the first at which they differ."""
    found: list[LoadComparison] = []
    names = {label: policy for label, policy in policies.items() if label != AGENT}
    most = _all_at_once(trace)
    for factor in RAMP if most <= 1.0 else (*RAMP, *FURTHER):
        result = run(problem, parts, names, factor, **how)
        found.append(LoadComparison(factor, own.reference, result, own.knows, own.outcome))
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


def _verdict(own: LoadComparison, ramp: Sequence[LoadComparison], trace: Trace) -> str:
    """The sentence on a log in which next to nothing waits."""
    shares = loads(trace).values()
    load = f" ({100 * max(shares):.3g}%)" if shares else ""
    waiting = _waiting(trace, own)
    whom = "whatever the policy" if not waiting else f"under {own.reference}"
    if waiting == {AGENT}:
        whom = "under every policy but the agent"
    text = f"{own.outcome.idle} at the log's own load{load}, {whom}"
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


def _best(comparison: LoadComparison) -> str:
    """The sentence on the best policy."""
    table, outcome = comparison.table(), comparison.outcome
    first, second = table.iloc[0], table.iloc[1]
    name, reference, windows = first["policy"], comparison.reference, len(comparison.run.windows)

    def show(value: float) -> str:
        return outcome_text(outcome, value)

    def gain(row: Any, what: str, factor: float) -> tuple[float, float]:  # as a number above 0
        ends = [-outcome.sign * factor * row[f"{what}_{end}"] for end in ("low", "high")]
        return min(ends), max(ends)

    mean, least = show(first["mean"]), gain(first, "difference", 1.0)[0]
    less, most = ("less", "shortest") if outcome.better == "min" else ("more", "largest")
    slight = name != reference and least > 0 and abs(first["relative"]) <= RELATIVE
    if name == reference or slight:
        mean = show(float(comparison.run.means(reference).mean()))
        limit = f" by more than {100 * RELATIVE:g}%" if slight else ""
        text = f"No policy serves this cluster better than {reference}{limit}: {outcome.says.format(mean)}"
    elif not least > 0:
        base, low, high = (
            first["mean"] - first["difference"],
            first["difference_low"],
            first["difference_high"],
        )
        text = f"{name} has the {most} mean {outcome.name}, {mean} against {show(base)} under {reference}"
        text += ", but that may be chance" if np.isfinite(least) else ""
        text += f" (interval of the difference {interval_text(low, high, show)}, {windows} windows)"
    else:
        text = f"{name} serves this cluster best: {outcome.says.format(mean)}, "
        interval = f"{interval_text(*gain(first, 'difference', 1.0), show)} {less}"
        if gain(first, "relative", 100.0)[0] > 0:  # else the two intervals would contradict each other
            interval = f"{interval_text(*gain(first, 'relative', 100.0))}%"
        text += f"{abs(100 * first['relative']):.3g}% {less} than under {reference} "
        text += f"(interval {interval}, {windows} windows of the log)"
    difference = np.array(comparison.against(name, second["policy"])[1:])
    chance = not (-outcome.sign * difference > 0).all()
    if not slight and name != reference and second["policy"] != reference and chance:
        text += f"; it cannot be told from {second['policy']} ({show(second['mean'])})"
    bound = comparison.run.bound
    if bound is not None and bound > 0:
        text += f", and no policy can have {less} than {show(bound)}"
    return text + "." + ("" if slight else _blind(comparison, table))


def _blind(comparison: LoadComparison, table: pd.DataFrame) -> str:
    """The best of the policies that need not know durations, or the like, if the best one does."""
    needed = table.iloc[0]["knows"]
    rest = table[table["knows"] == ""]
    if not needed or rest.empty:
        return ""
    what = " and ".join(KNOWN.get(name, name) for name in needed.split(", "))
    best, outcome = rest.iloc[0], comparison.outcome
    base = table[table["policy"] == comparison.reference].iloc[0]
    if outcome.sign * (best["mean"] - base["mean"]) >= 0:
        return f" It must know {what}; of those that need not, none is better than {base['policy']}."
    return (
        f" It must know {what}; of those that need not, {best['policy']} is best "
        f"({outcome_text(outcome, best['mean'])})."
    )


def _notes(
    trace: Trace, comparison: LoadComparison, parts: Sequence[Part], left_out: Sequence[str]
) -> list[str]:
    windows = len(comparison.run.windows)
    notes = []
    if max(loads(trace).values(), default=0.0) > 1.0:
        notes.append(
            "The jobs offer more than the machines can do, so that the queue grows as long as the log lasts"
            + ("; parts that begin without one show less than all of its effect." if len(parts) > 1 else ".")
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
        notes.append(f"Some jobs are never done under {', '.join(unfinished)}.")
    return [*notes, f"Not in the model: {'; '.join((*left_out, *LEFT_OUT))}."]
