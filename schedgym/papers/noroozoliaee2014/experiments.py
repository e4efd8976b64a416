"""Section VI: the experiments."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from schedgym.papers import HOLDS, NOT_REPRODUCED, Finding, Run, Shown, Verdict, claim, judge
from schedgym.papers.noroozoliaee2014.instances import PAPER, find_flaw, read_instance, total_delay
from schedgym.papers.noroozoliaee2014.reference import Instance, draw, instances, simulate
from schedgym.papers.noroozoliaee2014.runs import play_instance, sweep_policies

if TYPE_CHECKING:
    import pandas as pd

__all__: list[str] = []

RIVALS = ("ffd-nb", "ffd-dp", "fcfs")
COMPARED = ("bf-exec", *RIVALS)
WINDOWS = {
    "": "first arrival to last completion",
    "_to_last_arrival": "to the last arrival",
    "_backlog": "while tasks wait",
}


class _Compared(NamedTuple):
    """Means of a rival relative to those of a reference, by number of servers."""

    servers: list[int]
    relative: list[float]
    low: list[float]
    high: list[float]

    def shown(self) -> str:
        """Write the percentages with their intervals."""
        rows = zip(self.servers, self.relative, self.low, self.high, strict=True)
        return ", ".join(f"{n}: {r:+.0%} [{low:+.0%}, {high:+.0%}]" for n, r, low, high in rows)


def _compare(frame: pd.DataFrame, reference: str, rival: str, metric: str) -> _Compared:
    from schedgym.evaluation.statistics import paired_differences

    table = paired_differences(frame, reference, metric)
    own = table[table["policy"] == rival]
    names = ("servers", "relative", "relative_low", "relative_high")
    return _Compared(*(own[name].tolist() for name in names))


def _means(frame: pd.DataFrame, policy: str, metric: str) -> list[float]:
    from schedgym.evaluation.statistics import summarize

    table = summarize(frame, metric)
    return [float(mean) for mean in table[table["policy"] == policy]["mean"]]


def _rounded(numbers: Iterable[float], digits: int = 3) -> list[float]:
    return [round(number, digits) for number in numbers]


def _lowest_delay(rival: str, recorded: Verdict) -> None:
    """Register the claim that BF-EXEC's delay is shorter than a rival's at every number of servers."""

    @claim(
        PAPER,
        f"figure-3-{rival}",
        text=f"BF-EXEC's average delay is below that of {rival.upper()} at 10 to 80 servers",
        source="section VI-B, Fig. 3",
        recorded=recorded,
    )
    def _check(run: Run) -> Finding:
        frame = sweep_policies(run, COMPARED)
        found = _compare(frame, "bf-exec", rival, "mean_delay")
        clear = sum(low > 0 for low in found.low)
        figures = found._asdict() | {"bf_exec": _rounded(_means(frame, "bf-exec", "mean_delay"), 1)}
        text = f"{rival.upper()}'s delay against BF-EXEC's at {found.shown()}; significantly longer at"
        text += f" {clear} of {len(found.low)}"
        return Finding(judge(clear == len(found.low)), text, figures=figures)


for _rival, _recorded in (("ffd-nb", HOLDS), ("ffd-dp", NOT_REPRODUCED), ("fcfs", HOLDS)):
    _lowest_delay(_rival, _recorded)


@claim(
    PAPER,
    "more-servers",
    text="the more servers, the sooner a task runs: under every scheme the average delay falls",
    source="section III-A; section VI-B, Fig. 3",
    recorded=HOLDS,
)
def _check_more_servers(run: Run) -> Finding:
    frame = sweep_policies(run, COMPARED)
    means = {name: _means(frame, name, "mean_delay") for name in COMPARED}
    falls = all(after < before for row in means.values() for before, after in itertools.pairwise(row))
    shown = "; ".join(f"{name} {', '.join(f'{mean:.0f}' for mean in row)} s" for name, row in means.items())
    return Finding(judge(falls), f"from 10 to 80 servers: {shown}", figures={"means": means})


@claim(
    PAPER,
    "execution-times",
    text="accounting for execution times reduces the delay: BF-EXEC against best fit with the queue by size",
    source="abstract, section I",
    recorded=HOLDS,
)
def _check_execution_times(run: Run) -> Finding:
    rivals = ("bfd-nb", "bfd-dp", "bfd-product")
    frame = sweep_policies(run, ("bf-exec", *rivals))
    found = {rival: _compare(frame, "bf-exec", rival, "mean_delay") for rival in rivals}
    clear = sum(low > 0 for each in found.values() for low in each.low)
    total = sum(len(each.low) for each in found.values())
    relative = {name: _rounded(each.relative) for name, each in found.items()}
    least, most = (pick(map(pick, relative.values())) for pick in (min, max))
    text = f"the same first phase, the queue by decreasing size: delays {least:+.0%} to {most:+.0%},"
    text += f" significantly longer in {clear} of {total} settings"
    return Finding(judge(clear == total), text, figures={"relative": relative, "clear": clear})


def _highest_utilisation(name: str, suffix: str) -> None:
    """Register the claim that in a window of time BF-EXEC uses more of both resources than each rival."""

    @claim(
        PAPER,
        f"figure-2-{name}",
        text=f"BF-EXEC uses more of both resources than the other schemes ({WINDOWS[suffix]})",
        source="section VI-A, Fig. 2",
        recorded=NOT_REPRODUCED,
    )
    def _check(run: Run) -> Finding:
        frame = sweep_policies(run, COMPARED)
        higher: dict[str, int] = {}
        lower: dict[str, int] = {}
        shares: dict[str, list[float]] = {}
        settings = 0
        for resource in ("cpu", "memory"):
            metric = f"utilization_{resource}{suffix}"
            shares[resource] = _rounded(_means(frame, "bf-exec", metric))
            for rival in RIVALS:
                found = _compare(frame, "bf-exec", rival, metric)
                higher[rival] = higher.get(rival, 0) + sum(high < 0 for high in found.high)
                lower[rival] = lower.get(rival, 0) + sum(low > 0 for low in found.low)
            settings += len(shares[resource])
        figures = {"higher": higher, "lower": lower, "settings": settings, "bf_exec": shares}
        text = f"significantly more (less), of {settings} settings: "
        text += ", ".join(f"than {rival.upper()} in {higher[rival]} ({lower[rival]})" for rival in RIVALS)
        text += f"; BF-EXEC's cpu {', '.join(f'{share:.0%}' for share in shares['cpu'])}"
        good = all(number == settings for number in higher.values())
        return Finding(judge(good), text, figures=figures)


for _name, _suffix in (("makespan", ""), ("to-last-arrival", "_to_last_arrival"), ("backlog", "_backlog")):
    _highest_utilisation(_name, _suffix)


@claim(
    PAPER,
    "figure-2-levels",
    text="BF-EXEC uses 85% to 90% of the cpu and almost 90% of the memory, more than the others do",
    source="section VI-A, Fig. 2(a) and 2(b)",
    recorded=NOT_REPRODUCED,
)
def _check_levels(run: Run) -> Finding:
    frame = sweep_policies(run, COMPARED)
    levels: dict[str, dict[str, dict[str, list[float]]]] = {}  # window -> resource -> policy -> means
    good = False
    for suffix, window in WINDOWS.items():
        levels[window] = {}
        fine = True
        for resource in ("cpu", "memory"):
            metric = f"utilization_{resource}{suffix}"
            means = {name: _means(frame, name, metric) for name in COMPARED}
            levels[window][resource] = {name: _rounded(row) for name, row in means.items()}
            own, *others = means.values()
            fine = fine and all(0.845 <= share < 0.905 for share in own)
            fine = fine and all(x > max(row) for x, *row in zip(own, *others, strict=True))
        good = good or fine

    def span(row: Sequence[float]) -> str:
        return f"{min(row):.0%} to {max(row):.0%}"

    text = "; ".join(
        f"{window}: cpu {span(row['cpu']['bf-exec'])}, memory {span(row['memory']['bf-exec'])}"
        for window, row in levels.items()
    )
    waiting = levels[WINDOWS["_backlog"]]
    text += f" (FFD-NB's there {span(waiting['cpu']['ffd-nb'])} and {span(waiting['memory']['ffd-nb'])})"
    return Finding(judge(good), text, figures={"levels": levels})


@claim(
    PAPER,
    "figure-2-fcfs",
    text="BF-EXEC uses more of both resources than FCFS (to the last arrival)",
    source="section VI-A, Fig. 2",
    recorded=HOLDS,
)
def _check_utilisation_fcfs(run: Run) -> Finding:
    frame = sweep_policies(run, COMPARED)
    found = [
        _compare(frame, "bf-exec", "fcfs", f"utilization_{resource}_to_last_arrival")
        for resource in ("cpu", "memory")
    ]
    clear = sum(high < 0 for each in found for high in each.high)
    total = sum(len(each.high) for each in found)
    text = f"FCFS's cpu against BF-EXEC's at {found[0].shown()}; significantly less in {clear} of {total}"
    figures = {"cpu": found[0]._asdict(), "memory": found[1]._asdict()}
    return Finding(judge(clear == total), text, figures=figures)


def _busy_while_waiting(instance: Instance, start: Sequence[int | None]) -> Fraction:
    """Return the share of the cpu that is used while tasks wait; 0 if no task ever waits."""
    tasks = instance.tasks
    spans = [(s, s + task.execution) for s, task in zip(start, tasks, strict=True) if s is not None]
    times = [
        t
        for t in range(max(end for _, end in spans))
        if any(task.arrival <= t < begin for task, (begin, _) in zip(tasks, spans, strict=True))
    ]
    used = sum(
        task.cpu for t in times for task, (begin, end) in zip(tasks, spans, strict=True) if begin <= t < end
    )
    return Fraction(used, sum(c for c, _ in instance.servers) * len(times)) if times else Fraction(0)


def _confirm_utilisation(shown: Shown) -> bool:
    """Compare with the environment's metrics of both registered policies."""
    instance = read_instance(shown)
    delays, shares = [], []
    for name in ("bf-exec", "ffd-nb"):
        measured = play_instance(instance, name).metrics
        delays.append(round(len(instance.tasks) * measured["mean_delay"]))
        shares.append(measured["utilization_cpu_backlog"])
    stated = [float(Fraction(share)) for share in shown["utilisation"]]
    return (
        delays == shown["delay"]
        and np.allclose(shares, stated, rtol=0, atol=1e-9)
        and delays[0] < delays[1]
        and stated[0] < stated[1]
    )


