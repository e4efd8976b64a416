"""The pods of Kubernetes as ``kubectl get pods --all-namespaces -o json`` prints them, which is no table.

A pod is a task. It asks for what its containers ask for together, runs from its start to the end of its last
container, and is left out while it has not finished.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

COMMAND = "kubectl get pods --all-namespaces -o json"
#: what a quantity ends in -> by what it is multiplied
SUFFIXES = {
    **{text: 1000.0**power for power, text in enumerate(("n", "u", "m", "", *"kMGTPE"), -3)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(r"([0-9]{1,19}(?:\.[0-9]{0,19})?(?:[eE][+-]?[0-9]{1,2})?)([numkMGTPE]|[KMGTPE]i|)")


def parse_quantity(text: str) -> float:
    """The cores or bytes of a quantity such as 500m, 2, 64Mi or 1000M; ValueError says what is wrong."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError("spec.containers", f"must be a quantity such as 500m or 64Mi, got {text[:40]!r}")
    return float(found[1]) * SUFFIXES[found[2]]


def facts(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Creation, start and end (dates), cores, bytes, GPUs, phase, namespace and name of a pod.

    Raises:
        ValueError: saying what is wrong, and where.
    """
    if (kind := pod.get("kind", "Pod")) != "Pod":
        raise ValueError("kind", f"must be Pod, as {COMMAND} prints it, got {str(kind)[:40]!r}")
    try:
        about, spec, status = (pod.get(name) or {} for name in ("metadata", "spec", "status"))
        states = [one.get("state") or {} for one in status.get("containerStatuses") or ()]
        ends = [state.get("terminated", {}).get("finishedAt") or "" for state in states]
        sizes = [_asked(spec, name) for name in ("cpu", "memory", "nvidia.com/gpu")]
        times = (about.get("creationTimestamp"), status.get("startTime"), max(ends, default=""))
        names = (about.get("namespace"), about.get("name"))
        return tuple(text or "" for text in (*times, *sizes, status.get("phase"), *names))
    except (AttributeError, TypeError):
        raise ValueError(f"is no pod as {COMMAND} prints it") from None


def _asked(spec: Mapping[str, Any], name: str) -> str:
    """What the containers of a pod ask for, in cores, bytes or GPUs; "" where none of them does.

    Those that run before the others count where one of them asks for more, and a limit where there is no
    request: Kubernetes takes it for one.
    """
    found: dict[str, list[float]] = {"containers": [], "initContainers": []}
    for kind, sizes in found.items():
        for one in spec.get(kind) or ():
            resources = one.get("resources") or {}
            text = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.get(name)
            if text is not None:
                sizes.append(parse_quantity(str(text)))
    both: Sequence[float] = (sum(found["containers"]), *found["initContainers"])
    return f"{max(both):.17g}" if any(found.values()) else ""
