"""The Gymnasium classes of FlowtimePacking; the docstring of the first is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, vector_class
from schedgym.problems.flowtime.problem import PROBLEM


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

    `kind="2d"` adds memory: each server on which a job has cores reserves the job's whole memory.
    `kind="mapreduce"` has jobs of two phases, map tasks and then reduce tasks. The reduce tasks begin in the
    slot after the last map task has ended. The cores of a job go to its tasks in index order, at most d to
    each.

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
    The parameter `view` chooses the action space. W is the number of visible jobs, M that of servers. In a
    Box only the rows of visible jobs are read.

    {views}

    In view `priority` the jobs get cores in order of their scores (ties: the earlier arrival), each its cap
    (the most cores that it can use), until all cores are used. Then the cores are packed: each server, the
    largest first, takes the jobs with the most cores that fit on it as a whole; all other jobs are split
    (`packing="sticky"` first keeps cores where they were). In 2D each job in turn takes the servers with the
    most free cores that have its memory free. With latencies, tasks are placed so that the sum of latencies
    is least. In view `pick` a job takes the servers with the most free cores, and the slot closes by itself
    when no job can get a core.

    The first W active jobs are visible. Those beyond this window get nothing in views `allocation` and
    `pick`, and come last in `priority`; view `rule` decides on all active jobs.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`: cores
    are rounded down; a job with more cores than its cap loses cores on its last servers; on a server with too
    little cores or memory the jobs that arrived last lose theirs; a pick of a job that can get no core closes
    the slot. With `strict=True` they raise InvalidAction and nothing changes. Malformed actions (shape, type,
    NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units; visible jobs stand first, in order of arrival:

    {observations}

    `observation="features"` gives the masks and float32 tokens, with f(x) = x / (x + 50) and C all cores:

    {tokens}

    ## Rewards
    The reward of slot t is minus the sum of $age^k - (age - 1)^k$ over the active jobs, minus `alpha` times
    the switching cost $S(t) = sum_j sum_i ((u_ij - u'_ij) / d_j)^2$, where job j has u_ij cores on server i,
    and had $u'_ij$ in the slot before; a job's first slot costs nothing. So an episode sums to exactly
    $-sum_j (c_j - a_j)^k - alpha sum_t S(t)$. `normalize=True` divides by the sum of p^k of the episode's
    jobs. Slots without an active job are skipped.

    ## Starting State
    The first slot with an active job. The workload is drawn from (seed, number of the episode), or given by
    `reset(options={"workload": ...})`. A given workload must not need more than 100,000 slots with an active
    job and 1,000 for each job.

    ## Episode End
    Terminated when all jobs have finished. Truncated after 3 G slots, where G is the largest of `gamma`,
    Gamma of Eq. 27, and in 2D 4 sum(p m) / memory; the flowtimes of unfinished jobs end there.
    `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.flowtime.problem.FlowtimeParameters`; `render_mode` ("ansi",
    "rgb_array", "human") and `copy`; for `gym.make_vec` also `autoreset_mode` and `threads`. `estimation`
    lets jobs declare wrong demands. With "waste" a job can get up to its declared demand, but uses at most
    its true d. With "under" it can get at most the smaller of the two. With "order" it can get up to its true
    d, and policies sort by the declared demand.

    ## Source
    xu2021 (OCORP): sections II, VI and VII. Workload: a stand-in for its ten hours of a Google cluster
    (see :mod:`~schedgym.problems.flowtime.workload`), or a real trace.

    ## Deviations
    Demands are whole cores, and work is counted exactly. Observations have `cap`, the number of cores that a
    job may get, even if they do not show its true demand.

    ## Version History
    * v0: first version. Before the first release masks were MultiBinary; they are boxes of int8.
    """

    problem = PROBLEM
    id = "schedgym/FlowtimePacking-v0"


FlowtimePackingVectorEnv = vector_class(FlowtimePackingEnv)
