"""Figures of "Online Multi-Resource Scheduling for Minimum Task Completion Time" (noroozoliaee2014).

The paper uses a part of Google's trace of 2011, but names neither the window nor the machines. The tasks and
machines of the generator stand in for them.
"""

from __future__ import annotations

from schedgym.core.problem import Statement
from schedgym.evaluation.statistics import summarize
from schedgym.papers import Judged, Outcome, Panel, Played, Run, figure, get_paper, judge
from schedgym.papers.figures import bound, lines
from schedgym.papers.judging import judge_better

__all__ = ["PAPER"]

PAPER = get_paper("noroozoliaee2014")
ID = "schedgym/QueueDelay-v0"
LABELS = {"bf-exec": "BF-EXEC", "ffd-dp": "FFD-DP", "ffd-nb": "FFD-NB", "fcfs": "FCFS"}
ZERO = "a bound of 0, as with many servers, has no place on a logarithmic axis"
STAND_IN = "a synthetic stand-in for the 2011 Google trace: the paper does not say which part of it it takes"
LEAST_BUSY = 0.85  # what the paper names for BF-EXEC; one point less counts as reproduced


def _servers(run: Run) -> Played:
    return run.play(
        ID,
        list(LABELS),
        run.size(10, 50, 2),
        {"servers": run.size([10, 20, 30, 40, 50, 60, 70, 80], [10, 20, 30, 40, 50, 60, 70, 80], [2, 4])},
        parameters={"tasks": run.size(2000, 2000, 60)},
    )


def _sizes(played: Played) -> str:
    episodes = played.frame.attrs["episodes"]
    return f"{episodes} draws of {played.frame.attrs['parameters']['tasks']} tasks"


@figure(PAPER, "fig2", title="utilisation by number of servers", source="Fig. 2, section VI-A")
def _utilization(run: Run) -> Outcome:
    played = _servers(run)
    panels = [
        Panel(
            "number of servers",
            f"{resource} utilisation while tasks wait [%]",
            lines(played, "servers", f"utilization_{short}_backlog", labels=LABELS, factor=100.0),
            title=f"({letter}) {resource}",
        )
        for letter, resource, short in (("a", "memory", "memory"), ("b", "CPU", "cpu"))
    ]
    rivals = ("ffd-dp", "ffd-nb", "fcfs")
    said = [
        judge_better(
            played,
            f"BF-EXEC uses more {resource} than every other scheme",
            Statement("", "bf-exec", rivals, f"utilization_{short}_backlog"),
        )
        for resource, short in (("memory", "memory"), ("CPU", "cpu"))
    ]
    said.append(_busy(played))
    window = "utilisation is taken while tasks wait: over the makespan no scheme comes near 85%"
    return Outcome(panels, said, _sizes(played), (STAND_IN, window))


def _busy(played: Played) -> Judged:
    """Judge the level that the paper gives: 85 to 90% of both resources."""
    means = []
    for short in ("cpu", "memory"):
        table = summarize(played.frame, f"utilization_{short}_backlog")
        own = table[table["policy"] == "bf-exec"]
        means.append((short, float(own["mean"].min()), float(own["mean"].max())))
    text = ", ".join(f"{short} {100 * low:.0f} to {100 * high:.0f}%" for short, low, high in means)
    held = all(low >= LEAST_BUSY - 0.01 for _, low, _ in means)
    claim = "BF-EXEC keeps 85 to 90% of the CPU, and almost 90% of the memory in use"
    return Judged(claim, text, judge(held))


@figure(PAPER, "fig3", title="mean queuing delay by number of servers", source="Fig. 3, section VI-B")
def _delay(run: Run) -> Outcome:
    played = _servers(run)
    series = [*lines(played, "servers", labels=LABELS), bound(played, "servers")]
    panel = Panel("number of servers", "mean queuing delay [s]", series, y_scale="log")
    said = [
        judge_better(
            played,
            f"BF-EXEC has a lower mean delay than {LABELS[rival]}",
            Statement("", "bf-exec", (rival,), "mean_delay"),
        )
        for rival in ("ffd-dp", "ffd-nb", "fcfs")
    ]
    return Outcome([panel], said, _sizes(played), (STAND_IN, ZERO))
