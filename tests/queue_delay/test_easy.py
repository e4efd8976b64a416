"""EASY backfilling against the textbook's algorithm; test_resources.py has it against its definition."""

from __future__ import annotations

import random

import schedgym
from schedgym.papers.noroozoliaee2014.model import simulate
from schedgym.problems.queue_delay.metrics import fates
from schedgym.problems.queue_delay.workload import make_workload
from tests.playing import play as play_episode
from tests.queue_delay.instances import make_instance
from tests.queue_delay.test_rules import make


def play(tasks, servers, **parameters):
    """Starts and servers under easy-backfill."""
    workload = make_workload(tasks, servers)
    policy = schedgym.make_policy("easy-backfill", "queue-delay")
    played = play_episode(make(workload, **parameters), policy, workload=workload)
    assert played.metrics["repaired"] == 0
    return fates(played.record)


def textbook(jobs, nodes):
    """Starts of jobs (submit, run time, nodes) by Mu'alem and Feitelson 2001, section 2: shadow, extra nodes.

    All quantities are whole numbers: nothing is rounded.
    """
    start = {}
    clock, queue, running, waiting = 0, [], [], sorted(range(len(jobs)), key=lambda i: jobs[i][0])

    def schedule():
        free = nodes - sum(jobs[i][2] for i, _ in running)
        while queue and jobs[queue[0]][2] <= free:
            free -= jobs[queue[0]][2]
            start[queue[0]] = clock
            running.append((queue[0], clock + jobs[queue[0]][1]))
            del queue[0]
        if not queue:
            return
        have, shadow = free, clock
        for i, end in sorted(running, key=lambda one: one[1]):
            if have >= jobs[queue[0]][2] and end != shadow:
                break
            have, shadow = have + jobs[i][2], end
        extra = have - jobs[queue[0]][2]
        for i in queue[1:]:
            size = jobs[i][2]
            in_time = clock + jobs[i][1] <= shadow
            if size <= free and (in_time or size <= extra):
                extra -= 0 if in_time else size
                free -= size
                start[i] = clock
                running.append((i, clock + jobs[i][1]))
                queue.remove(i)

    while waiting or running:
        clock = min([jobs[i][0] for i in waiting[:1]] + [end for _, end in running])
        if any(end == clock for _, end in running):
            running = [one for one in running if one[1] != clock]
            schedule()
        while waiting and jobs[waiting[0]][0] == clock:
            queue.append(waiting.pop(0))
            schedule()
    return [start[i] for i in range(len(jobs))]


def crowded(source, count, nodes):
    """Jobs for one machine of so many nodes, more than it can run at once."""
    clock, jobs = 0, []
    for _ in range(count):
        clock += source.choice((0, 0, 1, 2, 5))
        jobs.append((clock, source.randint(1, 20), source.randint(1, source.choice((2, nodes)))))
    return jobs


def test_one_server_and_one_resource_give_the_textbook_s_algorithm():
    source = random.Random(7)
    passed = 0
    for _ in range(60):
        nodes = source.choice((4, 8, 16))
        jobs = crowded(source, 40, nodes)
        expected = textbook(jobs, nodes)
        tasks = [(submit, time, size / nodes, 0.0) for submit, time, size in jobs]
        assert play(tasks, [(1.0, 1.0)])["start"] == expected
        passed += sum(a > b for a, b in zip(expected, expected[1:], strict=False))
    assert passed > 100, "hardly a job was backfilled"


def test_the_reserved_server_is_used_only_by_what_ends_in_time_or_fits_beside_the_head():
    tasks = [
        (0.0, 10.0, 0.6, 0.6),  # server 0 until 10
        (0.0, 30.0, 0.6, 0.6),  # server 1 until 30
        (1.0, 9.0, 0.7, 0.7),  # the head: reserved for server 0 at 10
        (2.0, 8.0, 0.4, 0.4),  # ends at 10: server 0
        (3.0, 9.0, 0.35, 0.35),  # fits beside nothing there: server 1
    ]
    found = play(tasks, [(1.0, 1.0)] * 2)
    assert found["start"] == [0, 0, 10, 2, 3]
    assert found["server"] == [0, 1, 0, 0, 1]
    late = [*tasks[:3], (2.0, 9.0, 0.4, 0.4), (2.5, 9.0, 0.3, 0.3)]  # the last fits beside the head
    assert play(late, [(1.0, 1.0), (0.6, 0.6)])["start"] == [0, 0, 10, 10 + 9, 2.5]


def test_a_full_window_does_not_stop_it():
    source = random.Random(3)
    tasks = [(float(s), float(t), n / 8, 0.0) for s, t, n in crowded(source, 60, 8)]
    assert None not in play(tasks, [(1.0, 1.0)], window=2)["start"]


def test_more_tasks_run_than_it_first_has_room_for():
    tasks = [(0.0, 10.0 + i, 0.001, 0.0) for i in range(150)] + [(1.0, 5.0, 0.9, 0.0), (2.0, 3.0, 0.2, 0.0)]
    found = play(tasks, [(1.0, 1.0)])
    expected = simulate(make_instance(tasks, [(1.0, 1.0)]), "easy-backfill")
    assert found["start"] == list(expected.start)
    assert found["start"][150] > 10.0 and found["start"][151] == 2.0
