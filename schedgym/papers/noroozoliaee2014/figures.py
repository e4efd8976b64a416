"""Figures of "Online Multi-Resource Scheduling for Minimum Task Completion Time" (noroozoliaee2014).

The paper uses a part of Google's trace of 2011, but names neither the window nor the machines. The tasks and
machines of the generator stand in for them. The statements on both figures are registered as claims
(:mod:`~schedgym.papers.noroozoliaee2014.experiments`).
"""

from __future__ import annotations

from schedgym.papers import Evaluation, Outcome, Panel, Run
from schedgym.papers.figures import bound, lines
from schedgym.papers.noroozoliaee2014.experiments import COMPARED, FFD
from schedgym.papers.noroozoliaee2014.instances import OPEN
from schedgym.papers.noroozoliaee2014.runs import sweep_policies
from schedgym.papers.registry import figures_of

figure = figures_of("noroozoliaee2014")


def _labels(run: Run) -> dict[str, str]:
    """Policy -> label as in the paper, under a reading of FFD."""
    ffd = {f"{name}{run.choice(OPEN['HEAD'])}": name.upper() for name in FFD}
    return {"bf-exec": "BF-EXEC", **dict(reversed(ffd.items())), "fcfs": "FCFS"}


def _sizes(played: Evaluation) -> str:
    episodes = played.episodes
    tasks = played.parameters["tasks"]
    return f"{episodes} draws of {tasks} tasks from a stand-in for Google's trace"


@figure("fig2")
def _utilization(run: Run) -> Outcome:
    played, window = sweep_policies(run, COMPARED), run.choice(OPEN["WINDOW"])
    panels = []
    for letter, resource in (("a", "memory"), ("b", "cpu")):
        own = lines(played, "servers", f"utilization_{resource}{window}", labels=_labels(run), factor=100.0)
        title = f"({letter}) {'CPU' if resource == 'cpu' else resource}"
        panels.append(Panel("number of servers", "utilisation [%]", own, title=title))
    return Outcome(panels, (), _sizes(played))


@figure("fig3")
def _delay(run: Run) -> Outcome:
    played = sweep_policies(run, COMPARED)
    series = [*lines(played, "servers", labels=_labels(run)), bound(played, "servers")]
    panel = Panel("number of servers", "mean queuing delay [s]", series, y_scale="log")
    return Outcome([panel], (), _sizes(played))
