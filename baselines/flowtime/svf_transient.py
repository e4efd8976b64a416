"""The paper's transient algorithm: all jobs are there at the start."""

from typing import Any

from schedgym.baselines.flowtime.rules import RulePolicy
from schedgym.core.policy import register_policy
from schedgym.errors import InvalidWorkload

__all__ = ["TransientSVF"]


@register_policy(
    "flowtime/svf-transient",
    source="xu2021, section IV-C, Lemma 2, Eq. 38 and 39",
    deviations="Eq. 39 has max where min is meant. Equal to svf, but for plain jobs without memory only, and "
    "an error if a job arrives after time 0.",
    views=("allocation", "priority"),
)
class TransientSVF(RulePolicy):
    """The job with the fewest core-slots first, where all jobs arrive at time 0.

    In every slot:

    1. Sort the jobs by core-slots in all, done ones included, fewest first, ties by row.
    2. Give each job its cap while cores are left; the last one gets what is left.
    3. Pack: the largest server first, each takes the jobs that fit whole, most cores first; the others are
       split over the servers with most free cores. Sticky packing lets jobs keep their places before that.

    Nothing is remembered. As all jobs are there from the start, and the key never changes, every slot has the
    same order.

    Complexity: O(S + M (W + M)) per slot for W jobs and M servers, where S is Shell's sort of W numbers
    (about W log W). Sticky packing adds O(M) for each server that a job was on. In view priority the
    environment does steps 2 and 3.

    Args:
        packing: "fresh" or "sticky"; None: as the environment's parameter says.
    """

    def __init__(self, packing: str | None = None) -> None:
        super().__init__(
            "svf", packing, label="svf-transient", views=("allocation", "priority"), kinds=("1d",)
        )

    def __call__(self, observation: dict[str, Any]) -> Any:
        """The decision of svf; InvalidWorkload if a job has arrived after time 0."""
        count = int(observation["active"][0] - observation["backlog"][0])
        if count and observation["arrival"][count - 1] > 0:  # they are in order
            job, arrival = int(observation["job"][count - 1]), int(observation["arrival"][count - 1])
            raise InvalidWorkload(
                f"arrival: svf-transient needs jobs that arrive at 0, job {job} arrives at {arrival}"
            )
        return super().__call__(observation)
