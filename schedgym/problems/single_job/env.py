"""The Gymnasium classes of SingleJob; the docstring of the first is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, vector_class
from schedgym.problems.single_job.problem import PROBLEM


class SingleJobEnv(SchedulingEnv):
    """Place and size the tasks of one job under an energy cap, so that it completes soon.

    An agent chooses a server for every task of one job, under limits of vCPU for groups of servers and a cap
    on the energy. Use the environment to study placement by itself, without arrivals: an episode is one job,
    and good lower bounds exist. ParallelJCT makes the same decision for many jobs over time.

    ## Description
    A job has n independent tasks; task i has load_i vCPU seconds of work. On server j of M its equivalent
    load is $Leq_ij = load_i / e_ij$ with the efficiency e_ij in (0, 1]: with c vCPU it runs for $Leq_ij / c$
    seconds, and uses the energy $a_i Leq_ij$ whatever c is, where a_i is its power per vCPU (1, unless a
    workload gives other values). The energy of all tasks may be at most the cap E_MAX. In each group k of
    servers (each server, the racks, pods and data centre of a fat tree, or any others) the job may have B_k
    vCPU. A vCPU on server j counts $A_jk$, which is 1 if the server is in group k and 0 if not, unless a
    workload gives other weights. All tasks start at time 0; the job completes with its last task, and the aim
    is the least completion time (JCT).

    For a given placement, Eq. 16 of the paper gives the best numbers of vCPU (sizes): group k takes the time
    $T_k = sum_i A_jk Leq_i / B_k$ over its tasks i, a task runs for the largest T_k among the groups of its
    server, and the job takes $max_k T_k$. Therefore an action only chooses the servers of tasks; in view
    `plan` it can also choose their vCPU.

    ```python
    import gymnasium as gym
    import numpy as np
    import schedgym

    env = gym.make("schedgym/SingleJob-v0", tasks=20)
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        task = observation["next_task"]
        allowed = np.flatnonzero(observation["action_mask"])
        server = allowed[observation["capacity"][allowed].argmax()]  # the largest server that the cap allows
        observation, reward, terminated, truncated, info = env.step(int(server))
        done = terminated or truncated
    print(info["metrics"]["jct"])
    ```

    ## Action Space
    The parameter `view` chooses the action space. N is the most tasks of a job, M the number of servers.

    {views}

    View `plan` is one step; only the rows of the job's tasks are read. View `search` starts with every task
    on its most efficient server (ties: the lowest index); TaPRA-fast starts there, too. A move is legal if
    the energy stays within the cap and the task becomes faster by at least 1e-9. With `fallback="gsa"` the
    planner GSA plans the job as well when the agent stops (30 members, 60 generations, seed 0), and the plan
    with the shorter completion time counts. The search then never does worse than that plan, whose planning
    takes tens of milliseconds. In view `place` a server is
    legal if the cap can still be kept when all later tasks run where they are most efficient; a task's most
    efficient server is always legal.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`.
    View `plan`: servers are rounded and clipped; if the energy exceeds the cap, tasks move to more
    efficient servers by REC (Algorithm 2); vCPU that are not given for all tasks, or are negative, or exceed
    a limit by more than 1e-9 of it, or take longer than 1e30 s, are replaced by those of Eq. 16. View
    `place`: an illegal server is replaced by the task's most efficient one. View `search`: an illegal move
    stops the search. With `strict=True` they raise InvalidAction and nothing changes. Malformed actions
    (shape, type, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units, with R groups:

    {observations}

    `observation="features"` gives the masks and float32 tokens. A time t becomes $t / (t + u)$, where u is
    the pooled time (see Rewards), or in view `search` the present completion time, which thus becomes 0.5.
    The spare energy is the cap minus the energy of the placed tasks and the least energy of all others;
    shares of it are at most 1. Views `plan` and `search` have `pairs`, of each task on each server.

    {tokens}

    Simple heuristics use few features. In view `place` the legal server with the least (time + share of the
    spare energy) gives completion times some 15% above those of TaPRA-fast (median, 40 tasks and 54 servers).
    In view `search` TaPRA-fast moves the first task that takes longest to the server where its time is least.

    ## Rewards
    With `reward="incremental"` each reward is minus the increase of the completion time of the placed tasks;
    in view `search` the initial completion time is part of the first reward. With `reward="terminal"` the
    last reward is minus the completion time, and all others are 0. Both sum to exactly minus the JCT [s].
    `normalize=True` divides by the pooled time of the episode, which is a lower bound on the JCT: the least
    possible work divided by an upper bound on the vCPU that the limits allow in total (`largest_capacity` in
    schedgym/solvers/placement.py).

    ## Starting State
    No task is placed, except in view `search`. The job is drawn from (seed, number of the episode), or given
    by `reset(options={"workload": ...})`. A given job must have the same number of servers, at most as many
    tasks and groups as the observation has rows, and weights of 0 and 1 unless the observation shows others.
    A file given as the parameter `workload` sets these numbers.

    ## Episode End
    Terminated when all tasks are placed; view `search`: when the agent stops, no move is legal any more, or
    after `max_moves`; with a fallback only the stop ends it, the one legal action in the last two cases.
    Never truncated. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.single_job.problem.SingleJobParameters`; `render_mode` ("ansi",
    "rgb_array", "human") and `copy`; for `gym.make_vec` also `autoreset_mode` and `threads`.

    ## Source
    shi2017: the offline problem (TaPRA), with its generator (see
    :mod:`~schedgym.problems.single_job.workload`).

    ## Deviations
    The paper's list of limits leaves out the capacity of each server, which its Eq. 5 contains. Here it is a
    limit, too; with `server_caps=False` the list is used as printed. The energy may exceed the cap by 1e-12
    of it, for rounding. Many jobs drawn as in the paper have no feasible plan;
    :mod:`~schedgym.problems.single_job.workload` says what is done then.

    ## Version History
    * v0: first version. Before the first release masks were MultiBinary; they are boxes of int8.
    """

    problem = PROBLEM
    id = "schedgym/SingleJob-v0"


SingleJobVectorEnv = vector_class(SingleJobEnv)
