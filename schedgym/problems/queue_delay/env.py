"""The Gymnasium classes of QueueDelay; the docstring of the first is the page of its id."""

from __future__ import annotations

from schedgym.envs import SchedulingEnv, vector_class
from schedgym.problems.queue_delay.problem import PROBLEM


class QueueDelayEnv(SchedulingEnv):
    """Start tasks on heterogeneous servers so that they wait as little as possible.

    An agent decides for each waiting task on which server it starts, or that it waits longer. Use the
    environment to study online packing of several resources, where a task stays on its server once it has
    started. Episodes consist of many small decisions; views `route` and `rule` have fewer.

    ## Description
    Tasks arrive over time, each with an execution time [s] and a demand of each resource (shares of the
    largest machine). A server runs any number of tasks at once as long as their demands sum to at most its
    capacity in all resources. These are cpu and memory, or with parameter `resources` one to four of any
    names, such as gpu; a server may have nothing of some. Tasks are neither preempted nor moved. The aim is
    the least mean queuing delay $sum_i (s_i - a_i) / K$ of the K tasks, start s_i minus arrival a_i.

    Decisions are made in epochs. At an instant at which tasks complete or arrive, first all completed tasks
    free their resources. Then each server with a completed task has a *completion epoch* (in order of index),
    and each arriving task has an *arrival epoch* (in order of submission). In an epoch the agent places any
    number of tasks, one per step, and then closes the epoch.

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
    The parameter `view` chooses the action space. W is the number of visible waiting tasks (slots), M that of
    servers:

    {views}

    In view `route` a completion epoch needs no action: the server with the completed task (the *released*
    server) tries all waiting tasks in the order that parameter `order` gives, and starts those that fit. In
    view `pick` tasks can start on the released server only (`scope="released"`, which bf-exec needs) or on
    all servers (`scope="all"`, which fcfs needs); in an arrival epoch they can always start on all. Parameter
    `rule` is "first" (the first server on which the task fits), "best" (the one with the least L2 norm of
    what is left after the placement), "worst" (the largest norm), "dot" (the largest inner product of demand
    and free resources), or "best-product", "best-sum", "best-avgsum" with another measure in place of the
    norm. A product leaves out the resources of which the server has none, as all would be 0 there.

    An infeasible placement (an empty slot, a task that does not fit) is repaired: it closes the epoch (in
    view `route`: it queues the task), is counted in the metric `repaired`, and flagged in
    `info["repaired"]`; with `strict=True` it raises InvalidAction and nothing changes. Malformed actions
    (shape, type, range, NaN) always raise.

    ## Observation Space
    `observation="dict"`, in exact units:

    {observations}

    The arriving task is always visible: in its place among the waiting ones if it is within the window, else
    in the last slot. Observations contain nothing about the future.

    `observation="features"` gives the same as float32 tokens, and masks; e(t) = log1p(t) / log1p(86400):

    {tokens}

    ## Rewards
    When n tasks wait while the time t passes, the reward is $-n t / K$, else 0. Undiscounted, an episode sums
    to exactly minus the mean queuing delay [s]. `normalize=True` divides rewards by the mean execution time
    of the episode's tasks (a constant of the episode that the agent does not see).

    ## Starting State
    The arrival epoch of the first task; all servers are empty. The workload is drawn from (seed, number
    of the episode), or given by `reset(options={"workload": ...})`.

    ## Episode End
    Terminated when all tasks have finished. Truncated when tasks wait but none runs and none will arrive any
    more; their delays are counted as if they ran one after another from then on. `info["metrics"]` holds the
    metrics.

    ## Arguments
    The fields of :class:`~schedgym.problems.queue_delay.problem.QueueDelayParameters`; `render_mode` ("ansi",
    "rgb_array", "human") and `copy`; for `gym.make_vec` also `autoreset_mode` and `threads`.

    ## Source
    M. NoroozOliaee, B. Hamdaoui, M. Guizani, M. Ben Ghorbel: Online Multi-Resource Scheduling for Minimum
    Task Completion Time in Cloud Servers. The paper's formulas sum over cpu and memory; with other resources
    they sum over these. Workloads: a stand-in for the 2011 Google trace (see
    :mod:`~schedgym.problems.queue_delay.workload`), or windows of a real trace. Resources besides cpu and
    memory are drawn as devices, by our own assumption: a server has eight of a kind or none, each with
    probability 1/2 (the first server always has them), and a share `device_share` of the tasks asks for 1, 2,
    4 or 8 of them, each as often, but a share `device_part_share` of these for a part of one, uniformly. The
    preset "gpu-cluster" has the shares of Alibaba's GPU cluster trace 2023.

    ## Deviations
    The paper does not say in which order simultaneous events are handled; the order here is that of the
    epochs. Events within a relative 1e-12 of their time are simultaneous. Under its first fit schemes as
    printed some tasks never start; then the episode is truncated. Devices of a server are one pool: a part of
    a device can be any, a task that asks for several needs none that are whole, and types of devices are not
    told apart.

    ## Version History
    * v0: first version. Before the first release masks were MultiBinary; they are boxes of int8. Also before
      it, products left out no resource.
    """

    problem = PROBLEM
    id = "schedgym/QueueDelay-v0"


QueueDelayVectorEnv = vector_class(QueueDelayEnv)
