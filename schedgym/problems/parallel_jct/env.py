"""The Gymnasium classes of ParallelJCT; the docstring of ParallelJCTEnv is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, vector_class
from schedgym.problems.parallel_jct.problem import PROBLEM


class ParallelJCTEnv(SchedulingEnv):
    """Launch jobs of independent tasks: when, on which servers, with how many vCPU.

    An agent decides which waiting job starts now, and where and with how many vCPU its tasks run. Use the
    environment to study online scheduling of whole jobs, where order and placement matter together. In view
    `pick` only the job is chosen, and a planner of the paper places and sizes its tasks.

    ## Description
    Jobs arrive over time, each with tasks that can run at the same time. Task i has load_i [vCPU s] and on
    server j the efficiency lambda_ij in (0, 1]; its equivalent load there is $Leq_ij = load_i / lambda_ij$.
    With c vCPU it runs for $Leq_ij / c$ seconds, and uses the energy $a_i Leq_ij$ whatever c is, where a_i is
    its power per vCPU (1, unless a workload gives other values). A job is launched as a whole: every task
    gets a server and reserves vCPU there until it completes. Three limits hold at a launch:

    * on a server, only vCPU that no task has reserved can be reserved;
    * in each *group* k of servers (rack, pod, data centre) a job may reserve B_k = share * available vCPU,
      with the shares `rack_share`, `pod_share` and `data_centre_share`; a workload may define other groups,
      in which a vCPU on server j counts $A_jk$ instead of 1;
    * the energy of the job may be at most E_MAX.

    For a given placement, Eq. 16 gives the best numbers of vCPU: group k takes the time $T_k = sum_i A_jk
    Leq_i / B_k$ over its tasks i, and a task runs for the largest T_k among the groups of its server.

    The residual vCPU of a server, which no task has reserved, are distributed to its running tasks in
    proportion to their equivalent loads, until jobs are planned again (DRC; with `drc=False` they stay idle).
    A job completes with its last task; the aim is the least mean time in the system $sum_j (c_j - a_j) / J$
    of the J jobs, completion c_j minus arrival a_j.

    If a job waits, there is a round of decisions at each tick (0, `tick`, 2 `tick`, ...), at each arrival and
    completion, or at both (parameter `rounds`). In each round every waiting job gets a new E_MAX of (1 + 0.1
    U) times its energy at efficiency 1 (with power 1 this is its load), with U uniform on [0, 1); a job that
    cannot run within this cap fails in the round. If the least energy of a job, with every task on its most
    efficient server, is above all such caps, E_MAX is that energy. A workload can give `energy_cap_ratio` in
    place of 1 + 0.1 U. A round ends when the agent ends it, or when all visible waiting jobs were launched or
    have failed.

    ```python
    import gymnasium as gym
    import schedgym

    env = gym.make("schedgym/ParallelJCT-v0", jobs=20)
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        first = observation["action_mask"].argmax()  # the job that arrived first, or the end of the round
        observation, reward, terminated, truncated, info = env.step(first)
        done = terminated or truncated
    print(info["metrics"]["average_jct"])
    ```

    ## Action Space
    The parameter `view` chooses the action space. W is the number of visible waiting jobs (rows, in order of
    arrival), M that of servers, and N the most tasks of a job:

    {views}

    In view `plan`, if all vCPU are 0 they are set by Eq. 16. In view `pick`, `planner="tapra-fast"` plans
    the job by TaPRA-fast, and "list-scheduling", which is not in the paper and needs DRC, places the longest
    task first, where it is efficient and running tasks have little work left; then REC meets E_MAX (or
    TaPRA-fast plans). View `search` starts with every task on its most efficient server. A move is legal if
    the energy stays within E_MAX and the task becomes faster; the search ends by itself when no move is
    legal, or after `max_moves`. If a task of a plan would never end, the job fails in this round.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`: an
    empty row, or one of a job that has failed, ends the round; servers of a plan are rounded and clipped,
    energy above E_MAX is reduced by the paper's REC (if that is impossible, the job fails), and vCPU beyond a
    limit are replaced by those of Eq. 16; a server that cannot take the next task is replaced by the one with
    the least equivalent load that can; an illegal move launches the job. With `strict=True` they raise
    InvalidAction and nothing changes. Malformed actions (shape, type, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units, with R groups, T rows for tasks of visible waiting jobs, and the
    first S running tasks:

    {observations}

    Rows of `load`, `efficiency` and `power` to which no `first_task` points have no meaning. `least_energy`,
    and `least_work`, the sum of equivalent loads, are those of a job with every task on its most efficient
    server. If all power is 1 they are equal, and `least_work` is left out.

    At the end of the episode the rows of jobs are empty. Observations contain nothing about the future.

    `observation="features"` gives the masks and float32 tokens, with c(n) = n / (n + 32) and
    t(s) = s / (s + 100) of s seconds; `moves` stand in view `search` only:

    {tokens}

    Tokens do not contain the groups of servers, nor the individual tasks of waiting jobs.

    ## Rewards
    When n jobs are in the system while the time t passes, the reward is $-n t / J$. An episode sums to
    exactly minus the average time in the system [s]; jobs that never complete count up to `max_time`.
    `normalize=True` divides by the mean time that each job alone would need on all servers (least work over
    all vCPU).

    ## Starting State
    The first round; all servers are free. The workload is drawn from (seed, number of the episode), or given
    by `reset(options={"workload": ...})`. A given workload must have the same number of servers in the same
    groups, no job with more tasks than an action can hold, and power 1 unless the observation shows it.

    ## Episode End
    Terminated when all jobs have completed; truncated at `max_time`. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.parallel_jct.problem.ParallelJCTParameters`; `render_mode`
    ("ansi", "rgb_array", "human") and `copy`; for `gym.make_vec` also `autoreset_mode` and `threads`.

    ## Source
    shi2017, section 5. Workloads: the paper's generator, with a choice of three readings of its distribution
    of the number of tasks, or the jobs of a trace (Google 2011, SWIM).

    ## Deviations
    The vCPU of each server are a limit, too. The paper's list of limits leaves them out; with
    `server_caps=False` it is used as printed, and a server can get more load than it has vCPU. An episode has
    a fixed number of jobs instead of an hour of arrivals. The paper does not say how long a tick is, nor how
    simultaneous events are ordered: here arrivals come first, then completions, then decisions; events within
    1e-9 (relative) count as simultaneous. Less than 1e-9 of a server's vCPU counts as 0. The paper draws
    E_MAX whenever the scheduler is to schedule the job. Here the draw at the r-th tick at which a job waits
    depends on r alone, and rounds between ticks have draws of their own. Therefore a policy that decides at
    ticks gets the same E_MAX with `rounds="ticks"` and `"all"`, and a policy that decides at arrivals and
    completions gets the same with `"events"` and `"all"`. Rounds that the MAR test ends also draw E_MAX.

    ## Version History
    * v0: first version. Before the first release masks were MultiBinary; they are boxes of int8.
    """

    problem = PROBLEM
    id = "schedgym/ParallelJCT-v0"


ParallelJCTVectorEnv = vector_class(ParallelJCTEnv)
