"""Optima of small instances, by search."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter

from schedgym.papers.guan2022.model import Instance


def optimum(instance: Instance) -> float:
    """Least mean response over all schedules that start tasks at arrivals and ends.

    One of them is optimal: moving a start forward to the previous event harms nobody. A slot may idle
    beside a waiting task, except where all times are whole and tasks take 1 s: it would only lose a turn.
    """
    alike = Counter((i, float(d), sites) for i, job in enumerate(instance.jobs) for d, sites in job.tasks)
    parts, counts, slots = list(alike), tuple(alike.values()), instance.slots
    arrivals = [float(job.arrival) for job in instance.jobs]
    turns = all(d == 1 for _, d, _ in parts) and all(arrival.is_integer() for arrival in arrivals)

    @functools.cache
    def search(time: float, left: tuple[int, ...], running: tuple[tuple[float, int, int], ...]) -> float:
        if not any(left) and not running:
            return 0.0
        open_parts = [p for p, n in enumerate(left) if n and arrivals[parts[p][0]] <= time]
        starts = []
        for site, number in enumerate(slots):
            free = number - sum(place == site for _, place, _ in running)
            able = [p for p in open_parts if site in parts[p][2]]
            starts.append(list(itertools.combinations_with_replacement([-1, *able], free)))
        best = math.inf
        for chosen in itertools.product(*starts):
            taken = Counter(p for own in chosen for p in own if p >= 0)
            if any(n > left[p] for p, n in taken.items()):
                continue
            waiting = [p for p in open_parts if left[p] > taken[p]]
            idle = [site for site, own in enumerate(chosen) if -1 in own]
            if turns and any(site in parts[p][2] for p in waiting for site in idle):
                continue
            new = [(time + parts[p][1], site, p) for site, own in enumerate(chosen) for p in own if p >= 0]
            after = sorted([*running, *new])
            instants = [arrival for arrival in arrivals if arrival > time] + [end for end, _, _ in after[:1]]
            if not instants:
                continue
            now = min(instants)
            still = tuple(task for task in after if task[0] > now)
            rest = tuple(n - taken[p] for p, n in enumerate(left))
            unfinished = {parts[p][0] for p, n in enumerate(rest) if n} | {parts[p][0] for _, _, p in still}
            done = {parts[p][0] for end, _, p in after if end <= now} - unfinished
            cost = sum(now - arrivals[i] for i in done)
            best = min(best, cost + search(now, rest, still))
        return best

    return search(min(arrivals), counts, ()) / len(arrivals)
