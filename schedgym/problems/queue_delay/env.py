"""The Gymnasium classes of QueueDelay; the docstring of the first is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, SchedulingVectorEnv
from schedgym.problems.queue_delay.problem import PROBLEM

__all__ = ["QueueDelayEnv", "QueueDelayVectorEnv"]


class QueueDelayEnv(SchedulingEnv):
    """Start tasks on heterogeneous servers so that they wait as little as possible.

    An agent decides on which server each waiting task starts, or that it waits longer. Use the
    environment to study online packing of two resources, where a task stays on its server once it has
    started. Episodes consist of many small decisions; views `route` and `rule` have fewer.

    ## Description
    Tasks arrive over time, each with an execution time [s] and a demand of cpu and memory (shares of the
    largest machine). A server runs any number of tasks at once as long as their demands sum to at most its
    capacity in both resources. Tasks are neither preempted nor moved. The aim is the least mean queuing delay
    $sum_i (s_i - a_i) / K$ of the K tasks, start s_i minus arrival a_i.

    Time moves from epoch to epoch: at one instant first all completions are released, then each server
    that released something has a *completion epoch* (ascending index), then each arriving task has an
    *arrival epoch* (order of submission). Within an epoch the agent places any number of tasks, one per
    step, and then closes it.

    ```python
    import gymnasium as gym
    import schedgym

    env = gym.make("schedgym/QueueDelay-v0", tasks=20)
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        action = int(observation["action_mask"].argmax())  # the first task that fits, else close
        observation, reward, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    print(info["metrics"]["mean_delay"])
    ```

    ## Action Space
    By ``view``, with W visible waiting tasks and M servers:

    | view | space | meaning |
    |---|---|---|
    | `placement` | `MultiDiscrete([W + 1, M])` | start a slot's task on a server; task W closes the epoch |
    | `pick` | `Discrete(W + 1)` | start a slot's task on the server that `rule` gives; W closes the epoch |
    | `route` | `Discrete(M + 1)` | at arrivals only: a server for the arriving task, or M, the queue |
    | `rule` | `Discrete(19)` | which named scheme decides this epoch (all but the random ones) |

    In view `route` a released server scans the queue by `order`, starting what fits. In view `pick` a
    completion epoch offers the released server only (`scope="released"`, which bf-exec needs) or all
    (`scope="all"`, which fcfs needs); an arrival epoch offers all servers. `rule` is "first", "best" (least
    L2 norm of what is left after the placement), "worst" (largest), "dot" (largest inner product of demand
    and free resources), or "best-" with another size in place of the norm.

    An infeasible placement (an empty slot, a task that does not fit) is repaired: it closes the epoch (in
    view `route`: it queues the task), is counted in the metric `repaired`, and flagged in
    `info["repaired"]`; with `strict=True` it raises InvalidAction and nothing changes. Malformed actions
    (shape, type, range, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units:

    | key | shape | meaning |
    |---|---|---|
    | `clock` | (1,) | time [s] |
    | `epoch` | Discrete(3) | 0 arrival, 1 completion, 2 the episode has ended |
    | `arriving` | Discrete(W + 1) | slot of the arriving task while it waits, else W |
    | `released` | Discrete(M + 1) | the server of a completion epoch, else M |
    | `capacity`, `remaining` | (M, 2) | cpu and memory of each server: in all, free |
    | `arrival`, `execution`, `waiting` | (W,) | per visible waiting task [s] |
    | `demand` | (W, 2) | cpu and memory per visible waiting task |
    | `task_mask` | (W,) | which slots hold a task; those stand first, in order of arrival |
    | `mean_demand` | (2,) | mean cpu and memory of the tasks submitted so far |
    | `backlog` | (1,) | tasks that wait beyond the window |
    | `action_mask` | (actions,), or (W, M) pairs | feasible actions; not with `action_mask=False` |

    The arriving task is always visible: in its place among the waiting ones if the window reaches it,
    else in the last slot. Nothing of the future is shown.

    `observation="features"` gives the same as float32 tokens, with e(t) = log1p(t) / log1p(86400):

    - `tasks` (W, 5): cpu; memory; e(execution); waiting / (waiting + 3600); arriving.
    - `servers` (M, 5): capacity of cpu and memory; free cpu and memory; released.
    - `globals` (10,): arrival epoch; completion epoch; n / (n + 32) of the waiting tasks and of those beyond
      the window; mean cpu and memory; clock / (clock + 86400); mean and standard deviation of e(execution)
      of the tasks submitted so far; l / (l + 1) of the load l that these have offered, which is their work
      [s] in the busier resource if all servers did it, over the time since the first arrival.
    - `task_mask`, `action_mask`.

    ## Rewards
    When n tasks wait while the time t passes, the reward is $-n t / K$, else 0. Undiscounted, an episode sums
    to exactly minus the mean queuing delay [s]. `normalize=True` divides by the mean execution time of the
    episode's tasks instead (a constant per episode that the agent does not see).

    ## Starting State
    The arrival epoch of the first task; all servers are empty. The workload is drawn from (seed, number
    of the episode), or given by `reset(options={"workload": ...})`.

    ## Episode End
    Terminated when all tasks have finished. Truncated when tasks wait but none runs and none will arrive;
    they are charged as if run one after another from that instant. `info["metrics"]` holds the metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.queue_delay.problem.QueueDelayParameters`, and
    `render_mode` ("ansi", "rgb_array", "human"), `copy`, and for `gym.make_vec` `autoreset_mode` and
    `threads`.

    ## Source
    M. NoroozOliaee, B. Hamdaoui, M. Guizani, M. Ben Ghorbel: Online Multi-Resource Scheduling for Minimum
    Task Completion Time in Cloud Servers. Workloads: a stand-in for the 2011 Google trace (see
    :mod:`~schedgym.problems.queue_delay.workload`), or windows of a real trace.

    ## Deviations
    The paper does not say in which order simultaneous events are handled, nor what becomes of tasks that wait
    for ever under its first fit schemes as printed; both are resolved as described above.

    ## Version History
    * v0: first version.
    """

    problem = PROBLEM
    id = "schedgym/QueueDelay-v0"


class QueueDelayVectorEnv(SchedulingVectorEnv):
    """The native vector environment of :class:`QueueDelayEnv`: same spaces, batched."""

    env_class = QueueDelayEnv
