"""Section VI: the experiments.

The paper leaves open whether a waiting task that does not fit holds back those behind it under FFD. "First
fit", by which FFD assigns, tries only the front of the queue (section III-A), but an arriving task need not
wait behind it. Claims that compare BF-EXEC with FFD are checked under two readings: completions pass over
what does not fit (``ffd-nb``, ``ffd-dp``), or the front blocks, also arriving tasks (``ffd-nb-blocking``,
``ffd-dp-blocking``). They are judged under the reading under which they hold best.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from schedgym.papers import HOLDS, NOT_REPRODUCED, Finding, Run, Shown, Verdict, claim, judge
from schedgym.papers.noroozoliaee2014.instances import PAPER, find_flaw, read_instance, total_delay
from schedgym.papers.noroozoliaee2014.reference import Instance, draw, instances, simulate
from schedgym.papers.noroozoliaee2014.runs import play_instance, sweep_policies
from schedgym.papers.searches import Searched

if TYPE_CHECKING:
    import pandas as pd

__all__: list[str] = []

FFD = ("ffd-nb", "ffd-dp")
#: reading of FFD -> what its policies are called
READINGS = {"passing over what does not fit": "", "with a blocking head": "-blocking"}
COMPARED = ("bf-exec", *(name + end for end in READINGS.values() for name in FFD), "fcfs")
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

    pair = frame[frame["policy"].isin([reference, rival])]
    own = paired_differences(pair, reference, metric)
    names = ("servers", "relative", "relative_low", "relative_high")
    return _Compared(*(own[name].tolist() for name in names))


def _means(frame: pd.DataFrame, policy: str, metric: str) -> list[float]:
    own = frame[(frame["policy"] == policy) & (frame["metric"] == metric)]
    return [float(mean) for mean in own.groupby("servers")["value"].mean()]


class _Read(NamedTuple):
    """What a run finds under one reading of FFD."""

    good: bool  # the statement is true
    clear: int  # in so many settings
    text: str
    figures: Mapping[str, Any]
    witness: Shown | None = None


def _under_both(find: Callable[[str], _Read], **figures: Any) -> Finding:
    """Judge a statement under the reading of FFD under which it holds best; tell what both give.

    Args:
        find: checks the statement for the FFD policies whose names have this end.
        figures: what does not depend on the reading.
    """
    found = {reading: find(end) for reading, end in READINGS.items()}
    best = max(found, key=lambda reading: (found[reading].good, found[reading].clear))
    text = ". ".join(f"FFD {reading}: {read.text}" for reading, read in found.items())
    figures |= {"reading": best, "readings": {reading: read.figures for reading, read in found.items()}}
    text += f". The verdict is that of FFD {best}"
    return Finding(judge(found[best].good), text, witness=found[best].witness, figures=figures)


def _rounded(numbers: Iterable[float], digits: int = 3) -> list[float]:
    return [round(number, digits) for number in numbers]


def _longer(frame: pd.DataFrame, rival: str) -> _Read:
    """Compare the mean delay of a rival with BF-EXEC's."""
    found = _compare(frame, "bf-exec", rival, "mean_delay")
    clear = sum(low > 0 for low in found.low)
    text = f"delay against BF-EXEC's at {found.shown()}, significantly longer at {clear} of {len(found.low)}"
    return _Read(clear == len(found.low), clear, text, found._asdict())


def _lowest_delay(rival: str) -> None:
    """Register the claim that BF-EXEC's delay is shorter than a rival's at every number of servers."""

    @claim(
        PAPER,
        f"figure-3-{rival}",
        text=f"BF-EXEC's average delay is below that of {rival.upper()} at 10 to 80 servers",
        source="section VI-B, Fig. 3",
        recorded=HOLDS,
    )
    def _check(run: Run) -> Finding:
        frame = sweep_policies(run, COMPARED)
        own = _rounded(_means(frame, "bf-exec", "mean_delay"), 1)
        if rival in FFD:
            return _under_both(lambda end: _longer(frame, rival + end), bf_exec=own)
        read = _longer(frame, rival)
        return Finding(judge(read.good), f"FCFS's {read.text}", figures={**read.figures, "bf_exec": own})


for _rival in (*FFD, "fcfs"):
    _lowest_delay(_rival)


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


def _used_more(frame: pd.DataFrame, suffix: str, end: str) -> _Read:
    """Count the settings in which BF-EXEC uses significantly more, or less, of a resource than each rival."""
    rivals = [*(name + end for name in FFD), "fcfs"]
    higher, lower = dict.fromkeys(rivals, 0), dict.fromkeys(rivals, 0)
    settings = 0
    for resource in ("cpu", "memory"):
        for rival in rivals:
            found = _compare(frame, "bf-exec", rival, f"utilization_{resource}{suffix}")
            higher[rival] += sum(high < 0 for high in found.high)
            lower[rival] += sum(low > 0 for low in found.low)
        settings += len(found.servers)
    text = f"significantly more (less), of {settings} settings, than "
    text += ", ".join(f"{rival.upper()} in {higher[rival]} ({lower[rival]})" for rival in rivals)
    good = all(number == settings for number in higher.values())
    return _Read(good, sum(higher.values()), text, {"higher": higher, "lower": lower, "settings": settings})


def _highest_utilisation(name: str, suffix: str, recorded: Verdict) -> None:
    """Register the claim that in a window of time BF-EXEC uses more of both resources than each rival."""

    @claim(
        PAPER,
        f"figure-2-{name}",
        text=f"BF-EXEC uses more of both resources than the other schemes ({WINDOWS[suffix]})",
        source="section VI-A, Fig. 2",
        recorded=recorded,
    )
    def _check(run: Run) -> Finding:
        frame = sweep_policies(run, COMPARED)
        shares = {
            resource: _rounded(_means(frame, "bf-exec", f"utilization_{resource}{suffix}"))
            for resource in ("cpu", "memory")
        }
        found = _under_both(lambda end: _used_more(frame, suffix, end), bf_exec=shares)
        text = f"BF-EXEC's cpu {', '.join(f'{share:.0%}' for share in shares['cpu'])}; {found.evidence}"
        return dataclasses.replace(found, evidence=text)