@claim(
    PAPER,
    "utilisation-is-not-delay",
    text="a higher utilisation does not mean a shorter delay",
    source="section VI-A",
    recorded=HOLDS,
    confirm=_confirm_utilisation,
)
def _check_utilisation_delay(run: Run) -> Finding:
    def flaw(instance: Instance) -> dict[str, Any] | None:
        starts = [simulate(instance, name).start for name in ("bf-exec", "ffd-nb")]
        delays = [total_delay(instance, start) for start in starts]
        if delays[0] >= delays[1]:
            return None
        shares = [_busy_while_waiting(instance, start) for start in starts]
        if shares[0] >= shares[1]:
            return None
        return {"delay": delays, "utilisation": [str(share) for share in shares]}

    searched = find_flaw(instances(3, 2, 1, 1, 2), flaw)
    frame = sweep_policies(run, COMPARED)
    delay = _compare(frame, "bf-exec", "ffd-nb", "mean_delay")
    used = _compare(frame, "bf-exec", "ffd-nb", "utilization_cpu_to_last_arrival")
    both = sum(d > 0 and u > 0 for d, u in zip(delay.low, used.low, strict=True))
    text = f"cpu while tasks wait: FFD-NB uses more than BF-EXEC and delays longer in {searched.flawed} of"
    text += f" {searched.checked:,} tiny instances (one is given); in the runs, to the last arrival, at"
    text += f" {both} of {len(used.low)} numbers of servers: {used.shown()}"
    figures = {"checked": searched.checked, "flawed": searched.flawed, "both": both}
    return Finding(judge(searched.found is not None), text, witness=searched.found, figures=figures)


