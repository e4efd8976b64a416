"""The Gymnasium classes of FlowtimePacking; the docstring of the first is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, SchedulingVectorEnv
from schedgym.problems.flowtime.problem import PROBLEM

__all__ = ["FlowtimePackingEnv", "FlowtimePackingVectorEnv"]


class FlowtimePackingEnv(SchedulingEnv):
    """Give the cores of heterogeneous servers to preemptible jobs, slot by slot, so that they finish soon.

    An agent decides how many cores each job gets on each server in every slot. Use the environment to study
    preemptive scheduling of parallel jobs on servers of different sizes, where short jobs should not wait and
    long ones should not starve. Memory, MapReduce phases, switching costs and wrong estimates are options.

    ## Description
    Time consists of slots of 10 s. Job j arrives at a_j, is *active* from slot a_j + 1 until it has finished,
    and has p_j d_j core-slots of work: at its demand of d_j cores it takes p_j slots. In each slot it may
    have any whole number of cores up to d_j, on one server or split over several; cores may be taken away and
    given back without loss of work. Its flowtime is c_j - a_j, where c_j is the slot in which its work ends;
    the aim is the least l_k norm of the flowtimes, $(sum_j (c_j - a_j)^k)^(1/k)$.

    `kind="2d"` adds memory: each server that hosts a share of a job reserves the job's whole memory.
    `kind="mapreduce"` has jobs of two phases: map tasks, then reduce tasks, which begin in the slot after the
    last map task has ended; the cores of a job go to its tasks in index order, d per task at most.

    ```python
    import gymnasium as gym
    import numpy as np
    import schedgym

    env = gym.make("schedgym/FlowtimePacking-v0", jobs=20)
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        left = observation["slots_left"]
        scores = 1.0 - left / (1.0 + left.max())  # the job that could finish soonest first
        observation, reward, terminated, truncated, info = env.step(scores.astype(np.float32))
        done = terminated or truncated
    print(info["metrics"]["l2"])
    ```

    ## Action Space
    By ``view``, with W visible jobs and M servers. In a Box only the rows of visible jobs are read.

    | view | space | meaning |
    |---|---|---|
    | `allocation` | `Box(W, M)`, int64 | cores of each job on each server in this slot |
    | `priority` | `Box(W,)` | per job a score: the highest is filled up first; -1 holds the job back |
    | `pick` | `Discrete(W + 1)` | the next job gets what it can use, at once; W closes the slot |
    | `rule` | `Discrete(7)` | which rule decides this slot: fifo, srpt, srvf, svf, srf, tetris, drf |

    In view `priority` each job, in order of the scores (ties: the earlier arrival), gets its cap, the
    most cores that it can use, until the cores are used up. They are then packed: each server, the
    largest first, takes the jobs with most cores that fit whole, and the rest is split
    (`packing="sticky"` first keeps cores where they were). In 2D job after job takes the servers with
    most free cores that have its memory; with latencies, tasks go where the sum of latencies is least. In
    view `pick` a job takes the servers with most free cores; a slot closes by itself when nothing fits.

    The first W active jobs are visible. Those beyond this window get nothing in views `allocation` and
    `pick`, and come last in `priority`; view `rule` decides on all active jobs.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`: cores
    are rounded down, a job beyond its cap gives up cores from its last servers, a server beyond its cores or
    its memory takes them back from the latest jobs; a pick that cannot be granted closes the slot. With
    `strict=True` they raise InvalidAction and nothing changes. Malformed actions (shape, type, NaN) always
    raise.

    ## Observation Space
    `observation="dict"`, in exact units; visible jobs stand first, in order of arrival:

    | key | shape | meaning |
    |---|---|---|
    | `slot` | (1,) | the slot to be decided |
    | `server_cpu`, `server_memory` | (M,) | cores, GB (2D) |
    | `job`, `arrival`, `age` | (W,) | number; slots |
    | `processing`, `demand` | (W,), mapreduce (W, 2) | p [slots], d [cores], as declared |
    | `memory` | (W,) | GB, as declared (2D) |
    | `slots_left` | (W,) | remaining work over d; mapreduce: the longest task of each phase, added up |
    | `remaining`, `volume` | (W,) | work left and in all [core-slots], by the declared demand |
    | `cap` | (W,) | the most cores that the job may get now |
    | `held`, `last` | (W, M) | cores in the slot before; servers of the last slot with cores |
    | `tasks`, `phase`, `task_remaining`, `latency` | (W, 2), (W,), (W, 2, Q), (W, 2, Q, M) | mapreduce |
    | `eq27` | (1,) | with `clairvoyant=True`: Gamma of Eq. 27, by when all jobs are assumed to be done |
    | `granted`, `free`, `free_memory` | (W, M), (M,), (M,) | view `pick`: in this slot so far |
    | `job_mask` | (W,) | which rows hold a job |
    | `active`, `backlog` | (1,) | active jobs: in all, beyond the window |
    | `action_mask` | (W + 1,) or (7,) | feasible discrete actions; not with `action_mask=False` |

    `observation="features"` gives float32 tokens, with f(x) = x / (x + 50) and C all cores:

    - `jobs` (W, 10 + M): f(age); f(p); d / (d + C); memory over the largest server's; f(slots left);
      w / (w + 50 C) of the work left; cap / C; cores held over C; cores granted over C; second phase; cores
      held on each server over those of the server.
    - `servers` (M, 4): cores over C; free share; memory over the largest; free share of it.
    - `globals` (4,): t / (t + 1000); n / (n + 32) of the active jobs and of those beyond the window;
      w / (w + 50 C) of all work left.
    - `job_mask`, `action_mask`.

    ## Rewards
    The reward of slot t is minus the sum of $age^k - (age - 1)^k$ over the active jobs, minus `alpha` times
    the switching cost $S(t) = sum_j sum_i ((u_ij - u'_ij) / d_j)^2$, where job j has u_ij cores on server i,
    and had u'_ij in the slot before; jobs in their first slot cost nothing. So an episode sums to exactly
    $-sum_j (c_j - a_j)^k - alpha sum_t S(t)$. `normalize=True` divides by the sum of p^k of the episode's
    jobs. Slots without an active job are skipped.

    ## Starting State
    The first slot with an active job. The workload is drawn from (seed, number of the episode), or given by
    `reset(options={"workload": ...})`.

    ## Episode End
    Terminated when all jobs have finished. Truncated after three times the largest of `gamma`, Eq. 27 of the
    workload, and in 2D 4 sum(p m) / memory [slots]; unfinished jobs are charged up to there.
    `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.flowtime.problem.FlowtimeParameters`, and `render_mode` ("ansi",
    "rgb_array", "human"), `copy`, and for `gym.make_vec` `autoreset_mode` and `threads`. `estimation` makes
    declared demands wrong: with "waste" they cap the grants, of which a job uses at most its true d; with
    "under" the true d caps the grants, too; with "order" they serve the sorting only.

    ## Source
    xu2021 (OCORP): sections II, VI and VII. Workload: a stand-in for its ten hours of a Google cluster
    (see :mod:`~schedgym.problems.flowtime.workload`), or a real trace.

    ## Deviations
    Demands are whole cores and work is kept exactly. `cap` tells how many cores a job may get, even where its
    true demand is not shown.

    ## Version History
    * v0: first version.
    """

    problem = PROBLEM
    id = "schedgym/FlowtimePacking-v0"


class FlowtimePackingVectorEnv(SchedulingVectorEnv):
    """The native vector environment of :class:`FlowtimePackingEnv`: same spaces, batched."""

    env_class = FlowtimePackingEnv
