"""First fit and best fit decreasing by five sizes, made online."""

from typing import Any

from schedgym.baselines.queue_delay.scheme import SchemePolicy, candidates_of, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["BestFitDecreasing", "FirstFitDecreasing"]

_SOURCE = "noroozoliaee2014, section III-A2 and III-A3 (sizes from Panigrahy et al. 2011)"
_ONLINE = (
    "The paper leaves open how the offline rule meets arrivals: an arriving task bypasses the queue, and a "
    "completion scans the queue by decreasing size on the released server, passing over what does not fit."
)


_SIZES = {
    "nb": "L2 norm",
    "dp": "dot product with what is free",
    "product": "product",
    "sum": "sum",
    "avgsum": "sum weighted by the mean demands",
}
_BLOCKING = (
    "First fit of section III-A1 tries only the front of the queue, and section III-A2 assigns by it: here "
    "the queue is in the order of size, an arriving task joins it instead of bypassing it, and its front is "
    "tried on all servers, so that no task waits for ever. ``bypass`` lets an arriving task pass the queue."
)
_BLOCKING_DOT = (
    " The paper does not say how large a waiting task is, as it has a value for each server: here it is the "
    "largest one, also if the task does not fit there."
)


def _enter_first_fit(policy: Any) -> Any:
    """Register the class for each size, without and with blocking."""
    for size, words in _SIZES.items():
        start = "Largest dot product" if size == "dp" else "First fit"
        register_policy(
            f"queue-delay/ffd-{size}",
            source=_SOURCE,
            deviations=_ONLINE,
            views=carrying_views(f"ffd-{size}"),
            # blocking has a name of its own, and bypass has a meaning with it only
            candidates={**candidates_of(f"ffd-{size}"), "blocking": (), "bypass": ()},
            summary=f"{start} on arrival; completions scan by decreasing {words}.",
            size=size,
        )(policy)
        start = "to the largest dot product" if size == "dp" else "first fit"
        register_policy(
            f"queue-delay/ffd-{size}-blocking",
            source=_SOURCE,
            deviations=_BLOCKING + (_BLOCKING_DOT if size == "dp" else ""),
            views=("placement", "pick"),
            candidates=candidates_of(f"ffd-{size}"),
            summary=f"Heads of the queue by decreasing {words}, {start}, until one fits nowhere.",
            size=size,
            blocking=True,
        )(policy)
    return policy


def _enter_best_fit(policy: Any) -> Any:
    """Register the class for each size."""
    for size, words in _SIZES.items():
        register_policy(
            f"queue-delay/bfd-{size}",
            source=_SOURCE,
            deviations=_ONLINE + " Best: where the size of what is left is least (dp: its L2 norm).",
            views=carrying_views(f"bfd-{size}"),
            candidates=candidates_of(f"bfd-{size}"),
            summary=f"Best fit on arrival; completions scan by decreasing {words}.",
            size=size,
        )(policy)
    return policy


@_enter_first_fit
class FirstFitDecreasing(SchemePolicy):
    """First fit on arrival (dp: largest dot product); completions scan the queue by decreasing size.

    This is first fit decreasing of vector bin packing, made online: large tasks go first, as small ones still
    fit later. Use it where execution times are unknown; it needs demands only, and so does not favour short
    tasks as bf-exec does. It is cheap, and keeps no state between calls.

    1. A task arrives: it starts on the lowest server on which it fits (dp: the one with the largest inner
       product of demand and free resources), or joins the queue.
    2. A task ends: its server takes the largest waiting task that fits, again and again, until none fits.

    With ``blocking``, at both: the largest waiting task starts on the server that step 1 gives, again and
    again, until one fits nowhere; with ``bypass`` at completions only. The dot product of a waiting task is
    then the largest over all servers, also those on which it does not fit. Ties go to the earliest
    submission. Sizes are computed anew at every decision, as those of dp and avgsum change.

    The size of a demand of c cpu and m memory is $(c^p + m^p)^(1/p)$ for nb, which is $sqrt(c^2 + m^2)$
    unless ``p`` is set, $c m$ for product, $w_c c + w_m m$ for sum (``weights``) and avgsum (the mean demands
    so far), and for dp the dot product with what is free on the server. The names ffd-nb, ffd-dp,
    ffd-product, ffd-sum and ffd-avgsum set ``size``; names that end in -blocking set ``blocking``.

    Complexity: O(M) at an arrival, O(Q) for each start at a completion and once more for its end; with
    blocking O(Q + M), for dp O(Q M), for each start and for the head that blocks; M servers, Q visible
    waiting tasks. Counting the visible tasks of a window of W adds O(log W). In view rule the environment
    does this work.

    Args:
        size: nb (L_p norm), dp (dot product with what is free), product, sum, or avgsum (weighted by the mean
            demands so far).
        blocking: an arrival joins the queue, and heads in the order of size go to the first fitting server
            (dp: to that of the largest dot product) until one fits nowhere, also at completions.
        bypass: with ``blocking``: an arriving task starts where step 1 puts it, past the queue, and joins the
            queue only if it fits nowhere; only completions try the heads.
        weights: of cpu and memory in the size "sum".
        p: of the norm in the size "nb", above 1; infinity compares the larger of cpu and memory. With a p
            other than 2 the views rule and route cannot carry the policy.
    """

    def __init__(
        self,
        size: str,
        blocking: bool = False,
        bypass: bool = False,
        weights: tuple[float, float] = (1.0, 1.0),
        p: float = 2.0,
    ) -> None:
        super().__init__(f"ffd-{size}", blocking=blocking, bypass=bypass, weights=weights, p=p)


@_enter_best_fit
class BestFitDecreasing(SchemePolicy):
    """Best fit by a size on arrival; completions scan the queue by decreasing size.

    This is best fit decreasing of vector bin packing, made online: a task starts where it leaves least free.
    Use it like the ffd policies, where execution times are unknown and servers should be filled tightly; it
    needs demands only. It is cheap, and keeps no state between calls.

    1. A task arrives: of the servers on which it fits, it starts on the one where the size of what is left is
       least (dp: its L2 norm); if there is none, it joins the queue.
    2. A task ends: its server takes the largest waiting task that fits, again and again, until none fits.

    Ties go to the lowest server and to the earliest submission. Sizes are computed anew at every decision, as
    those of dp and avgsum change.

    The size of a demand of c cpu and m memory is $(c^p + m^p)^(1/p)$ for nb, which is $sqrt(c^2 + m^2)$
    unless ``p`` is set, $c m$ for product, $w_c c + w_m m$ for sum (``weights``) and avgsum (the mean demands
    so far), and for dp the dot product with what is free on the server. The names bfd-nb, bfd-dp,
    bfd-product, bfd-sum and bfd-avgsum set ``size``.

    Complexity: O(M) at an arrival, O(Q) for each start at a completion and once more for its end; M servers,
    Q visible waiting tasks. Counting the visible tasks of a window of W adds O(log W). In view rule the
    environment does this work.

    Args:
        size: nb (L_p norm), dp (dot product with what is free), product, sum, or avgsum.
        weights: of cpu and memory in the size "sum".
        p: of the norm in the size "nb", above 1; infinity compares the larger of cpu and memory. With a p
            other than 2 only the view placement can carry the policy.
    """

    def __init__(self, size: str, weights: tuple[float, float] = (1.0, 1.0), p: float = 2.0) -> None:
        super().__init__(f"bfd-{size}", weights=weights, p=p)
