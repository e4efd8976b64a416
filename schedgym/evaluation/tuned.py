"""The options that ``schedgym tune`` found: those shipped with the package, or of a file of the user's.

A file is JSON: ``{"tuned": [...]}``, with an entry for each policy and setting, of which ``id``, ``policy``,
``parameters`` and ``options`` are read. ``options`` are those to run the policy with; where none were found
that are better than the defaults, they are empty.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from schedgym.core.files import read_text
from schedgym.core.policy import make_policy, resolve_policy_name
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidFile, InvalidParameter, UnknownName

SHIPPED = "shipped"
LARGEST = 2**22  # bytes of a file that is read
FIELDS = {"id": str, "policy": str, "parameters": dict, "options": dict}


def shipped_path() -> Path:
    """The file of the options that are shipped; ``python docs/tuned.py`` in the checkout writes it."""
    return Path(importlib.import_module("schedgym.baselines").__path__[0]) / "tuned.json"


def read_tuned(source: str | Path = SHIPPED) -> list[dict[str, Any]]:
    """The entries of a file.

    Args:
        source: "shipped", or a file of ``schedgym tune --json``.

    Raises:
        OSError: if it cannot be read.
        InvalidParameter: if it is no such file.
    """
    path = shipped_path() if source == SHIPPED else Path(source)
    try:
        data = json.loads(read_text(path, LARGEST))
    except InvalidFile as error:
        raise InvalidParameter(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidParameter(f"{path}: not JSON: {error}") from None
    entries = data.get("tuned") if isinstance(data, Mapping) else None
    if not isinstance(entries, list):
        raise InvalidParameter(f"{path}: not a file of schedgym tune: it has no list 'tuned'")
    for i, entry in enumerate(entries):
        for name, kind in FIELDS.items():
            if not isinstance(entry, Mapping) or not isinstance(entry.get(name), kind):
                raise InvalidParameter(f"{path}: tuned[{i}]: {name} is missing, or not a {kind.__name__}")
        options = entry["options"].items()  # JSON's lists were tuples
        entry["options"] = {name: tuple(own) if isinstance(own, list) else own for name, own in options}
    return entries


def find_tuned(
    id: str,
    policies: Iterable[str],
    source: str | Path = SHIPPED,
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """Policy -> its entry, of those with options that are better than the defaults.

    Where a policy was tuned in several settings, that of ``parameters`` counts, else the first one.

    Args:
        id: environment id.
        policies: names, short or full.
        source: as for :func:`read_tuned`.
        parameters: parameters of the environment in which the policies will run.

    Raises:
        OSError, InvalidParameter: as :func:`read_tuned`.
        UnknownName: for a policy or an id that there is not, or options that a policy does not have.
    """
    problem, same = get_problem(id), dict(parameters or {})
    if id not in problem.ids:
        raise UnknownName("environment id", id, problem.ids)
    found: dict[str, dict[str, Any]] = {}
    for entry in read_tuned(source):
        name = entry["policy"].removeprefix(f"{problem.name}/")
        if entry["id"] == id and (
            name not in found or entry["parameters"] == same != found[name]["parameters"]
        ):
            found[name] = entry
    names = [resolve_policy_name(name, problem.name).partition("/")[2] for name in policies]
    chosen = {name: found[name] for name in names if name in found and found[name]["options"]}
    for name, entry in chosen.items():
        make_policy(name, problem.name, **entry["options"])
    return chosen


def tuned_options(id: str, policies: Iterable[str], **where: Any) -> dict[str, dict[str, Any]]:
    """Policy -> its options in :func:`find_tuned`, for the argument ``options`` of evaluations."""
    return {name: entry["options"] for name, entry in find_tuned(id, policies, **where).items()}
