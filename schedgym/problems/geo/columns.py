"""The tokens of GeoAssign's and GeoFair's observations, and the columns that scorers make of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import Bytes, Floats, Floats32
from schedgym.core.columns import Columns, names_of, places, put, read
from schedgym.core.jit import helper
from schedgym.core.scorer import log_odds, next_set, no_pairs, unscaled
from schedgym.core.tokens import RULE_VIEW, ColumnSet, ScoredView, Scores, Tokens, TokenSet

COUNT_SCALE = 8.0  # n / (n + 8) scales counts
AGE_SCALE = 10.0  # a / (a + 10 s) scales ages and durations
CLOCK_SCALE = 600.0  # t / (t + 10 min) scales the clock


class JobToken(NamedTuple):
    """A job; behind it stand the waiting tasks of its groups, and its tasks at the sites."""

    unfinished: Annotated[float, "c(unfinished tasks)"]
    waiting: Annotated[float, "c(waiting tasks)"]
    running: Annotated[float, "c(running tasks)"]
    age: Annotated[float, "s(age)"]
    new: Annotated[float, "1 if it is new"]
    able_here: Annotated[float, "c(waiting tasks that may start at the open site)"]
    here: Annotated[float, "c(tasks that run there)"]
    ended: Annotated[float, "c(tasks that have ended)"]
    duration: Annotated[float, "s(their mean duration), 0 without any"]
    elapsed: Annotated[float, "s(mean time for which running tasks have run)"]


class SiteToken(NamedTuple):
    """A site."""

    slots: Annotated[float, "c(slots)"]
    free: Annotated[float, "share of them that is free"]
    runnable: Annotated[float, "c(waiting tasks that may run there)"]
    assigned: Annotated[float, "c(waiting tasks assigned to it)"]
    open: Annotated[float, "1 if it is open"]


class GlobalToken(NamedTuple):
    """The whole: what the decision is about, and numbers of jobs."""

    arrival: Annotated[float, "1 if jobs have arrived"]
    completion: Annotated[float, "1 if one has completed"]
    slot: Annotated[float, "1 if a slot is free"]
    jobs: Annotated[float, "c(active jobs)"]
    beyond: Annotated[float, "c(jobs beyond the window)"]
    waiting: Annotated[float, "c(waiting tasks)"]
    clock: Annotated[float, "t / (t + 10 min) of the clock t"]
    duration: Annotated[float, "s(`typical`)"]


JOB, SITE = places(JobToken), places(SiteToken)
JOB_FEATURES = len(JobToken._fields)
JOB_ROW = Columns(
    JobToken,
    "group: c(waiting tasks) of each group",
    "site: c(running tasks) at each site",
    "[site]: and where observations have `assigned`, c(tasks assigned) to each site",
)

# Columns of scorers -----------------------------------------------------------------------------

#: codes of the sets of columns. In views that order jobs, a job's token ends with its assigned tasks at each
#: site, behind its waiting ones
PLAIN, ORDERED = range(2)
LEAST = 1e-6  # of a number that others are divided by
#: the least estimate of a duration, over the time for which such a task has run: heavy tails go on for long
AHEAD = 2.0


class JobColumns(NamedTuple):
    """What scorers see of a job."""

    log_unfinished: float
    log_waiting: float
    log_running: float
    log_age: float
    age: float
    new: float
    log_bottleneck: float
    log_largest_group: float
    contention: float
    worst_contention: float
    waiting_share: float
    log_able_here: float
    log_here: float
    known: float  # 1 if a task has ended
    log_duration: float  # estimated, over that of the jobs that have completed
    log_work: float  # the same of the time for which its tasks are still to run


class Seen(NamedTuple):
    """The entries of an observation."""

    jobs: Annotated[Floats32, "job", "feature"]
    job_mask: Annotated[Bytes, "job"]
    sites: Annotated[Floats32, "site", len(SiteToken._fields)]
    globals: Annotated[Floats32, len(GlobalToken._fields)]


class Memo(NamedTuple):
    """The slots of each site, and how many tasks all visible jobs have there for each slot."""

    slots: Annotated[Floats, "sites"]
    load: Annotated[Floats, "sites"]


@helper
def tasks_at(seen: Seen, i: int, site: int, code: int) -> float:
    """Return the tasks of job i at a site."""
    count, first = seen.sites.shape[0], seen.jobs.shape[1] - (1 + code) * seen.sites.shape[0]
    tasks = unscaled(float(seen.jobs[i, first + site]), COUNT_SCALE)
    if code == ORDERED:
        tasks += unscaled(float(seen.jobs[i, first + count + site]), COUNT_SCALE)
    return tasks


@helper
def prepare(seen: Seen, memo: Memo, code: int) -> None:
    """Add up the tasks at each site."""
    slots, load = memo.slots, memo.load
    count = slots.shape[0]
    for m in range(count):
        slots[m] = max(unscaled(read(SiteToken, seen.sites[m]).slots, COUNT_SCALE), 1.0)
        load[m] = 0.0
    jobs = seen.jobs.shape[0]
    i = next_set(seen.job_mask, 0, jobs)
    while i < jobs:
        for m in range(count):
            load[m] += tasks_at(seen, i, m, code)
        i = next_set(seen.job_mask, i + 1, jobs)
    for m in range(count):
        load[m] /= slots[m]


@helper
def estimated_duration(job: JobToken, typical: float) -> float:
    """Return an estimate of the duration [s] of a job's tasks by what it has run, or else a typical one."""
    if job.ended > 0.0:
        return unscaled(job.duration, AGE_SCALE)
    return max(typical, AHEAD * unscaled(job.elapsed, AGE_SCALE))


