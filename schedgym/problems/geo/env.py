"""The Gymnasium classes of GeoAssign and GeoFair; the docstring of a class is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, vector_class
from schedgym.problems.geo.problem import PROBLEM


class GeoAssignEnv(SchedulingEnv):
    """Decide where the tasks of distributed jobs run, and which job is served first.

    An agent decides at which site each waiting task is to run, and in which order the jobs are served. Use
    the environment to study data locality: a task runs only where its data lie, and one busy site delays
    every job that needs it. The aim is a short response time; GeoFair is about fairness.

    ## Description
    Site j has u_j slots; a slot runs one task at a time. Jobs arrive over time, each with many tasks. A
    task's data lie at some sites, and it may run only there; the tasks of a job with the same list of sites
    form a *task group*, and the first site of the list is the group's *associated* site. Tasks are not
    preempted, and their durations are not known before they end. A job completes when its last task does; the
    aim is the least mean response time $sum_i (c_i - a_i) / N$ of the N jobs, completion c_i minus arrival
    a_i.

    At an instant first all tasks that end are handled, then the jobs that arrive. When a job arrives or
    completes, and a task waits, the agent decides in which order the active jobs are served, and at which
    site each waiting task is to run (this may change until the task starts). A free slot of a site then goes
    to the first job of the order that has a waiting task assigned to the site, and within the job to its
    lowest group (but for view `pick`).

    ```python
    import gymnasium as gym
    import numpy as np
    import schedgym

    env = gym.make("schedgym/GeoAssign-v0", jobs=20)
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        unfinished = observation["remaining"]
        scores = 1.0 - unfinished / (1.0 + unfinished.max())  # the job with the fewest tasks first
        observation, reward, terminated, truncated, info = env.step(scores.astype(np.float32))
        done = terminated or truncated
    print(info["metrics"]["mean_response"])
    ```

    ## Action Space
    The parameter `view` chooses the action space. W is the number of visible jobs, K that of groups, and A
    the most sites of a group. In a Box only the rows of visible jobs are read.

    {views}

    The job with the highest score is served first; equal scores are served in order of arrival.
    `placement="greedy"` places job after job in that order, larger groups first, each task at the available
    site with the least (load + 1) / u_j; if the scores give ATA-Greedy's order, the result is ATA-Greedy.
    `placement="associated"` leaves every task at its associated site; with SWAG's order the result is SWAG.
    In view `pick` the site with the largest share of free slots is offered first, and a job uses the slot for
    that of its groups which has the most waiting tasks for each free slot of its sites (with
    `dispatch_sites="associated"`: the lowest site, and the lowest group whose associated site it is).

    Jobs beyond the window come last, in order of arrival, and stay at their associated sites until they
    are visible (view `pick`: they take only slots that no visible job can use; view `rule` decides on all
    jobs). View `priority` cannot express BTAwJ, BTAaJ and SCTA, which do not place all tasks anew.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`:
    numbers of tasks are rounded down; if they are too many, the last sites get fewer, and if they are too
    few, the rest goes to the associated site; a pick of a job that cannot use the slot is replaced by the
    first job that can. With `strict=True` they raise InvalidAction and nothing changes. Malformed actions
    (shape, type, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units; active jobs stand first, in order of arrival:

    {observations}

    The flag of a completion is set when a job has completed; in views `shares`, `weights` and `fair-rule`
    also when all tasks of a group have, and with `aggressive=True` when any task has. Observations contain
    nothing about the future: `seconds` apart, what they say of durations is that of tasks that have ended,
    and for how long others have run.

    `observation="features"` gives the masks and float32 tokens, with c(n) = n / (n + 8) and
    s(a) = a / (a + 10 s):

    {tokens}

    Tokens do not contain the groups' lists of sites, nor the groups of running and assigned tasks.

    ## Rewards
    The reward depends on ``objective``. "response": $-n t / N$, where n jobs were active while the time t
    passed; an episode sums to exactly minus the mean response time [s]. "fairness": $-sigma t / T$, where
    sigma is the standard deviation of the slots that active jobs occupy, and T the time from the first to the
    last arrival (1 s if there is none). "weighted": (1 - `fairness_weight`) times the first plus
    `fairness_weight` times the second. `normalize=True` divides by the mean duration of the episode's tasks
    (a constant that the agent does not see).

    ## Starting State
    The arrival of the first job; all slots are free. The workload is drawn from (seed, number of the
    episode), or given by `reset(options={"workload": ...})`. A given workload must have the same number of
    sites as the environment, and no more different lists of sites than that; a file given as the parameter
    `workload` may have any number of both.

    ## Episode End
    Terminated when all jobs have completed; never truncated. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.geo.problem.GeoParameters`; `render_mode` ("ansi", "rgb_array",
    "human") and `copy`; for `gym.make_vec` also `autoreset_mode` and `threads`.

    ## Source
    guan2022, chapter 3. Workloads: the thesis's Facebook trace of 2010 in the SWIM format (`trace=`), or a
    generator fitted to it (see :mod:`~schedgym.problems.geo.workload`).

    ## Deviations
    The thesis leaves open whether tasks of a job differ in their durations. Sections 3.3 and 5.5 draw "the
    task durations", so each task has its own by default. Section 4.6 draws "the task lengths of different
    jobs": by presets `per-job` and `paper-per-job` all tasks of a job have the same, which lets the
    algorithms differ by several times as much.

    The thesis does not say how simultaneous events and ties are handled; here it is done as described above.
    Events within a relative 1e-12 of their time are simultaneous.
    If no task waits at an event, there is no decision, as it would change nothing.

    ## Version History
    * v0: first version. Before the first release masks were MultiBinary; they are boxes of int8. Observations
      did not show for how long tasks have run. View `pick` offered the lowest site, and chose the group with
      the most waiting tasks for each slot of its sites, whether free or not.
    """

    problem = PROBLEM
    id = "schedgym/GeoAssign-v0"


GeoAssignVectorEnv = vector_class(GeoAssignEnv)


class GeoFairEnv(SchedulingEnv):
    """Share the slots of many sites fairly among distributed jobs.

    An agent decides how many slots of each site each job should have. Use the environment to study fairness
    over several sites, where a job that gets little at one site can be compensated at others. Jobs, sites and
    time are those of GeoAssign.

    ## Description
    Sites, jobs, and task groups are those of :class:`GeoAssignEnv`. Here a decision gives *shares*: a_ikj
    slots of site j for the tasks of job i's group k. Shares are targets, as tasks are not preempted: a free
    slot goes to the waiting job with the least (running tasks / share) at that site, and within the job to
    the group with the least (running tasks / share). Ties go to the larger share, then to the earlier arrival
    or the lower index; ratios and shares within a relative 1e-9 are tied, so that no episode hangs on how a
    share was rounded. Jobs without a share get a slot only if no other job wants it: first those with the
    fewest running tasks at the site, then with the fewest in total, then the earlier arrival. With
    `work_conserving=False` such a slot stays empty, unless nothing else runs or will arrive.

    If a task waits, the agent decides when a job arrives and when a group of a job has finished; with
    `aggressive=True` also whenever a task ends.

    ```python
    import gymnasium as gym
    import numpy as np
    import schedgym

    env = gym.make("schedgym/GeoFair-v0", jobs=20)
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        weights = np.ones(env.action_space.shape, dtype=np.float32)  # equal weights: GAMF
        observation, reward, terminated, truncated, info = env.step(weights)
        done = terminated or truncated
    print(info["metrics"]["mean_std"], info["metrics"]["mean_response"])
    ```

    ## Action Space
    The parameter `view` chooses the action space. W is the number of visible jobs, K that of groups, and A
    the most sites of a group. In a Box only the rows of visible jobs are read.

    {views}

    In view `weights` tasks may run at every site of their group (`dispatch_sites="all"`, as in GAMF) or at
    the associated one only (`"associated"`, as in AMF), as in view `pick`. Weights below 1e-9 of the largest
    one are raised to 1e-9 of it.

    Jobs beyond the window have no share; in view `weights` they have weight 1. View `fair-rule` decides on
    all active jobs; with `clairvoyant=True` its algorithms opt-... use the durations.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`:
    shares are scaled down to the group's unfinished tasks, then to the slots of the site; a group with
    waiting tasks that may start nowhere may start at its associated site; negative weights become 0. With
    `strict=True` they raise InvalidAction and nothing changes. Malformed actions (shape, type, NaN) always
    raise.

    ## Observation Space
    The same as that of :class:`GeoAssignEnv`. The unfinished tasks of a group, which the thesis calls its
    demand, are `waiting` plus the sum of `running` over the sites.

    ## Rewards
    The same as those of :class:`GeoAssignEnv`; the default objective is "fairness".

    ## Starting State
    As that of :class:`GeoAssignEnv`.

    ## Episode End
    As that of :class:`GeoAssignEnv`.

    ## Arguments
    As those of :class:`GeoAssignEnv`.

    ## Source
    guan2022, chapters 4 and 5.

    ## Deviations
    The thesis recomputes shares when a job has finished at a site. This is not defined for tasks with a
    choice of sites; here shares are recomputed when a group of a job has finished. Negative shares are not in
    the thesis: policies of chapter 4, in which a task has one site, use them to close the other sites. All
    else is as in :class:`GeoAssignEnv`.

    ## Version History
    * v0: first version. Before the first release it changed as :class:`GeoAssignEnv` did.
    """

    problem = PROBLEM
    id = "schedgym/GeoFair-v0"


GeoFairVectorEnv = vector_class(GeoFairEnv)
