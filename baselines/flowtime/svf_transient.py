"""The paper's transient algorithm: all jobs are there at the start."""

from typing import Any

from schedgym.baselines.flowtime.rules import RulePolicy
from schedgym.core.policy import register_policy
from schedgym.errors import InvalidWorkload

__all__ = ["TransientSVF"]


@register_policy(
    "flowtime/svf-transient",
    source="paper 000, section IV-C, Lemma 2, Eq. 38 and 39",
    deviations="Eq. 39 has max where min is meant. Equal to svf, but for plain jobs without memory only, and "
    "an error if a job arrives after time 0.",
    views=("allocation", "priority"),
)
class TransientSVF(RulePolicy):
    """The job with the fewest core-slots first, where all jobs arrive at time 0.

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