@helper
def token_columns(seen: Seen, memo: Memo, code: int, i: int, x: Any) -> None:
    """Write the columns of job i."""
    job, slots, load = read(JobToken, seen.jobs[i]), memo.slots, memo.load
    count = slots.shape[0]
    bottleneck, total, contention, worst, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(count):
        mine = tasks_at(seen, i, m, code)
        bottleneck = max(bottleneck, mine / slots[m])
        total += mine
        contention += mine * load[m]
        if mine > 0.0:
            worst = max(worst, load[m])
    for k in range(JOB_FEATURES, seen.jobs.shape[1] - (1 + code) * count):
        largest = max(largest, unscaled(float(seen.jobs[i, k]), COUNT_SCALE))
    # 1 s until a job has completed: only differences between jobs count
    typical = unscaled(read(GlobalToken, seen.globals).duration, AGE_SCALE)
    typical = typical if typical > 0.0 else 1.0
    duration = max(estimated_duration(job, typical), LEAST)
    spent = min(unscaled(job.elapsed, AGE_SCALE), duration) * unscaled(job.running, COUNT_SCALE)
    work = duration * unscaled(job.unfinished, COUNT_SCALE) - spent
    own = JobColumns(
        log_unfinished=log_odds(job.unfinished),
        log_waiting=log_odds(job.waiting),
        log_running=math.log1p(unscaled(job.running, COUNT_SCALE)),
        log_age=math.log1p(unscaled(job.age, AGE_SCALE)),
        age=job.age,
        new=job.new,
        log_bottleneck=math.log1p(bottleneck),
        log_largest_group=math.log1p(largest),
        contention=contention / max(total, LEAST),
        worst_contention=math.log1p(worst),
        waiting_share=job.waiting / max(job.unfinished, LEAST),
        log_able_here=math.log1p(unscaled(job.able_here, COUNT_SCALE)),
        log_here=math.log1p(unscaled(job.here, COUNT_SCALE)),
        known=job.ended > 0.0,
        log_duration=math.log(duration / typical),
        log_work=math.log(max(work, LEAST) / typical),
    )
    put(x, 0, own)


pair_columns = no_pairs
_JOB, _ORDERED = (Scores("job", ("jobs",), columns) for columns in ("job", "ordered job"))
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("sites")),
    globals=names_of(GlobalToken),
    views={
        "priority": ScoredView("scores", (_ORDERED,), "squash", (-1.0, 1.0)),
        "weights": ScoredView("scores", (_JOB,), "weight", (0.0, 1.0)),
        "pick": ScoredView("choice", (_JOB,)),
        "rule": RULE_VIEW,
        "fair-rule": RULE_VIEW,
    },
    columns={
        "job": ColumnSet(PLAIN, names_of(JobColumns)),
        "ordered job": ColumnSet(ORDERED, names_of(JobColumns)),
    },
    numbers="state.job",
    acting=("window", "placement", "dispatch_sites", "aggressive", "work_conserving"),
)
