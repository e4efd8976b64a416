"""First fit and best fit decreasing by five sizes, made online."""

from typing import Any

from schedgym.baselines.queue_delay.scheme import ONES, SchemePolicy, candidates_of, carrying_views
from schedgym.core.policy import register_policy

_SOURCE = "noroozoliaee2014, section III-A2 and III-A3 (sizes from Panigrahy et al. 2011)"
_ONLINE = (
    "The paper does not say how the offline rule treats arrivals. Here an arriving task bypasses the queue, "
    "and a server on which a task ends tries all waiting tasks by decreasing size, passing over those that "
    "do not fit."
)


_SIZES = {
    "nb": "L2 norm of the demand",
    "dp": "dot product with the free resources",
    "product": "product of the demands",
    "sum": "sum of the demands",
    "avgsum": "sum weighted by the mean demands",
}
_BLOCKING = (
    "Section III-A2 assigns tasks by the first fit of section III-A1, which tries only the front of the "
    "queue. Here the queue is in the order of size, arriving tasks join it (unless bypass=True), and its "
    "front is tried on all servers, so that no task waits for ever."
)
_BLOCKING_DOT = (
    " The paper does not say which of its dot products, one for each server, is the size of a waiting task; "
    "here it is the largest one, even if the task does not fit on that server."
)


def _enter_first_fit(policy: Any) -> Any:
    """Register the class for each size, without and with blocking."""
    for size, words in _SIZES.items():
        start = "largest dot product" if size == "dp" else "first fit"
        register_policy(
            f"queue-delay/ffd-{size}",
            source=_SOURCE,
            deviations=_ONLINE,
            views=carrying_views(f"ffd-{size}"),
            # blocking has a name of its own, and bypass has a meaning with it only
            candidates={**candidates_of(f"ffd-{size}"), "blocking": (), "bypass": ()},
            summary=f"Places arriving tasks by {start}, serves waiting ones by decreasing {words}.",
            size=size,
        )(policy)
        start = "largest dot product" if size == "dp" else "first fit"
        register_policy(
            f"queue-delay/ffd-{size}-blocking",
            source=_SOURCE,
            deviations=_BLOCKING + (_BLOCKING_DOT if size == "dp" else ""),
            views=("placement", "pick"),
            candidates=candidates_of(f"ffd-{size}"),
            summary=f"Places tasks by decreasing {words}, by {start}; one that does not fit blocks.",
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
            deviations=_ONLINE
            + " The best server is the one where the size of what is left is least (for dp its L2 norm).",
            views=carrying_views(f"bfd-{size}"),
            candidates=candidates_of(f"bfd-{size}"),
            summary=f"Places arriving tasks by best fit, serves waiting ones by decreasing {words}.",
            size=size,
        )(policy)
    return policy


@_enter_first_fit
class FirstFitDecreasing(SchemePolicy):
    """Places arriving tasks by first fit (dp: largest dot product), and waiting tasks by decreasing size.

    This is an online version of first fit decreasing, a heuristic for vector bin packing: large tasks go
    first, as small ones still fit later. Use it if execution times are unknown. It needs demands only, and
    does not favour short tasks as bf-exec does. It is fast, and keeps no state between calls.

    1. A task arrives: it starts on the lowest server on which it fits (dp: the one with the largest inner
       product of demand and free resources), or joins the queue.
    2. A task ends: its server starts the largest waiting task that fits, and so on, until none fits.

    With ``blocking``, an arriving task joins the queue. At arrivals and completions the largest waiting task
    starts on the server that step 1 gives, and so on, until one fits nowhere. With ``bypass`` as well,
    arriving tasks are placed by step 1, and the queue is tried at completions only. In both cases the size of
    a waiting task by dp is its largest dot product over all servers, including those on which it does not
    fit. Ties go to the earliest submission. Sizes are computed anew at every decision, as those of dp and
    avgsum change.

    The size of the demands d_r of R resources is $(d_1^p + ... + d_R^p)^(1/p)$ for nb, where p is 2 unless
    ``p`` is set, $d_1 ... d_R$ for product, $w_1 d_1 + ... + w_R d_R$ for sum (``weights``) and avgsum (the
    mean demands so far), and for dp the dot product with what is free on the server. The names ffd-nb,
    ffd-dp, ffd-product, ffd-sum and ffd-avgsum set ``size``; names that end in -blocking set ``blocking``.

    Complexity: O(M) at an arrival; O(Q) for each start at a completion, and once more to find that no task
    fits; with blocking O(Q + M), for dp O(Q M), for each start and for the task that fits nowhere; M servers,
    Q visible waiting tasks. Counting the visible tasks in a window of W adds O(log W). In view rule the
    environment does this work.

    Args:
        size: nb (L_p norm), dp (dot product with what is free), product, sum, or avgsum (weighted by the mean
            demands so far).
        blocking: tasks wait in one queue in the order of size, and a task that fits nowhere blocks those
            behind it.
        bypass: with ``blocking``: an arriving task passes the queue and is placed by step 1; it joins the
            queue only if it fits nowhere.
        weights: of the resources in the size "sum", one for each; all 1 by default, whatever their number.
        p: exponent of the norm of the size "nb", above 1; with infinity the norm is the largest demand. The
            views rule and route support p = 2 only.
    """

    def __init__(
        self,
        size: str,
        blocking: bool = False,
        bypass: bool = False,
        weights: tuple[float, ...] = ONES,
        p: float = 2.0,
    ) -> None:
        super().__init__(f"ffd-{size}", blocking=blocking, bypass=bypass, weights=weights, p=p)


@_enter_best_fit
class BestFitDecreasing(SchemePolicy):
    """Places arriving tasks by best fit, and serves waiting tasks by decreasing size.

    This is an online version of best fit decreasing, a heuristic for vector bin packing: a task starts on the
    server on which the least remains free. Use it like the ffd policies if execution times are unknown. It
    needs demands only. It is fast, and keeps no state between calls.

    1. A task arrives: of the servers on which it fits, it starts on the one where the size of what is left is
       least (for dp its L2 norm); if it fits on none, it joins the queue.
    2. A task ends: its server starts the largest waiting task that fits, and so on, until none fits.

    Ties go to the lowest server and to the earliest submission. Sizes are computed anew at every decision, as
    those of dp and avgsum change.

    The size of the demands d_r of R resources is $(d_1^p + ... + d_R^p)^(1/p)$ for nb, where p is 2 unless
    ``p`` is set, $d_1 ... d_R$ for product, $w_1 d_1 + ... + w_R d_R$ for sum (``weights``) and avgsum (the
    mean demands so far), and for dp the dot product with what is free on the server. The names bfd-nb,
    bfd-dp, bfd-product, bfd-sum and bfd-avgsum set ``size``.

    Complexity: O(M) at an arrival, O(Q) for each start at a completion and once more for its end; M servers,
    Q visible waiting tasks. Counting the visible tasks of a window of W adds O(log W). In view rule the
    environment does this work.

    Args:
        size: nb (L_p norm), dp (dot product with what is free), product, sum, or avgsum.
        weights: of the resources in the size "sum", one for each; all 1 by default, whatever their number.
        p: exponent of the norm of the size "nb", above 1; with infinity the norm is the largest demand. All
            views except placement support p = 2 only.
    """

    def __init__(self, size: str, weights: tuple[float, ...] = ONES, p: float = 2.0) -> None:
        super().__init__(f"bfd-{size}", weights=weights, p=p)