@claim(
    PAPER,
    "outperforms",
    text="BF-EXEC outperforms the other schemes in utilisation as well as in average queuing delay",
    source="abstract, sections I and VII",
    recorded=NOT_REPRODUCED,
)
def _check_outperforms(run: Run) -> Finding:
    frame = sweep_policies(run, COMPARED)
    best: dict[str, list[str]] = {}
    for metric, sign in (("mean_delay", 1), ("utilization_cpu_to_last_arrival", -1)):
        rows = zip(*(_means(frame, name, metric) for name in COMPARED), strict=True)
        best[metric] = [min(zip((sign * mean for mean in row), COMPARED, strict=True))[1] for row in rows]
    shortest, highest = (row.count("bf-exec") for row in best.values())
    count = len(best["mean_delay"])
    text = f"shortest mean delay at {shortest} of {count} numbers of servers, highest cpu utilisation to the"
    text += f" last arrival at {highest} (highest: {', '.join(best['utilization_cpu_to_last_arrival'])})"
    good = shortest == highest == count
    return Finding(judge(good), text, figures={"best": best})


@claim(
    PAPER,
    "fcfs-in-order",
    text="under FCFS a task starts before any that arrives after it",
    source="section VI, footnote",
    recorded=HOLDS,
)
def _check_fcfs(run: Run) -> Finding:
    checked = overtaken = 0
    for _ in range(2_000 if run.small else 10_000):
        start = simulate(draw(run.rng), "fcfs").start
        checked += 1
        begins = [s for s in start if s is not None]
        overtaken += len(begins) < len(start) or begins != sorted(begins)
    text = f"starts are in order of submission in {checked - overtaken:,} of {checked:,} instances"
    return Finding(judge(not overtaken), text, figures={"checked": checked, "overtaken": overtaken})
