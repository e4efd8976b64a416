"""The paper's transient algorithm, for jobs that all arrive at time 0."""

from typing import Any

from schedgym.baselines.flowtime.rules import RulePolicy
from schedgym.core.policy import register_policy
from schedgym.errors import InvalidWorkload


@register_policy(
    "flowtime/svf-transient",
    source="xu2021, section IV-C, Lemma 2, Eq. 38 and 39",
    deviations="Eq. 39 has max where min is meant. The decisions are those of svf; only plain jobs without "
    "memory are allowed, and a job that arrives after time 0 is an error.",
    views=("allocation", "priority"),
)
class TransientSVF(RulePolicy):
    """Serves the job with the fewest core-slots first, if all jobs arrive at time 0.

    This is svf for the paper's transient case, in which nothing arrives later. Use it to reproduce that case:
    workloads with memory, MapReduce jobs or later arrivals are errors. It needs the declared work, and takes
    a sort per slot.

    In every slot:

    1. Sort the jobs by their total core-slots, fewest first, ties by row. The key never changes, so every
       slot has the same order.
    2. Give each job its cap while cores are left; the last one gets what is left.
    3. Pack the cores: the largest server first, each takes the jobs that fit whole, most cores first; the
       other jobs are split over the servers with the most free cores. Sticky packing first leaves jobs where
       they are.

    Complexity: O(S + M (W + M)) per slot for W jobs and M servers, where S is Shell's sort of W numbers
    (about W log W). Sticky packing adds O(M) for each server on which a job had cores. In view priority the
    environment does steps 2 and 3.

    Args:
        packing: "fresh" or "sticky"; None: that of the environment.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__(
            "svf", packing, label="svf-transient", views=("allocation", "priority"), kinds=("1d",)
        )

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the decision of svf; InvalidWorkload if a job has arrived after time 0."""
        count = int(observation["active"][0] - observation["backlog"][0])
        if count and observation["arrival"][count - 1] > 0:  # they are in order
            job, arrival = int(observation["job"][count - 1]), int(observation["arrival"][count - 1])
            raise InvalidWorkload(
                f"arrival: svf-transient needs jobs that arrive at 0, job {job} arrives at {arrival}"
            )
        return super().__call__(observation)
