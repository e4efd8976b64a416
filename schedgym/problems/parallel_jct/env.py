"""The Gymnasium classes of ParallelJCT; the docstring of ParallelJCTEnv is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, SchedulingVectorEnv
from schedgym.problems.parallel_jct.problem import PROBLEM

__all__ = ["ParallelJCTEnv", "ParallelJCTVectorEnv"]


class ParallelJCTEnv(SchedulingEnv):
    """Launch jobs of independent tasks: when, on which servers, with how many vCPU.

    An agent decides which waiting job starts now, and where and with how many vCPU its tasks run. Use the
    environment to study online scheduling of whole jobs, where order and placement matter together. In view
    `pick` only the job is chosen, and TaPRA-fast plans it.

    ## Description
    Jobs arrive over time, each with tasks that can run at once. Task i has a load [vCPU s]; on server j,
    whose efficiency for it is lambda_ij in (0, 1], its equivalent load is $Leq_ij = load_i / lambda_ij$. With
    c vCPU it runs for $Leq_ij / c$ seconds, and uses the energy $a_i Leq_ij$ whatever c is, where a_i is its
    power per vCPU: 1, unless a workload gives others. A job is launched as a whole: every task gets a server
    and reserves vCPU there until it completes. Three things limit a launch:

    * a server's vCPU that nobody has reserved;
    * of what is available in a rack, a pod, and the data centre (*groups* of servers), a job may reserve the
      shares `rack_share`, `pod_share` and `data_centre_share`: limit B_k = share times available; a workload
      may give other groups, in which a vCPU on server j counts $A_jk$ (else 1);
    * the job's energy: at most E_MAX.

    For a placement the best vCPU are known in closed form (Eq. 16): with $T_k = sum_i A_jk Leq_i / B_k$ over
    the tasks i in group k, a task runs for the largest T_k of its server's groups.

    The vCPU of a server that nobody has reserved go to the tasks there in proportion to their equivalent
    loads, and are taken back whenever jobs are planned (DRC; with `drc=False` they stay idle). A job
    completes with its last task; the aim is the least mean time in the system $sum_j (c_j - a_j) / J$ of the
    J jobs, completion c_j minus arrival a_j.

    Decisions come in rounds: at ticks (0, `tick`, 2 `tick`, ...), or by `rounds` at arrivals and completions,
    if a job waits. In each round every waiting job gets a new E_MAX of (1 + 0.1 U) times its energy at
    efficiency 1 (with power 1 its load), with U uniform on [0, 1); a job that cannot run within it has failed
    in this round. If a job's least energy, with every task on its most efficient server, is above all such
    draws, E_MAX is that energy. A workload's `energy_cap_ratio` takes the place of 1 + 0.1 U. A round goes on
    until the agent ends it, or all visible waiting jobs were launched or have failed.

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
    By ``view``, with W visible waiting jobs (rows, in order of arrival), M servers, jobs of N tasks at most:

    | view | space | meaning |
    |---|---|---|
    | `plan` | `Box(1 + N, 2)` | (row, 0), then (server, vCPU) of each task; row W ends the round |
    | `pick` | `Discrete(W + 1)` | the job that is planned by TaPRA-fast and launched; W ends the round |
    | `place` | `Discrete(W + 1 + M)` | a row or W; then W + 1 + server for each of the job's tasks in order |
    | `search` | `Discrete(W + 2 + N M)` | a row or W; then moves W + 1 + task M + server; the last launches |

    View `plan`: vCPU that are all 0 mean those of Eq. 16. View `search` starts with every task on its most
    efficient server; a move must keep E_MAX and make the task's time smaller, and the search ends by itself
    when there is no such move, or after `max_moves`. With a plan under which a task
    would never end, the job has failed in this round.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`: a
    row that is no job, or one that has failed, ends the round; servers of a plan are rounded and clipped,
    energy above E_MAX is reduced by the paper's REC (the job fails if that cannot be done), vCPU beyond a
    limit become those of Eq. 16; a server that cannot take the next task becomes the one that can with the
    least equivalent load; an illegal move launches. With `strict=True` they raise InvalidAction and nothing
    changes. Malformed actions (shape, type, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units, with R groups, T rows for tasks of visible waiting jobs, and the
    first S running tasks:

    | key | shape | meaning |
    |---|---|---|
    | `clock`, `time_to_tick` | (1,) | [s] |
    | `event` | (3,) | what happens now: an arrival, the completion of a task, a tick |
    | `capacity`, `available` | (M,) | vCPU of each server: in all, not reserved |
    | `groups` | (R, M) | the servers of each group; A_jk if a workload file has other weights |
    | `limits` | (R,) | B_k, the vCPU that one job may reserve in each group now, by weight |
    | `job`, `arrival`, `age` | (W,) | index; [s] |
    | `tasks`, `first_task` | (W,) | number of tasks, and row of the first one in `load`, `efficiency` |
    | `total_load` | (W,) | [vCPU s] |
    | `least_energy`, `energy_cap` | (W,) | [power * vCPU s] |
    | `failed`, `job_mask` | (W,) | whether the job has failed in this round; which rows hold a job |
    | `waiting`, `backlog` | (1,) | waiting jobs: in all, beyond the window |
    | `load` | (T,) | of the visible jobs' tasks [vCPU s]; rows that no job points to mean nothing |
    | `efficiency` | (T, M) | of the visible jobs' tasks |
    | `power`, `least_work` | (T,), (W,) | only with a workload file that gives power: of tasks; see below |
    | `running` | (1,) | running tasks in all |
    | `run_job`, `run_server` | (S,) | of each running task, in order of launch |
    | `run_leq`, `run_remaining` | (S,) | equivalent load: in all, remaining [vCPU s] |
    | `run_base`, `run_extra` | (S,) | vCPU reserved, and given beyond that until the next round |
    | `open_job`, `next_task` | Discrete | views `place`, `search`: row being planned (W: none), its task |
    | `placement`, `energy` | (N,), (1,) | the same: servers of its tasks (-1: none yet), their energy |
    | `action_mask` | (choices,) | feasible discrete actions; not with `action_mask=False` |

    `least_work` [vCPU s] is a job's work with every task on its most efficient server; where all power is 1
    it is `least_energy`, and is not shown.

    At the end of the episode the rows of jobs are empty. Nothing of the future is shown.

    `observation="features"` gives float32 tokens, with c(n) = n / (n + 32) and t(s) = s / (s + 100) of s
    seconds:

    - `jobs` (W, 7): t(age); c(tasks); l / (l + 100 s of all servers) of the load l; least energy over E_MAX;
      failed; t of the least work over what one job may reserve in all; being planned.
    - `servers` (M, 7): capacity over the largest; available share; c(running tasks); 1 if tasks can get vCPU
      there; and in view `place` for the next task: efficiency; t of the time it would take; 1 if it may go
      there.
    - `globals` (11,): event; available share; c(waiting); c(beyond the window); running / (running + 128);
      time to the tick over `tick`; progress of the job being planned; its energy over E_MAX; t of its time so
      far.
    - `moves` (N, M, 3), view `search`: efficiency; t of the task's time there; 1 if the move is legal.
    - `job_mask`, `action_mask`.

    Tokens leave out which servers form a group, and the single tasks of waiting jobs.

    ## Rewards
    When n jobs are in the system while the time t passes, the reward is $-n t / J$, which sums to exactly
    minus the average time in the system [s]; jobs that never complete are charged up to `max_time`.
    `normalize=True` divides by the mean time that each job alone would need on all servers (least work over
    all vCPU).

    ## Starting State
    The first round; all servers are free. The workload is drawn from (seed, number of the episode), or given
    by `reset(options={"workload": ...})`: on as many servers in the same groups, no job with more tasks than
    an action can hold, no power but 1 unless the observation shows it.

    ## Episode End
    Terminated when all jobs have completed; truncated at `max_time`. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.parallel_jct.problem.ParallelJCTParameters`, and `render_mode`
    ("ansi", "rgb_array", "human"), `copy`, and for `gym.make_vec` `autoreset_mode` and `threads`.

    ## Source
    shi2017, section 5. Workloads: its own, by three readings of its distribution of the number of tasks,
    or the jobs of a trace (Google 2011, SWIM).

    ## Deviations
    Servers' own vCPU are limits (the paper's list forgets them; `server_caps=False` follows it, and then a
    server can be given more than it has, as long as its rack has something available). An episode has a fixed
    number of jobs in place of an hour of arrivals. The paper leaves open the ticks and the order of
    simultaneous events: here arrivals come first, then completions, then decisions; events within 1e-9
    (relative) count as simultaneous. Less than 1e-9 of a server's vCPU counts as nothing. The paper draws
    E_MAX whenever the scheduler is to schedule the job. Here the draw at the r-th tick at which a job waits
    depends on r alone, and rounds between ticks have draws of their own. So a policy that decides at ticks
    finds the same E_MAX with `rounds` "ticks" and "all", and one that decides at arrivals and completions
    with "events" and "all". A round that the MAR test stops has its draw, too.

    ## Version History
    * v0: first version.
    """

    problem = PROBLEM
    id = "schedgym/ParallelJCT-v0"


class ParallelJCTVectorEnv(SchedulingVectorEnv):
    """The native vector environment of :class:`ParallelJCTEnv`: same spaces, batched."""

    env_class = ParallelJCTEnv
