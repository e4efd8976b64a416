"""``schedgym.advise``: which policy serves a cluster best, by its own log, and how sure that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import Any, Unpack, cast

import numpy as np

from schedgym.advice.comparison import LoadComparison, is_idle
from schedgym.advice.logs import Part, all_at_once, cut, loads, run
from schedgym.advice.page import text_of
from schedgym.advice.reading import How as Reading
from schedgym.advice.reading import read_log
from schedgym.advice.replays import LEFT_OUT, NO_GPUS, ONLY_COUNTED, Replay, compare_with_record, own_tasks
from schedgym.advice.sentences import AGENT, say_best, say_busiest, say_idle, say_limits
from schedgym.advice.stretch import Stretch, find_stretch
from schedgym.core.policy import get_policy_spec, resolve_policy_name
from schedgym.core.problem import Problem, get_problem, list_problems
from schedgym.core.tokens import tokens_of
from schedgym.documents import check_whole
from schedgym.errors import InvalidParameter
from schedgym.evaluation.engines import make_engine
from schedgym.evaluation.runner import check_keywords
from schedgym.evaluation.wording import four_digits, time_text
from schedgym.traces.base import MACHINE, RESOURCES, Trace
from schedgym.traces.feed import WAIT, Feed
from schedgym.traces.machines import ACROSS, ON_SEVERAL, Placed, place, size_text, work_text

ORDER = ("flowtime", "partial-value", "geo", "queue-delay")  # the first that a log feeds is the default
RAMP = (1.5, 2.0, 4.0)
FURTHER = (8.0, 16.0, 32.0, 64.0)  # where policies do not differ up to there
PAIRS = 4_000  # of visible jobs and machines that the agent looks at in a decision: some ms
FEWEST, MOST_VISIBLE = 8, 64  # jobs that it sees


class How(Reading, total=False):
    """Keyword arguments of :func:`advise`: those of :class:`schedgym.advice.reading.How`, and these.

    Attributes:
        policies: names of further policies that take part; those of every log always do.
        agent: True (the default) if the pretrained agent is to take part, if there is one.
        problem: name of the problem that the log is to feed; None: the first that its columns feed of
            flowtime (work that may be interrupted), partial-value (deadlines), geo (sites of tasks and of
            machines), else queue-delay.
        preemptible: True if all of the log's work may be interrupted, for logs without a column that says so.
        pool: True if the machines are one pool of all that they have, False if every job runs on one machine;
            None: a pool where some job needs several.
        n_jobs: processes; -1, the default, means one per core. The result does not depend on it.
        seed: of the sample of a long log, and of random policies; 0.
        progress: True if a bar may show on stderr after two seconds; None: if stderr is a terminal.
    """

    policies: Sequence[str]
    agent: bool
    problem: str | None
    preemptible: bool
    pool: bool | None
    n_jobs: int
    seed: int
    progress: bool | None


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
        limits: what the model leaves out.
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
    limits: tuple[str, ...]
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
                "left_out": list(self.limits),
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
    feed, pool = _feed(problem, trace, how.get("pool"))
    module, trace = problem.module("log"), feed.trace
    parts = cut(trace, seed, feed.most, feed.part)
    lines = (*read.lines, *_facts(read.trace, feed, parts, pool), *feed.lines)
    counted = trace.gpu.any() and trace.machine_gpu.any()
    limits = (*module.LEFT_OUT, *(ONLY_COUNTED if counted else NO_GPUS), *LEFT_OUT)
    if pool:
        limits = (*(one for one in limits if one != ON_SEVERAL), "fragmentation of the machines")
    policies, knows, note = _policies(problem, trace, how)
    own: dict[str, Any] = {"seed": seed, "engine": engine, "progress": how.get("progress")}
    own["slot"] = feed.slot
    found = run(problem, parts, policies, **own)
    comparison = LoadComparison(1.0, module.REFERENCE, found, knows, module.OUTCOME)
    idle = is_idle(trace, comparison)
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
        say_idle(comparison, ramp, trace) if idle else say_best(comparison) + say_busiest(trace),
        (*note, *say_limits(trace, comparison, parts, limits)),
        limits,
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


def _feed(problem: Problem, trace: Trace, pool: bool | None) -> tuple[Feed, str]:
    """The log as the problem takes it, without the jobs that fit no machine, and why these are a pool."""
    module = problem.module("log")
    if module.POOLED and pool is False:
        raise InvalidParameter(f"pool: {problem.name} always takes the machines as one pool")
    placed = Placed(trace, "", ()) if module.POOLED else place(trace, pool)
    feed: Feed = module.feed(placed.trace)
    if not len(feed.trace.arrival):
        why = "; ".join(f"{one.jobs} jobs: {one.reason}: {one.detail}" for one in feed.left_out)
        raise InvalidParameter(f"problem: no job of the log feeds {problem.name} (left out: {why})")
    rounded = place(feed.trace, False)
    left_out = (*placed.left_out, *feed.left_out, *rounded.left_out)
    return dataclasses.replace(feed, trace=rounded.trace, left_out=left_out), placed.pool


# what was read -------------------------------------------------------------------------------------


def _facts(log: Trace, feed: Feed, parts: Sequence[Part], pool: str) -> list[str]:
    """Return facts of a log, and of the tasks of it that a problem takes.

    Args:
        log: as it was read.
        feed: what the problem takes of it.
        parts: that are run.
        pool: why the machines are one pool, "" if they are not.
    """
    trace = feed.trace
    count, kept = len(trace.arrival), trace.kept_rows
    several = f"{kept} are " if kept < count else ""  # rows that stand for several tasks each
    what = f"{several}{count} tasks" if several else f"{count} are {'tasks' if len(trace.job) else 'jobs'}"
    amounts = float(log.work.sum()), float(log.gpu_work.sum())
    work = f", {work_text(log, *amounts)}" if any(amounts) else ""
    lines = [f"rows: {log.rows}, of which {what}{work}"]
    for one in (*log.left_out, *feed.left_out):
        more = [f"{one.jobs} jobs"] * (one.jobs > one.count)
        if not one.reason.startswith(MACHINE):
            known = one.work >= 0
            more += [work_text(log, one.work, one.gpu_work) if known else "an unknown amount of work"]
        lines.append("; ".join([f"left out: {one}", *more]))
    lines += [f"{name}: taken as 0 in {n} jobs" for name, n in log.filled.items() if n]
    span = float(trace.arrival[-1] - trace.arrival[0])
    lines.append(f"span: {time_text(span)} between the first and the last submission{_since(trace)}")
    found = loads(trace)
    own = log if trace.unit == log.unit else trace  # not a pool
    cores, limit, gpus = (
        four_digits(total) if (total := float(getattr(own, f"machine_{name}").sum())) else ""
        for name in RESOURCES
    )
    places = "sites" if len(trace.machine_site) else "machines"
    size = f"{len(own.machine_cores)} {places}, "
    size += size_text(trace, cores, limit, gpus if trace.gpu.any() else "")
    size += "" if limit else ", memory not limited"
    size += f", as one pool, {pool} ({ACROSS})" if pool else ""
    texts = [f"{name} {100 * load:.3g}%" for name, load in found.items()]
    none = "none, as jobs take nothing" if span > 0 else "unknown, as all jobs come at once"
    most = f"; the busiest: {max(found, key=found.__getitem__)}" if len(found) > 1 else ""
    lines.append(f"machines: {size}; offered load: {', '.join(texts) or none}{most}")
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
    first = datetime.fromisoformat(trace.origin) + timedelta(seconds=float(trace.arrival[0]))
    return f", from {first.strftime('%Y-%m-%d %H:%M:%S')} UTC"


# what is run ---------------------------------------------------------------------------------------


def _policies(
    problem: Problem, trace: Trace, how: How
) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Label -> policy, label -> what it knows, and a note on the agent."""
    log, machines = problem.module("log"), len(trace.machine_cores)
    names = [resolve_policy_name(name, problem.name) for name in (*log.POLICIES, *how.get("policies", ()))]
    policies: dict[str, Any] = {name: name for name in (n.removeprefix(f"{problem.name}/") for n in names)}
    knows = {name: ", ".join(get_policy_spec(name, problem.name).knows) for name in policies}
    if not how.get("agent", True):
        return policies, knows, ()
    if machines * FEWEST > 8 * PAIRS:
        return policies, knows, (f"The agent is left out: {machines} machines would take it too long.",)
    from schedgym.agents.agent_policy import make_agent

    trained = make_agent("pretrained", log.ID)
    note: tuple[str, ...] = ()
    if "window" in tokens_of(problem.name).acting:
        window = int(np.clip(PAIRS // machines, FEWEST, MOST_VISIBLE))
        trained.environment = {**trained.environment, "window": window}
        which = "waiting" if log.OUTCOME is WAIT else "active"
        note = (f"The agent sees the first {window} {which} jobs; it was trained on a synthetic workload.",)
    knows[AGENT] = log.KNOWS
    return {AGENT: trained, **policies}, knows, note  # it takes longest, so it begins


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
    most = max(all_at_once(trace).values())
    for factor in RAMP if most <= 1.0 else (*RAMP, *FURTHER):
        result = run(problem, parts, names, factor, **how)
        found.append(LoadComparison(factor, own.reference, result, own.knows, own.outcome))
        if found[-1].differ and not is_idle(trace, found[-1]):
            break
    return tuple(found)
