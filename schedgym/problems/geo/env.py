"""The Gymnasium classes of GeoAssign and GeoFair; the docstring of a class is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, SchedulingVectorEnv
from schedgym.problems.geo.problem import PROBLEM

__all__ = ["GeoAssignEnv", "GeoAssignVectorEnv", "GeoFairEnv", "GeoFairVectorEnv"]


class GeoAssignEnv(SchedulingEnv):
    """Decide where the tasks of distributed jobs run, and which job is served first.

    An agent decides at which site each waiting task is to run, and in which order the jobs are served. Use
    the environment to study data locality: a task runs only where its data lie, and one busy site delays
    every job that needs it. The aim is a short response time; GeoFair is about fairness.

    ## Description
    Site j has u_j slots; a slot runs one task at a time. Jobs arrive over time, each with many tasks. A
    task's data lie at some sites, and it may run only there; the tasks of a job with the same list of sites
    are a *task group*, and the first site of the list is its *associated* one. Tasks are not preempted, and
    their durations are not known before they end. A job completes when its last task does; the aim is the
    least mean response time $sum_i (c_i - a_i) / N$ of the N jobs, completion c_i minus arrival a_i.

    Time moves from instant to instant; at each, all tasks that end come first, then the jobs that arrive. At
    an arrival or the completion of a job a decision is due if any task waits: an order of the active jobs,
    and for each waiting task the site where it is to run (it may change until the task starts). A free slot
    then takes the first job of the order that has a waiting task assigned to it: its lowest group, its first
    task.

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
    By ``view``, with W visible jobs, K groups, and A sites at most per group. In a Box only the rows of
    visible jobs are read.

    | view | space | meaning |
    |---|---|---|
    | `assignment` | `Box(W, 1 + K A)` | per job a score, then its waiting tasks by group and site |
    | `priority` | `Box(W,)` | per job a score; tasks are placed by `placement` in that order |
    | `pick` | `Discrete(W)` | whenever a slot is free that a visible job can use: which job takes it |
    | `rule` | `Discrete(10)` | which algorithm decides at this event (ASSIGN_RULES, options by default) |
    | `shares`, `weights`, `fair-rule` | | as in :class:`GeoFairEnv` |

    The job with the highest score is served first; equal scores are served in order of arrival.
    `placement="greedy"` places job after job in that order, larger groups first, each task at the available
    site with the least (load + 1) / u_j (ATA-Greedy's rule; with the jobs ordered as ATA-Greedy orders them
    this is ATA-Greedy); `"associated"` leaves every task at its associated site (in SWAG's order, SWAG). In
    view `pick` a job uses the slot for its lowest group that may run there (`dispatch_sites="associated"`:
    that has it as its associated site).

    Jobs beyond the window come last, in order of arrival, and stay at their associated sites until they
    are visible (view `pick`: they take only slots that no visible job can use; view `rule` decides on all
    jobs). View `priority` cannot express BTAwJ, BTAaJ and SCTA, which do not place all tasks anew.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`:
    counts are rounded down, a surplus is cut from the last site, missing tasks go to the associated one; a
    pick that cannot use the slot becomes the first job that can. With `strict=True` they raise
    InvalidAction and nothing changes. Malformed actions (shape, type, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units; active jobs stand first, in order of arrival:

    | key | shape | meaning |
    |---|---|---|
    | `clock` | (1,) | time [s] |
    | `event` | (3,) | flags: an arrival, a completion since the last decision; a slot is open now |
    | `slots`, `free` | (M,) | slots of each site: in all, free |
    | `sites` | (K, A) | the sites of each group, the associated one first; -1 pads |
    | `group_mask` | (K,) | which groups exist |
    | `arrival`, `age` | (W,) | per visible job [s] |
    | `remaining` | (W,) | unfinished tasks |
    | `waiting` | (W, K) | tasks that have not started, by group |
    | `running` | (W, K, A) | running tasks, by group and site |
    | `assigned` | (W, K, A) | waiting tasks by the site they are assigned to; order views only |
    | `seconds` | (W, K) | with `clairvoyant=True`: sum of the durations of the unfinished tasks [s] |
    | `new` | (W,) | jobs on which nothing has been decided yet |
    | `job_mask` | (W,) | which rows hold a job |
    | `active`, `backlog` | (1,) | active jobs: in all, beyond the window |
    | `open_site` | Discrete(M + 1) | view `pick`: the site of the free slot, M at the end |
    | `action_mask` | (W,) or (rules,) | feasible discrete actions; not with `action_mask=False` |

    The flag of a completion is set when a job has completed; in the views of shares also when a job's group
    has, and with `aggressive=True` when a task has. Nothing of the future is shown, and no duration, but for
    `seconds`.

    `observation="features"` gives float32 tokens, with c(n) = n / (n + 8):

    - `jobs` (W, 7 + K + M [+ M]): c of the unfinished, waiting and running tasks; age / (age + 10 s); new; c
      of the tasks that may start at the open site, and of those running there; c of the waiting tasks per
      group, of the running tasks per site, and in order views of the assigned ones per site.
    - `sites` (M, 5): c(slots); free share; c of the waiting tasks that may run there; c of those assigned to
      it; open.
    - `globals` (7,): event; c of the active jobs, of those beyond the window, and of the waiting tasks;
      clock / (clock + 10 min).
    - `job_mask`, `action_mask`.

    Tokens leave out the groups' lists of sites, and how running and assigned tasks divide into groups.

    ## Rewards
    The reward depends on ``objective``. "response": $-n t / N$, where n jobs were active while the time t
    passed; an episode sums to exactly minus the mean response time [s]. "fairness": $-sigma t / T$, where
    sigma is the standard deviation of the slots that active jobs occupy, and T the time from the first to the
    last arrival (1 s if there is none). "weighted": (1 - `fairness_weight`) times the first plus
    `fairness_weight` times the second. `normalize=True` divides by the mean duration of the episode's tasks
    (a constant that the agent does not see).

    ## Starting State
    The arrival of the first job; all slots are free. The workload is drawn from (seed, number of the
    episode), or given by `reset(options={"workload": ...})`, with as many sites and at most as many different
    lists of sites as there are sites (a file given as the parameter `workload` may have any number).

    ## Episode End
    Terminated when all jobs have completed; never truncated. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.geo.problem.GeoParameters`, and `render_mode` ("ansi",
    "rgb_array", "human"), `copy`, and for `gym.make_vec` `autoreset_mode` and `threads`.

    ## Source
    guan2022, chapter 3. Workloads: its own, the Facebook trace of 2010 in the SWIM format (`trace=`), or a
    generator fitted to it (see :mod:`~schedgym.problems.geo.workload`).

    ## Deviations
    The thesis leaves open simultaneous events and ties; both are resolved as described above. No decision is
    asked for at an event where no task waits, as it would change nothing.

    ## Version History
    * v0: first version.
    """

    problem = PROBLEM
    id = "schedgym/GeoAssign-v0"


class GeoAssignVectorEnv(SchedulingVectorEnv):
    """The native vector environment of :class:`GeoAssignEnv`: same spaces, batched."""

    env_class = GeoAssignEnv


class GeoFairEnv(SchedulingEnv):
    """Share the slots of many sites fairly among distributed jobs.

    An agent decides how many slots of each site each job should have. Use the environment to study fairness
    over several sites, where a job that gets little at one site can be compensated at others. Jobs, sites and
    time are those of GeoAssign.

    ## Description
    Sites, jobs, and task groups are those of :class:`GeoAssignEnv`. Here a decision is a *share*: a_ikj slots
    of site j for the tasks of job i's group k. Shares are targets: as tasks are not preempted, a free slot
    goes to the waiting job with the least running / share at that site (ties: the larger share, then the
    earlier arrival), and within the job to the group with the least running / share (ties: the larger
    share, then the lower index). Jobs without a share come last: fewest running at the site, then in all,
    then the earlier arrival (`work_conserving=False`: the slot stays empty for them, unless nothing else
    runs or arrives any more).

    A decision is due, if any task waits, at an arrival and when a job's group has finished; with
    `aggressive=True`, at every end of a task.

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
    By ``view``, with W visible jobs, K groups, and A sites at most per group. In a Box only the rows of
    visible jobs are read.

    | view | space | meaning |
    |---|---|---|
    | `shares` | `Box(W, K, A)` | slots of each group at each of its sites; negative: no task starts there |
    | `weights` | `Box(W,)` | shares are the weighted max-min fair ones; all equal: GAMF, or AMF |
    | `fair-rule` | `Discrete(9)` | which algorithm shares the sites at this event (FAIR_RULES) |
    | `pick` | `Discrete(W)` | whenever a slot is free that a visible job can use: which job takes it |
    | `assignment`, `priority`, `rule` | | as in :class:`GeoAssignEnv` |

    View `weights`: with `dispatch_sites="all"` tasks may run at every site of their group (GAMF), with
    "associated" at the associated one only (AMF). Weights below 1e-9 of the largest are raised to that.

    Jobs beyond the window have no share, and in view `weights` weight 1; view `fair-rule` decides on all
    active jobs, and with `clairvoyant=True` its opt- algorithms use the durations.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`:
    shares are scaled down to the group's unfinished tasks, then to the slots of the site; a group with
    waiting tasks and no site left open has its associated one opened; negative weights become 0. With
    `strict=True` they raise InvalidAction and nothing changes. Malformed actions (shape, type, NaN) always
    raise.

    ## Observation Space
    As that of :class:`GeoAssignEnv`; the unfinished tasks of a group, the demand of the thesis, are
    `waiting` plus `running` summed over the sites.

    ## Rewards
    As those of :class:`GeoAssignEnv`; the default objective is "fairness".

    ## Starting State
    As that of :class:`GeoAssignEnv`.

    ## Episode End
    As that of :class:`GeoAssignEnv`.

    ## Arguments
    As those of :class:`GeoAssignEnv`.

    ## Source
    guan2022, chapters 4 and 5.

    ## Deviations
    The thesis recomputes when a job has finished at a site, which for tasks with a choice of sites is not
    defined: here it does so when a job's group has finished. Closed entries (negative shares) are not in the
    thesis: with them policies of chapter 4, which know one site per task, act in the same environment as
    those of chapter 5. All else is as in :class:`GeoAssignEnv`.

    ## Version History
    * v0: first version.
    """

    problem = PROBLEM
    id = "schedgym/GeoFair-v0"


class GeoFairVectorEnv(SchedulingVectorEnv):
    """The native vector environment of :class:`GeoFairEnv`: same spaces, batched."""

    env_class = GeoFairEnv