for _name, _suffix, _recorded in (
    ("makespan", "", NOT_REPRODUCED),
    ("to-last-arrival", "_to_last_arrival", HOLDS),
    ("backlog", "_backlog", NOT_REPRODUCED),
):
    _highest_utilisation(_name, _suffix, _recorded)


@claim(
    PAPER,
    "figure-2-levels",
    text="BF-EXEC uses 85% to 90% of the cpu and almost 90% of the memory, more than the others do",
    source="section VI-A, Fig. 2(a) and 2(b)",
    recorded=NOT_REPRODUCED,
)
def _check_levels(run: Run) -> Finding:
    frame = sweep_policies(run, COMPARED)
    levels: dict[str, dict[str, dict[str, list[float]]]] = {  # window -> resource -> policy -> means
        window: {
            resource: {
                name: _rounded(_means(frame, name, f"utilization_{resource}{suffix}")) for name in COMPARED
            }
            for resource in ("cpu", "memory")
        }
        for suffix, window in WINDOWS.items()
    }

    def read(end: str) -> _Read:
        """In some window, at all numbers of servers: the level is as stated, and above the others'."""
        as_stated = {}
        for window, table in levels.items():
            rows = [
                (row["bf-exec"], [row[n] for n in (*(x + end for x in FFD), "fcfs")])
                for row in table.values()
            ]
            fine = [
                0.845 <= share < 0.905 and share > max(rest)
                for own, others in rows
                for share, *rest in zip(own, *others, strict=True)
            ]
            as_stated[window] = sum(fine)
        most = max(as_stated.values())
        return _Read(most == len(fine), most, f"as stated in {most} of {len(fine)} settings", as_stated)

    def span(row: Sequence[float]) -> str:
        return f"{min(row):.0%} to {max(row):.0%}"

    text = "; ".join(
        f"{window}: cpu {span(row['cpu']['bf-exec'])}, memory {span(row['memory']['bf-exec'])}"
        for window, row in levels.items()
    )
    found = _under_both(read, levels=levels)
    return dataclasses.replace(found, evidence=f"{text}. {found.evidence}")


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
    for name in ("bf-exec", shown["rival"]):
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


def _more_used_and_later(rival: str) -> Searched:
    """Search for instances in which a rival uses more of the cpu than BF-EXEC, and delays tasks longer."""

    def flaw(instance: Instance) -> dict[str, Any] | None:
        starts = [simulate(instance, name).start for name in ("bf-exec", rival)]
        delays = [total_delay(instance, start) for start in starts]
        if delays[0] >= delays[1]:
            return None
        shares = [_busy_while_waiting(instance, start) for start in starts]
        if shares[0] >= shares[1]:
            return None
        return {"rival": rival, "delay": delays, "utilisation": [str(share) for share in shares]}

    return find_flaw(instances(3, 2, 1, 1, 2), flaw)


@claim(
    PAPER,
    "utilisation-is-not-delay",
    text="a higher utilisation does not mean a shorter delay",
    source="section VI-A",
    recorded=HOLDS,
    confirm=_confirm_utilisation,
)
def _check_utilisation_delay(run: Run) -> Finding:
    frame = sweep_policies(run, COMPARED)

    def read(end: str) -> _Read:
        rival = f"ffd-nb{end}"
        searched = _more_used_and_later(rival)
        delay = _compare(frame, "bf-exec", rival, "mean_delay")
        used = _compare(frame, "bf-exec", rival, "utilization_cpu_to_last_arrival")
        both = sum(d > 0 and u > 0 for d, u in zip(delay.low, used.low, strict=True))
        text = f"{rival.upper()} uses more of the cpu while tasks wait than BF-EXEC, and delays longer, in"
        text += (
            f" {searched.flawed} of {searched.checked:,} tiny instances; in the runs, to the last arrival,"
        )
        text += f" at {both} of {len(used.low)} numbers of servers: {used.shown()}"
        figures = {"checked": searched.checked, "flawed": searched.flawed, "both": both}
        return _Read(searched.found is not None, both, text, figures, searched.found)

    return _under_both(read)


@claim(
    PAPER,
    "outperforms",
    text="BF-EXEC outperforms the other schemes in utilisation as well as in average queuing delay",
    source="abstract, sections I and VII",
    recorded=HOLDS,
)
def _check_outperforms(run: Run) -> Finding:
    frame = sweep_policies(run, COMPARED)

    def read(end: str) -> _Read:
        names = ("bf-exec", *(name + end for name in FFD), "fcfs")
        best: dict[str, list[str]] = {}
        for metric, sign in (("mean_delay", 1), ("utilization_cpu_to_last_arrival", -1)):
            rows = zip(*(_means(frame, name, metric) for name in names), strict=True)
            best[metric] = [min(zip((sign * mean for mean in row), names, strict=True))[1] for row in rows]
        shortest, highest = (row.count("bf-exec") for row in best.values())
        count = len(best["mean_delay"])
        text = f"shortest mean delay at {shortest} of {count} numbers of servers, highest cpu utilisation to"
        text += (
            f" the last arrival at {highest} (highest: {', '.join(best['utilization_cpu_to_last_arrival'])})"
        )
        return _Read(shortest == highest == count, shortest + highest, text, {"best": best})

    return _under_both(read)


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
