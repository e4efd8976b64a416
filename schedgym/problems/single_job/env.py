"""The Gymnasium classes of SingleJob; the docstring of the first is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, SchedulingVectorEnv
from schedgym.problems.single_job.problem import PROBLEM

__all__ = ["SingleJobEnv", "SingleJobVectorEnv"]


class SingleJobEnv(SchedulingEnv):
    """Place and size the tasks of one job under an energy cap, so that it completes soon.

    An agent chooses a server for every task of one job, under limits of vCPU for groups of servers and a cap
    on the energy. Use the environment to study placement by itself, without arrivals: an episode is one job,
    and good lower bounds exist. ParallelJCT makes the same decision for many jobs over time.

    ## Description
    A job has n independent tasks; task i has load_i vCPU seconds of work. On server j of M its equivalent
    load is $Leq_ij = load_i / e_ij$ with the efficiency e_ij in (0, 1]: with c vCPU it runs for $Leq_ij / c$
    seconds, and uses the energy $a_i Leq_ij$ whatever c is, where a_i is its power per vCPU: 1, unless a
    workload gives others. All energy may be at most the cap E_MAX. Groups of servers (each server, the racks,
    pods and data centre of a fat tree, or any others) limit what the job may have: a vCPU on server j counts
    $A_jk$ in group k, which is 1 if the server is in the group and 0 if not, unless a workload gives other
    weights; all may count B_k. All tasks start at 0; the job completes with its last task, and the aim is the
    least completion time (JCT).

    For a given placement the best sizes are known (Eq. 16 of the paper): group k takes the time
    $T_k = sum_i A_jk Leq_i / B_k$ over the tasks i in it, a task as long as the slowest of its server's
    groups, and the job $max_k T_k$. So a decision says where tasks run; in view `plan` it can also say with
    how many vCPU.

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
    By ``view``, with N tasks at most, and M servers.

    | view | space | meaning |
    |---|---|---|
    | `plan` | `Box(N, 2)` | server and vCPU of every task; all vCPU 0: sized by Eq. 16 |
    | `place` | `Discrete(M)` | the server of the next task, in index order |
    | `search` | `Discrete(N M + 1)` | i M + j moves task i to server j; N M stops |

    View `plan` is one step; only the rows of the job's tasks are read. View `search` starts with every task
    on its most efficient server (ties: the lowest index), from where the moves of the paper's local search
    lead to TaPRA-fast. A move is legal if the cap is kept and the task becomes faster, by 1e-9 at least. In
    view `place` a server is legal if the cap can still be kept when all tasks to come run where they are most
    efficient; a task's own most efficient server always is.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`.
    View `plan`: servers are rounded and clipped; if the energy exceeds the cap, tasks move to more
    efficient servers by REC (Algorithm 2); vCPU that are not given for all tasks, or are negative, or
    exceed a limit by more than 1e-9 of it, or take longer than 1e30 s, are replaced by those of Eq. 16.
    View `place`: the task's most efficient server. View `search`: stop. With `strict=True` they raise
    InvalidAction and nothing changes. Malformed actions (shape, type, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units, with R groups:

    | key | shape | meaning |
    |---|---|---|
    | `load` | (N,) | of each task [vCPU s]; 0 behind the last |
    | `efficiency` | (N, M) | e_ij |
    | `power` | (N,) | a_i |
    | `task_mask` | (N,) | which rows hold a task |
    | `capacity` | (M,) | vCPU of each server |
    | `groups` | (R, M) | whether a server is in a group; A_jk if a workload file has other weights |
    | `limits` | (R,) | B_k [vCPU, by weight]; 0 for rows without a group |
    | `energy_cap`, `energy` | (1,) | E_MAX, and of the tasks placed [vCPU s] |
    | `placement` | (N,) | server of each task, -1: not placed |
    | `next_task` | Discrete(N + 1) | view `place`: the task to be placed, N at the end |
    | `action_mask` | (M,) or (N M + 1,) | legal discrete actions; not with `action_mask=False` |

    `observation="features"` gives float32 tokens. A time t is shown as $t / (t + u)$, where u is the pooled
    time (see Rewards), or in view `search` the present completion time, which is thus shown as 0.5. The spare
    energy is what the cap leaves when the tasks that are not placed use the least they can; shares of it are
    cut off at 1.

    - `jobs` (N, 8), per task: load / (load + mean load); highest and mean efficiency; share of the servers
      with 0.9 of the highest; placed; next (view `search`: as long as the job, within 1e-9); efficiency and
      time at its server.
    - `servers` (M, 3): the vCPU that its groups allow there, over the largest of those; time of its slowest
      group; the time that so many vCPU need for the tasks not placed that are most efficient there. In view
      `place` four more (M, 7) on the next task there: efficiency; time; share of the spare energy that it
      takes over its least; legal.
    - `pairs` (N, M, 3), views `plan` and `search`, of each task on each server: efficiency; its time there,
      if it alone moved; the change of its energy (from the least if not placed) over the spare energy, from
      -1.
    - `globals` (7,): progress (tasks placed, moves over `max_moves`); completion time over itself plus the
      pooled time; energy over the cap; spare energy over what it was at first; least energy of the tasks not
      placed over that of all; n / (n + 40); the load feature of the next task.
    - `job_mask`, `action_mask`.

    Two features already make a heuristic in view `place`: to take the legal server with the least (time +
    share of the spare energy) is some 15% behind TaPRA-fast (the median at 40 tasks and 54 servers). In view
    `search` the move of the first longest task to where its time is least is TaPRA-fast.

    ## Rewards
    With "incremental" the reward is minus the increase of the completion time of the tasks placed. In view
    `search` the first reward also contains minus the completion time with which the episode began. With
    "terminal" the reward is minus the completion time at the end. Either sums to exactly minus the JCT [s].
    `normalize=True` divides by the pooled time of the episode, a lower bound on the JCT: the least possible
    work over an upper bound on the total vCPU that the limits allow, level by level of the tree
    (`largest_capacity` in schedgym/solvers/placement.py).

    ## Starting State
    At first nothing is placed, except in view `search`. The job is drawn from (seed, number of the episode),
    or given by `reset(options={"workload": ...})`: on as many servers, with at most as many tasks and groups
    as the observation has rows, and with weights of 0 and 1 unless the observation shows others. A file given
    as the parameter `workload` decides these numbers, and what is shown.

    ## Episode End
    Terminated when all tasks are placed; view `search`: when the agent stops, no move is legal any more, or
    after `max_moves`. Never truncated. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.single_job.problem.SingleJobParameters`, and `render_mode`
    ("ansi", "rgb_array", "human"), `copy`, and for `gym.make_vec` `autoreset_mode` and `threads`.

    ## Source
    shi2017: the offline problem (TaPRA), with its generator (see
    :mod:`~schedgym.problems.single_job.workload`).

    ## Deviations
    The paper's list of limits lacks the servers' own capacities, which its Eq. 5 needs: they are limits here
    (`server_caps=False`: as printed). The energy may exceed the cap by 1e-12 of it, for rounding. The
    paper's draws are often infeasible: see the workload.

    ## Version History
    * v0: first version.
    """

    problem = PROBLEM
    id = "schedgym/SingleJob-v0"


class SingleJobVectorEnv(SchedulingVectorEnv):
    """The native vector environment of :class:`SingleJobEnv`: same spaces, batched."""

    env_class = SingleJobEnv
