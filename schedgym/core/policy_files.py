"""Policies in Python files, named as ``FILE.py:NAME``: a class, or a function of the observation.

Naming a file runs it, with all the rights of the user. Only what a user has typed or written may name one:
the command line and the file of a sweep do; stores, agents and workloads cannot.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from schedgym.core.policy import Interface, PolicySpec, enter_policy, registered_policies
from schedgym.errors import InvalidParameter

_NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)")


def names_policy_file(name: str) -> bool:
    """Return True if ``name`` is the path of a Python file with a name behind it, ``FILE.py:NAME``."""
    return _NAMED.fullmatch(name) is not None


def typed_policy(text: str, problem: str) -> str:
    """The name of a policy as a user has typed it; that of a file is loaded: :func:`load_policy`."""
    return load_policy(text, problem) if names_policy_file(text) else text


def load_policy(text: str, problem: str) -> str:
    """Run a Python file, and register the policy that it has under this name for a problem.

    Args:
        text: ``FILE.py:NAME``; NAME is a class with the methods ``reset(interface, rng)`` and
            ``__call__(observation)``, whose arguments are the policy's options, or a function of the
            observation. A class that the file registers for the problem keeps what it declares.
        problem: name of the problem.

    Returns:
        the policy's name, the file's name without ".py", a colon, and NAME.

    Raises:
        OSError: if the file cannot be read.
        InvalidParameter: if it fails, has no such policy, or another file has one of this name.
    """
    named = _NAMED.fullmatch(text)
    if named is None:
        raise InvalidParameter(f"policy {text!r}: must be FILE.py:NAME")
    path, name = Path(named["path"]).resolve(), named["name"]
    found = _find(str(path), name)
    label = f"{path.stem}:{name}"
    full = f"{problem}/{label}"
    known = registered_policies().get(full)
    if known is not None and inspect.unwrap(known.factory) is not found:
        raise InvalidParameter(f"policy {label!r}: another file of this name has it, too")

    @functools.wraps(found)
    def factory(**options: Any) -> FilePolicy:
        return FilePolicy(str(path), name, options)

    if not isinstance(found, type):
        factory.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # it has no options
    declared = [
        spec
        for spec in registered_policies().values()
        if spec.factory is found and spec.problem == problem and not spec.fixed
    ]
    # if nobody has said what it must know, it is taken to read everything
    spec = declared[0] if declared else PolicySpec(full, factory, named["path"], knows=("execution",))
    enter_policy(dataclasses.replace(spec, name=full, factory=factory))
    return label


@functools.cache
def _module(path: str) -> ModuleType:
    """Run a Python file as a module of its own."""
    file = Path(path)
    file.read_bytes()  # an error that names the file
    name = f"policy_file_{file.stem}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        if isinstance(error, SyntaxError):
            line, what = error.lineno, error.msg
        else:
            lines = [
                frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path
            ]
            line, what = lines[-1] if lines else 0, str(error)
        raise InvalidParameter(f"{path}:{line}: {type(error).__name__}: {what}") from error
    return module


def _find(path: str, name: str) -> Callable[..., Any]:
    """The class or function of this name in a file."""
    module = _module(path)
    found = getattr(module, name, None)
    if isinstance(found, type):
        if {"reset", "__call__"} <= set(dir(found)):  # not getattr: a class itself can be called
            return found
        raise InvalidParameter(
            f"{path}: {name}: a policy has the methods reset(interface, rng) and __call__(observation)"
        )
    if inspect.isfunction(found):
        return found
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    raise InvalidParameter(
        f"{path}: has no class or function {name!r}; it has {', '.join(own) or 'none at all'}"
    )


class FilePolicy:
    """A policy of a file; other processes build it anew from the file.

    Args:
        path: the file.
        name: the class or function.
        options: arguments of the class.
    """

    def __init__(self, path: str, name: str, options: dict[str, Any]) -> None:
        found = _find(path, name)
        self._made = path, name, options
        self._policy: Any = found(**options) if isinstance(found, type) else None
        self._act: Callable[[Any], Any] = found if self._policy is None else self._policy

    def __reduce__(self) -> tuple[Any, ...]:
        return FilePolicy, self._made, {"name": self.__dict__.get("name", "")}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._policy, name)

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """Begin an episode; a function has nothing to begin."""
        if self._policy is not None:
            self._policy.reset(interface, rng)

    def __call__(self, observation: Any) -> Any:
        """The action for an observation."""
        return self._act(observation)
