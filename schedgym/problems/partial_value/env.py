"""The Gymnasium classes of PartialValue; the docstring of PartialValueEnv is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, vector_class
from schedgym.problems.partial_value.problem import PROBLEM


class PartialValueEnv(SchedulingEnv):
    """Serve jobs with deadlines, of which a part that is done in time has a value, too.

    An agent decides how many tasks of each job are served in every slot. Use the environment to study
    overload, where not all jobs can be completed before their deadlines. In the continuous model any amount
    can be served; the discrete model with whole tasks is a packing problem in every slot.

    ## Description
    Time consists of slots 1, 2, ...; job j can be served in the slots from its arrival to its deadline, both
    included, with at most X_j tasks in a slot (`parallelism`) and Y_j in total (`tasks`). A task of job j
    needs the share r_ij = demand / capacity of resource i, and the x_j tasks of each job that are served in a
    slot must fit: $sum_j r_ij x_j <= 1$ for each resource. A job that got y tasks is worth $f_j(y)$, which is
    concave and non-decreasing with $f_j(0) = 0$: $v y$ for `linear`, $v y^q$ for `power` with the exponent q,
    $v log(1 + y)$ for `log`. The aim is the largest total value $sum_j f_j(y_j)$.

    With `model="continuous"` any part of a task can be served. With `model="discrete"` (the default with
    `single=True`) tasks are whole, and task k of a job is worth $f(k) - f(k - 1)$.

    ```python
    import gymnasium as gym
    import numpy as np
    import schedgym

    env = gym.make("schedgym/PartialValue-v0")
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        left = np.maximum(observation["deadline"] - observation["slot"], 0.0)
        scores = 0.1 * np.exp(-left)  # the value of urgent jobs counts up to e times as much
        observation, reward, terminated, truncated, info = env.step(scores)
        done = terminated or truncated
    print(info["metrics"]["value"], info["metrics"]["value_share"])
    ```

    ## Action Space
    The parameter `view` chooses the action space. W is the number of visible active jobs, m that of
    resources. In a Box over jobs only the rows of visible jobs are read.

    {views}

    In view `prices` every active job, also beyond the window, gets the tasks whose value exceeds their cost,
    $x = min(max(g(sum_i b_i r_ij) - y, 0), u)$, where g is the inverse of the slope f', b_i are the prices,
    and u is the most that the job may get now; -50 means a price of 0. If this does not fit, it is scaled
    down as in `allocation`. With the prices at which demand equals capacity this is Algorithm 1.

    In view `priority` of the discrete model, tasks are served in the order of exp(10 s) * value / dominant
    share (the largest share that a task needs of any resource), up to the first task that does not fit. With
    `single_task` this task is served alone if its exp(10 s) * value is larger than that of all served tasks
    together. If all s are 0 this is m-greedy. In the continuous model all jobs are served until exp(10 s) f'
    has fallen to a common level, at which a resource is full. If all s are 0 this is s-greedy. With
    `serving="program"` the continuous model serves by Algorithm 1 as if each job were worth exp(10 s) times
    as much, so that all resources are used. If all s are 0 this is concave. Jobs beyond the window have the
    score -1.

    View `rule` decides on all active jobs. Rules for the other model, and rules that need hidden deadlines,
    are masked.

    Infeasible actions are repaired, counted in the metric `repaired` and flagged in `info["repaired"]`: tasks
    are clipped to [0, u] (discrete: rounded down); if they do not fit, x_j is multiplied by the least of
    $min(1, 1 / load_i)$ over the resources i that it uses (discrete: until all fit, the task with the lowest
    value per dominant share is dropped, the last one if there are several); a masked rule is replaced by
    fifo. With `strict=True` they raise InvalidAction and nothing changes. Malformed actions (shape, type,
    NaN) always raise. Scores and prices are never infeasible.

    ## Observation Space
    `observation="dict"`, in exact units; active jobs stand first, in order of arrival:

    {observations}

    Observations contain nothing about the future.

    `observation="features"` gives the masks and float32 tokens, with q(x, c) = x / (x + c):

    {tokens}

    ## Rewards
    The reward is the value gained in the slot, $sum_j (f_j(y_j + x_j) - f_j(y_j))$; undiscounted, rewards sum
    to the total value. `normalize=True` divides by the value of all jobs of the episode served in full (a
    constant that the agent does not see).

    ## Starting State
    Slot 1; nothing has been served. The workload is drawn from (seed, number of the episode), or given by
    `reset(options={"workload": ...})`; a given workload must have the same number of resources, and its last
    deadline within 100,000 slots and 1,000 for each job.

    ## Episode End
    Terminated after the last deadline, or when all jobs have arrived and none can be served any more; never
    truncated. Slots without jobs are steps, too. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.partial_value.problem.PartialValueParameters`; `render_mode`
    ("ansi", "rgb_array", "human") and `copy`; for `gym.make_vec` also `autoreset_mode` and `threads`.

    ## Source
    zheng2016. Workloads: the paper's generator, or the jobs of a trace, with deadlines that follow from their
    durations (`slack`).

    ## Deviations
    A load fits if it is at most 1 + 1e-9; a job is done at Y - 1e-9 tasks. The paper leaves ties open; they
    go to the larger value, then the earlier arrival.

    ## Version History
    * v0: first version. Before the first release masks were MultiBinary; they are boxes of int8.
    """

    problem = PROBLEM
    id = "schedgym/PartialValue-v0"


PartialValueVectorEnv = vector_class(PartialValueEnv)
