"""The two environments of every problem: a Gymnasium environment and a native vector environment.

Both drive the same :class:`~schedgym.core.simulator.Simulator`; :class:`SchedulingEnv` is the batch of
one. Episodes are numbered per environment: ``reset(seed=s)`` starts episode 0 of seed s, each later
episode (by ``reset()`` or by autoreset) is the next of that seed, and (seed, episode) decides everything
random in it.
"""

from __future__ import annotations

import functools
import math
import os
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schedgym.core.arrays import Flags
from schedgym.core.policy import Interface
from schedgym.core.problem import Problem
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.snapshots import Snapshot, restore, save
from schedgym.core.stepping import ACT, SKIP
from schedgym.core.workload import SECTIONS, Workload
from schedgym.core.workload_files import load_workload
from schedgym.docstrings import PLACES
from schedgym.drawing import Window
from schedgym.errors import ConcurrentUse, InvalidAction, InvalidParameter, UnexpectedKeyword, UnknownName
from schedgym.extras import require
from schedgym.spaces import observation_space

RENDER_MODES = ("ansi", "rgb_array", "human")
OPTIONS = ("workload", "repeat", "episode")
KINDS = {"iu": "whole numbers", "fiu": "real numbers"}  # numpy's kinds of types in which actions are given
Method = TypeVar("Method", bound=Callable[..., Any])


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def _check_arguments(render_mode: Any, copy: Any, known: tuple[str, ...] = RENDER_MODES) -> None:
    if render_mode is not None and render_mode not in known:
        raise UnknownName("render mode", render_mode, known)
    if not isinstance(copy, bool):
        raise InvalidParameter(f"copy: must be True or False, got {copy!r}")


def _check_begun(begun: Any, what: str) -> None:
    if not begun:
        raise ResetNeeded(f"call reset before {what}")


def _workload(simulator: Simulator, given: Any) -> Workload:
    """A given workload, or that of a given file, which the environment can run."""
    if isinstance(given, (str, os.PathLike)):
        given = load_workload(Path(given), simulator.problem.schema)
    if not isinstance(given, Workload):
        raise InvalidParameter(f"options: workload must be a Workload or a path, got {type(given).__name__}")
    if not given.checked and given.problem == simulator.problem.name:
        given = simulator.problem.schema.parse({name: getattr(given, name) for name in SECTIONS})
    simulator.check_workload(given)
    return given


def _check_options(options: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if options is not None and not isinstance(options, Mapping):
        raise InvalidParameter(f"options: must be a dict, got {type(options).__name__}")
    given = dict(options or {})
    for name in given:
        if name not in known:
            raise UnknownName("reset option", name, known)
    episode = given.get("episode")
    if episode is not None:
        if not _is_whole(episode) or not 0 <= episode < 2**62:
            raise InvalidParameter(f"options: episode must be a number from 0, got {episode!r}")
    repeat = given.get("repeat", False)
    if not isinstance(repeat, bool):
        raise InvalidParameter(f"options: repeat must be True or False, got {repeat!r}")
    if repeat and given.get("workload") is None:
        raise InvalidParameter("options: repeat needs a workload")
    return given


def _check_seed(seed: Any) -> int | None:
    if seed is None:
        return None
    if not _is_whole(seed) or seed < 0:
        raise InvalidParameter(f"seed: must be a whole number from 0, got {seed!r}")
    return int(seed)


def _give(simulator: Simulator, index: int, given: Mapping[str, Any], workload: Workload | None) -> None:
    """Carry out the options ``workload`` and ``repeat`` for one environment."""
    if workload is not None:
        simulator.give(index, workload, given.get("repeat", False))
    elif "workload" in given or "repeat" in given:
        simulator.take_back(index)


def _one_at_a_time(method: Method) -> Method:
    """Let ``method`` refuse what a second thread would do to the arrays that the first one is working on.

    Raises:
        ConcurrentUse: while a thread is in a method of the environment that is decorated so.
    """

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **options: Any) -> Any:
        try:
            turn = self._turns.pop()  # of two threads one gets it; unlike a lock, a list can be pickled
        except IndexError:
            raise ConcurrentUse(
                "another thread is in step or reset of this environment: make an environment for each thread"
            ) from None
        try:
            return method(self, *args, **options)
        finally:
            self._turns.append(turn)

    return cast(Method, alone)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that cannot be written through: the state itself is behind it."""
    view = array.view()
    view.flags.writeable = False
    return view


def _parse(action: Any, shape: tuple[int, ...], what: str, kinds: str) -> npt.NDArray[Any]:
    """The action as an array of this shape and these kinds of numbers; the simulator checks the values."""
    try:
        array = np.asarray(action)
    except ValueError:
        array = np.empty(0, dtype=object)  # ragged
    if array.dtype.kind not in kinds:
        shown = " ".join(reprlib.repr(action).split())  # one line, however large the array
        raise InvalidAction(f"{what}: must be {KINDS[kinds]}, got {shown}")
    if array.shape != shape:
        raise InvalidAction(f"{what}: must have shape {shape}, got {array.shape}")
    return array


def _find_time_limit(env: gym.Env[Any, Any]) -> int:
    """The steps after which a wrapper TimeLimit cuts the episode of an environment in its reset, or -1.

    A wrapper does not tell what it wraps that it cuts an episode. But while it resets the environment it is
    on the stack.
    """
    limits = []
    frame: FrameType | None = sys._getframe(2)  # the caller of the method that calls this
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, gym.wrappers.TimeLimit) and caller.unwrapped is env:
            limits.append(caller._max_episode_steps)
        module = frame.f_globals.get("__name__", "")
        if not isinstance(caller, gym.Wrapper) and not module.startswith((__name__, "gymnasium")):
            break
        frame = frame.f_back
    return min(limits, default=-1)


def _make_simulator(problem: Problem, id: str, num_envs: int, parameters: Mapping[str, Any]) -> Simulator:
    """The problem's simulator for the id's values of the parameters under the given ones."""
    try:
        checked = problem.build(id, parameters)
    except UnknownName as error:
        if error.kind != "parameter":
            raise
        unexpected = f"got an unexpected keyword argument {error.name!r}: {error}"
        raise UnexpectedKeyword(unexpected, error.name, error.known) from None
    return cast(Simulator, problem.module("simulator").make_simulator(checked, num_envs, id))


def find_cuda() -> Any:
    """The module :mod:`schedgym.core.cuda`, where environments can run on a GPU.

    Raises:
        gymnasium.error.DependencyNotInstalled: without the extra ``cuda``, or a part of it.
        InvalidParameter: if there is no GPU.
    """
    if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
        require("numba_cuda", "cuda")
    try:
        from schedgym.core import cuda

        cuda.check_device()
    except RuntimeError as error:  # of numba-cuda, where one of NVIDIA's libraries is missing
        reason = str(error).partition(":")[0]
        raise DependencyNotInstalled(f'numba-cuda: {reason}; run: pip install "schedgym[cuda]"') from error
    return cuda


def make_cuda_simulator(problem: Problem, id: str, num_envs: int, parameters: Mapping[str, Any]) -> Any:
    """The :class:`~schedgym.core.cuda.CudaSimulator` of an id.

    Raises:
        gymnasium.error.DependencyNotInstalled, InvalidParameter: as :func:`find_cuda`, and if the GPU's
            memory is too small for so many environments.
    """
    return find_cuda().CudaSimulator(_make_simulator(problem, id, 2, parameters), num_envs)


def _picture(problem: Problem, simulator: Simulator, index: int, mode: str, caption: str = "") -> Any:
    """The text or image of one environment; ``caption`` is drawn on it where it is given."""
    function = getattr(problem.module("render"), f"render_{mode}")
    return function(simulator, index, caption) if caption else function(simulator, index)


class EnvState(NamedTuple):
    """What :meth:`SchedulingEnv.save` returns: to be kept and restored, not to be read or changed."""

    snapshot: Snapshot
    running: bool


class SchedulingEnv(gym.Env[Any, Any]):
    """One environment: the base of each documented class, which names its problem and id.

    Args:
        render_mode: None, "ansi" (text), "rgb_array" (an image) or "human" (a window, after every step).
        copy: True returns copies of observations; False returns the buffers themselves, read-only, and valid
            until the next step.
        parameters: the problem's parameters.

    Attributes:
        caption: a text on the pictures, e.g. the name of the policy that acts.
    """

    problem: ClassVar[Problem]
    id: ClassVar[str]
    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # type: ignore[misc]

    def __init_subclass__(cls) -> None:
        """Fill the places of the docstring for what is declared: observations, tokens, and views."""
        super().__init_subclass__()
        for place, describe in PLACES.items():
            if place in (cls.__doc__ or ""):
                text = describe(cls.problem).replace("\n", "\n    ")
                cls.__doc__ = str(cls.__doc__).replace(place, text)

    def __init__(self, render_mode: str | None = None, copy: bool = True, **parameters: Any) -> None:
        _check_arguments(render_mode, copy)
        self.render_mode = render_mode
        self.copy = copy
        self.caption = ""
        self._window: Window | None = None
        self.simulator = _make_simulator(self.problem, self.id, 1, parameters)
        self.observation_space = observation_space(self.simulator)
        self.action_space = self.simulator.action_space
        self._one = np.ones(1, dtype=bool)
        self._act = np.full(1, ACT, dtype=np.int8)
        self._running = False
        self._unfinished = dict.fromkeys(self.simulator.metric_names, math.inf)
        self._left = -1  # steps until a wrapper TimeLimit cuts the episode; below 0: none does
        self._turns = [True]
        self._bind()

    def _bind(self) -> None:
        simulator = self.simulator
        self._scalars = [(name, simulator.observation[name]) for name in simulator.scalars]
        self._rows = [
            (name, buffer[0] if self.copy else _read_only(buffer[0]))
            for name, buffer in simulator.observation.items()
            if name not in simulator.scalars
        ]
        self._buffers = simulator.observation
        self._continuous, self._shape = simulator.continuous, simulator.action_shape
        self._components = len(simulator.action_sizes)
        self._discrete = self._components == 1

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_scalars", "_rows", "_buffers", "_window")
        return {name: value for name, value in self.__dict__.items() if name not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _window=None)
        self._bind()

    @property
    def interface(self) -> Interface:
        """The facts that a policy may know about this environment."""
        return self.simulator.interface

    def _observe(self) -> dict[str, Any]:
        if self.copy:
            observation: dict[str, Any] = {name: row.copy() for name, row in self._rows}
        else:
            observation = dict(self._rows)
        for name, buffer in self._scalars:
            observation[name] = buffer[0]
        return observation

    @_one_at_a_time
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode.

        Args:
            seed: start over at episode 0 of this seed; None goes on to the next episode.
            options: ``workload`` (a Workload or a file's path) is used for this episode, and with ``repeat``
                True for all that follow; ``workload`` None, or ``repeat`` False without a workload, ends
                this; ``episode`` is the number of the episode to draw.

        Returns:
            the first observation, and the info of :meth:`step`.

        Raises:
            InvalidWorkload: if the workload does not fit the environment.
        """
        seed = _check_seed(seed)
        given = _check_options(options, OPTIONS)
        simulator = self.simulator
        workload = None
        if given.get("workload") is not None:
            workload = _workload(simulator, given["workload"])
        super().reset(seed=seed)
        if seed is not None:
            simulator.seed(0, seed)
        elif not simulator.seeded[0]:
            simulator.seed(0, int(self.np_random.integers(2**63)))
        if given.get("episode") is not None:
            simulator.episodes[0] = given["episode"]
        _give(simulator, 0, given, workload)
        simulator.begin(self._one)
        if simulator.observation is not self._buffers:  # the arrays have grown
            self._bind()
        self._running = True
        self._left = _find_time_limit(self)
        if self.render_mode == "human":
            self._show()
        return self._observe(), {"metrics": self._unfinished.copy(), "repaired": False}

    @_one_at_a_time
    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carry out one decision.

        Returns:
            observation, reward, terminated, truncated, info. ``info["repaired"]`` is True when an
            infeasible action was repaired. ``info["metrics"]`` are infinite until the episode ends, be it by
            ``max_episode_steps`` of ``gym.make`` or another wrapper TimeLimit; see :meth:`metrics`.

        Raises:
            InvalidAction: for a malformed action, or with ``strict=True`` an infeasible one.
        """
        _check_begun(self._running, "step: the episode has ended or not begun")
        simulator = self.simulator
        try:
            if self._discrete and (type(action) is int or _is_whole(action)):
                simulator.actions[0, 0] = action
            elif self._continuous:
                array = _parse(action, self._shape, "action", "fiu")
                count = simulator.rows.item(0)  # of a long window only these rows are touched
                simulator.actions[0, :count] = array[:count]
            else:
                simulator.actions[0, : self._components] = _parse(action, self._shape, "action", "iu")
        except OverflowError:
            raise InvalidAction(f"action: out of range, got {action}") from None
        ended = simulator.step(self._act)
        if ended:
            if ended < 0:
                raise simulator.refusal(0, "action")
            self._running = False
        self._left -= 1
        if self.render_mode == "human":
            self._show()
        return (
            self._observe(),
            simulator.reward.item(0),
            simulator.terminated.item(0),
            simulator.truncated.item(0),
            {
                "metrics": self.metrics() if ended or not self._left else self._unfinished.copy(),
                "repaired": simulator.repaired.item(0),
            },
        )

    def metrics(self) -> dict[str, float]:
        """The metrics of the current episode as far as it has come, or of the last one if it has ended.

        What has not run or finished counts as at the end of a truncated episode: see each metric.
        """
        _check_begun(self.simulator.seeded[0], "metrics")
        values = self.simulator.measure(self._one)[0].tolist()
        return dict(zip(self.simulator.metric_names, values, strict=True))

    @_one_at_a_time
    def finish(self, rollout: Callable[[Simulator], float]) -> tuple[float, bool, dict[str, float]]:
        """Let compiled code play the episode to its end.

        Args:
            rollout: carries out all steps that are left in a simulator of one environment; returns the sum of
                their rewards.

        Returns:
            that sum, whether the episode was truncated, and its metrics.

        Raises:
            RuntimeError: if the episode has not ended: a fault of ``rollout``.
        """
        _check_begun(self._running, "finish: the episode has ended or not begun")
        simulator = self.simulator
        total = rollout(simulator)
        if not (simulator.terminated[0] or simulator.truncated[0]):
            raise RuntimeError("the rollout did not play the episode to its end")
        self._running = False
        return total, simulator.truncated.item(0), self.metrics()

    def save(self) -> EnvState:
        """Copy the state of the environment, for :meth:`restore`: faster than ``copy.deepcopy``."""
        _check_begun(self.simulator.seeded[0], "save")
        return EnvState(save(self.simulator, 0), self._running)

    @_one_at_a_time
    def restore(self, state: EnvState, resample: int | None = None) -> dict[str, Any]:
        """Bring the environment to a state that :meth:`save` has returned.

        What follows is then as it was when it was saved, the jobs too that have not arrived yet: a plan that
        is made by trying it knows the future, which no policy may. With ``resample`` it does not know what
        arrives. A wrapper TimeLimit knows nothing of this: it counts on.

        Args:
            state: of this environment, or of another one with the same id and parameters.
            resample: a seed by which the jobs that have not arrived yet are drawn anew from the generator;
                see :func:`schedgym.core.snapshots.resample`.

        Returns:
            the observation.

        Raises:
            InvalidParameter: before anything changes: for a state of another id or other parameters, a seed
                that is none, or if the environment was made with a workload and nothing draws another.
        """
        if not isinstance(state, EnvState):
            raise InvalidParameter(f"restore: must be what save has returned, got {type(state).__name__}")
        restore(self.simulator, 0, state.snapshot, _check_seed(resample))
        self._running = state.running
        if self.simulator.observation is not self._buffers:
            self._bind()
        return self._observe()

    def action_masks(self) -> Flags:
        """The mask of feasible actions of a discrete view, as sb3-contrib asks for it; bool [actions]."""
        if "action_mask" not in self.simulator.observation or not self._discrete:
            raise InvalidParameter(
                "action_masks: needs action_mask=True and a view with a Discrete action space"
            )
        _check_begun(self.simulator.seeded[0], "action_masks")
        mask: Flags = self.simulator.observation["action_mask"][0].astype(bool)
        return mask

    def record(self) -> ScheduleRecord:
        """The schedule of the current episode, or of the last one if it has ended."""
        _check_begun(self.simulator.seeded[0], "record")
        return self.simulator.record(0)

    def render(self) -> Any:
        """The current state as text ("ansi") or as an image (uint8 [height, width, 3]); None with "human"."""
        if self.render_mode is None:
            gym.logger.warn(f"render needs a render_mode given to gym.make: one of {RENDER_MODES}")
            return None
        _check_begun(self.simulator.seeded[0], "render")
        if self.render_mode == "human":
            return self._show()
        return _picture(self.problem, self.simulator, 0, self.render_mode, self.caption)

    def _show(self) -> None:
        if self._window is None:
            self._window = Window(self.id, self.metadata["render_fps"])
        self._window.show(_picture(self.problem, self.simulator, 0, "rgb_array", self.caption))

    def close(self) -> None:
        """Close the window of render mode "human"."""
        if self._window is not None:
            self._window.close()
            self._window = None


class SchedulingVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` environments advanced together by compiled kernels.

    Element i of every array is environment i; ``reset(seed=s)`` seeds environment i with s + i.

    Args:
        num_envs: number of environments.
        autoreset_mode: "NextStep" (Gymnasium's default), "SameStep", "Disabled", or the enum.
        render_mode: None, "ansi" or "rgb_array".
        copy: True returns copies of observations; False returns the buffers themselves, read-only, and valid
            until the next step.
        threads: number of threads that advance the environments side by side, at most one for each. The
            results are the same. Waking a thread takes some 30 microseconds: threads are faster where a step
            of the batch takes several times as long.
        device: "cpu", or "cuda" for environments on an NVIDIA GPU: see :class:`CudaVectorEnv`.
        max_episode_steps: steps after which an episode is truncated, as by the wrapper TimeLimit; None
            or -1: no such limit.
        parameters: the problem's parameters.

    Attributes:
        interface: the facts that a policy may know about each environment.
    """

    env_class: ClassVar[type[SchedulingEnv]]
    interface: Interface

    def __new__(cls, *args: Any, device: str = "cpu", **others: Any) -> Any:
        """Return an environment of the class, or with ``device="cuda"`` a :class:`CudaVectorEnv`."""
        if device == "cuda":
            return CudaVectorEnv(cls.env_class, *args, **others)
        return super().__new__(cls)

    def __init__(
        self,
        num_envs: int = 1,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        copy: bool = True,
        threads: int = 1,
        device: str = "cpu",
        max_episode_steps: int | None = None,
        **parameters: Any,
    ) -> None:
        if device != "cpu":
            raise UnknownName("device", device, ("cpu", "cuda"))
        _check_arguments(render_mode, copy, RENDER_MODES[:2])
        self.problem = self.env_class.problem
        self.max_episode_steps = None if max_episode_steps == -1 else max_episode_steps
        numbers = {"num_envs": num_envs, "threads": threads}
        if self.max_episode_steps is not None:
            numbers["max_episode_steps"] = self.max_episode_steps
        for name, number in numbers.items():
            if not _is_whole(number) or number < 1:
                raise InvalidParameter(f"{name}: must be at least 1, got {number!r}")
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = [mode.value for mode in AutoresetMode]
            raise UnknownName("autoreset mode", str(autoreset_mode), known) from None
        self.num_envs, self.render_mode, self.copy = int(num_envs), render_mode, copy
        self.metadata = dict(self.env_class.metadata, autoreset_mode=self.autoreset_mode)
        self.metadata["render_modes"] = list(RENDER_MODES[:2])
        described = self._simulate(parameters, int(threads))
        self.interface = described.interface
        self.single_observation_space = observation_space(described)
        self.single_action_space = described.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._components = len(described.action_sizes)
        self._shape = (self.num_envs, *described.action_shape)
        self._real = described.continuous
        self._all = np.ones(self.num_envs, dtype=bool)
        self._metric_masks = tuple(f"_{name}" for name in self.simulator.metric_names)
        self._act = np.full(self.num_envs, ACT, dtype=np.int8)
        self._quiet = self._info(self._all)  # of a step in which no episode ended and nothing was repaired
        for array in (self._all, self._quiet["repaired"], *self._quiet["metrics"].values()):
            array.flags.writeable = False
        self._steps = np.zeros(self.num_envs, dtype=np.int64)  # of the episode, where their number is limited
        self._ended = np.zeros(self.num_envs, dtype=bool)
        self._none_ended = True
        self._started = False
        self._turns = [True]
        self._buffers: dict[str, Any] | None = None
        self._shown: dict[str, Any] = {}

    def _simulate(self, parameters: Mapping[str, Any], threads: int) -> Simulator:
        """Make the simulator; return one that describes each environment."""
        self.simulator = _make_simulator(self.problem, self.env_class.id, self.num_envs, parameters)
        if threads > 1:
            self.simulator.use_threads(threads)
        return self.simulator

    def _observe(self) -> dict[str, Any]:
        observation = self.simulator.observation
        if self.copy:
            return {name: buffer.copy() for name, buffer in observation.items()}
        if observation is not self._buffers:  # at first, and after the arrays have grown
            self._buffers = observation
            self._shown = {name: _read_only(buffer) for name, buffer in observation.items()}
        return dict(self._shown)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_buffers": None, "_shown": {}}

    @_one_at_a_time
    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode in every environment, or in those that ``options["reset_mask"]`` names.

        Args:
            seed: an int s (environment i gets s + i), or one seed (or None) per environment.
            options: as for :meth:`SchedulingEnv.reset`; ``workload`` is one for all or a list of n.
        """
        given = _check_options(options, (*OPTIONS, "reset_mask"))
        mask = self._reset_mask(given.get("reset_mask"))
        seeds = self._seeds(seed)
        simulator = self.simulator
        workloads = given.get("workload")
        if not isinstance(workloads, (list, tuple)):
            shared = None if workloads is None else _workload(simulator, workloads)
            workloads = [shared] * self.num_envs
        else:
            workloads = [_workload(simulator, own) for own in workloads]
        if len(workloads) != self.num_envs:
            raise InvalidParameter(
                f"options: workload must have {self.num_envs} elements, got {len(workloads)}"
            )
        super().reset(seed=seeds[0] if _is_whole(seed) else None)
        for i in np.flatnonzero(mask).tolist():
            own = seeds[i]
            if own is not None:
                simulator.seed(i, own)
            elif not simulator.seeded[i]:
                simulator.seed(i, int(self.np_random.integers(2**63)))
            _give(simulator, i, given, workloads[i])
        if given.get("episode") is not None:
            simulator.episodes[mask] = given["episode"]
        simulator.begin(mask)
        self._ended &= ~mask
        self._none_ended = not self._ended.any()
        self._steps[mask] = 0
        self._started = True
        return self._observe(), self._info(mask)

    def _reset_mask(self, mask: Any) -> Flags:
        if mask is None:
            return self._all
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise InvalidParameter(f"options: reset_mask must be a bool array of length {self.num_envs}")
        if not mask.any():
            raise InvalidParameter("options: reset_mask must name at least one environment")
        if not self._started and not mask.all():
            raise ResetNeeded("the first reset must be of all environments")
        return mask

    def _seeds(self, seed: Any) -> list[int | None]:
        if isinstance(seed, (list, tuple, np.ndarray)):
            if len(seed) != self.num_envs:
                raise InvalidParameter(f"seed: a list must have {self.num_envs} elements, got {len(seed)}")
            return [_check_seed(own) for own in seed]
        first = _check_seed(seed)
        return [None if first is None else first + i for i in range(self.num_envs)]

    @_one_at_a_time
    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """Carry out one decision in every environment.

        With NEXT_STEP, an environment whose episode ended at the step before is reset instead, and its
        action is ignored, whatever its values; with SAME_STEP it is reset at once, and its last observation
        and info are ``infos["final_obs"]`` and ``infos["final_info"]``. ``infos`` are those that Gymnasium's
        SyncVectorEnv gathers from :meth:`SchedulingEnv.step`; its arrays may be read-only.
        """
        _check_begun(self._started, "step")
        simulator = self.simulator
        if simulator.continuous:
            array = _parse(actions, self._shape, "actions", "fiu")
            count = simulator.rows.max()
            simulator.actions[:, :count] = array[:, :count]
        else:
            array = _parse(actions, self._shape, "actions", "iu")
            simulator.actions[:, : self._components] = array.reshape(self.num_envs, -1)
        resetting: Flags | None = None
        if self._none_ended:
            ended = simulator.step(self._act)
        elif self.autoreset_mode is AutoresetMode.DISABLED:
            i = int(np.argmax(self._ended))
            raise ResetNeeded(f"the episode of environment {i} has ended: reset it first")
        else:
            resetting = self._ended
            ended = simulator.step(np.where(resetting, np.int8(SKIP), np.int8(ACT)), resetting)
        if ended < 0:
            i = -ended - 1
            raise simulator.refusal(i, f"actions[{i}]")
        rewards = simulator.reward.copy()
        terminated, truncated = simulator.terminated.copy(), simulator.truncated.copy()
        if self.max_episode_steps is not None:
            self._steps += 1
            if resetting is not None:
                self._steps[resetting] = 0
            truncated |= self._steps >= self.max_episode_steps
            ended += int(truncated.any())
        infos: dict[str, Any] = {**self._quiet, "metrics": dict(self._quiet["metrics"])}
        if ended and self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos |= self._finish(terminated | truncated)
        elif ended:
            self._ended, self._none_ended = terminated | truncated, False
            infos |= self._metrics(self._all, self._ended)
        elif resetting is not None:
            self._ended, self._none_ended = np.zeros(self.num_envs, dtype=bool), True
        if simulator.repaired.any():
            infos["repaired"] = simulator.repaired.copy()
        return self._observe(), rewards, terminated, truncated, infos

    def _info(self, mask: Flags) -> dict[str, Any]:
        """The infos of the environments of ``mask`` [B] when they are reset."""
        return {**self._metrics(mask), "repaired": np.zeros(self.num_envs, dtype=bool), "_repaired": mask}

    def _metrics(self, mask: Flags, done: Flags | None = None) -> dict[str, Any]:
        """The metrics in infos of the environments of ``mask`` [B], infinite but for those of ``done``."""
        names = self.simulator.metric_names
        values = np.where(mask, np.inf, np.zeros((len(names), 1)))
        if done is not None:
            values[:, done] = self.simulator.measure(done)[done].T
        metrics: dict[str, Any] = dict(zip(names, values, strict=True))
        metrics.update(dict.fromkeys(self._metric_masks, mask))
        return {"metrics": metrics, "_metrics": mask}

    def _finish(self, done: Flags) -> dict[str, Any]:
        """What a step with SAME_STEP says of the episodes that it ended; start their next ones."""
        simulator = self.simulator
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(done):
            final[i] = {
                name: buffer[i] if name in simulator.scalars else buffer[i].copy()
                for name, buffer in simulator.observation.items()
            }
        last = {**self._metrics(done, done), "repaired": simulator.repaired & done, "_repaired": done}
        simulator.begin(done)
        self._steps[done] = 0
        return {"final_obs": final, "_final_obs": done, "final_info": last, "_final_info": done}

    @_one_at_a_time
    def copy_from(self, index: int, source: int) -> dict[str, Any]:
        """Let environment ``index`` go on from the state of environment ``source``.

        Seeds and numbers of episodes are part of the state: both have the same future.

        Returns:
            the observations of all environments.
        """
        self._check_index(index, "copy_from")
        self._check_index(source, "copy_from")
        if index != source:
            restore(self.simulator, index, save(self.simulator, source))
            self._steps[index] = self._steps[source]
            self._ended[index] = self._ended[source]
            self._none_ended = not self._ended.any()
        return self._observe()

    def record(self, index: int) -> ScheduleRecord:
        """The schedule of environment ``index``'s current episode (with autoreset: after the reset)."""
        self._check_index(index, "record")
        return self.simulator.record(index)

    def _check_index(self, index: Any, what: str) -> None:
        if not _is_whole(index) or not 0 <= index < self.num_envs:
            raise InvalidParameter(f"{what}: must be from 0 to {self.num_envs - 1}, got {index!r}")
        _check_begun(self._started, what)

    def render(self) -> tuple[Any, ...] | None:
        """One picture or text per environment."""
        if self.render_mode is None:
            return None
        _check_begun(self._started, "render")
        mode = self.render_mode
        return tuple(_picture(self.problem, self.simulator, i, mode) for i in range(self.num_envs))


def vector_class(env_class: type[SchedulingEnv]) -> type[SchedulingVectorEnv]:
    """The class of the native vector environment of a class of environments, to stand in the same module."""
    name, module = env_class.__name__.removesuffix("Env") + "VectorEnv", env_class.__module__
    text = f"The native vector environment of :class:`{env_class.__name__}`: same spaces, batched."
    return type(name, (SchedulingVectorEnv,), {"__module__": module, "__doc__": text, "env_class": env_class})


class CudaVectorEnv(SchedulingVectorEnv):
    """``num_envs`` environments on an NVIDIA GPU: ``gym.make_vec(id, num_envs=n, device="cuda")``.

    Experimental, speed not yet measured. It needs the extra ``cuda``. Spaces, seeds,
    episodes and the order of events are those of :class:`SchedulingVectorEnv`. What differs:

    - Observations, rewards, ``terminated`` and ``truncated`` are arrays in the GPU's memory, which torch,
      CuPy and numba take without a copy (``__cuda_array_interface__``): ``torch.as_tensor(x, device="cuda")``
      shares the memory of x. Actions may be such arrays, C-contiguous, or numpy arrays, which are copied.
    - "repaired" of ``infos`` is in the GPU's memory; "metrics" are numpy arrays. With SAME_STEP,
      ``infos["final_obs"]`` is a dict of arrays in the GPU's memory, [num_envs, ...]; rows count where
      ``infos["_final_obs"]``, a numpy array, is True.
    - Logarithms, exponentials, powers, sines and cosines may differ from those of the CPU in the last bits,
      and so may workloads that are drawn.
    - Episodes cannot be limited by ``max_episode_steps``. A workload cannot be given in ``reset``; all
      environments run that of the parameter ``workload``, if it is given. The environment cannot be pickled.

    Args:
        env_class: class of one environment.
        num_envs, autoreset_mode, render_mode, copy, threads, parameters: as of :class:`SchedulingVectorEnv`;
            ``threads`` must be 1.

    Raises:
        gymnasium.error.DependencyNotInstalled: without the extra ``cuda``.
        InvalidParameter: if there is no GPU, or its memory is too small for so many environments.
    """

    simulator: Any

    def __init__(self, env_class: type[SchedulingEnv], *args: Any, **others: Any) -> None:
        self.env_class = env_class  # type: ignore[misc]  # of the object: there is one class for all
        super().__init__(*args, **others)

    def _simulate(self, parameters: Mapping[str, Any], threads: int) -> Simulator:
        """Make the simulator; return one that describes each environment."""
        if threads > 1:
            raise InvalidParameter("threads: has no effect on a GPU: leave it out")
        if self.max_episode_steps is not None:
            raise InvalidParameter("max_episode_steps: is not counted on a GPU: leave it out")
        self.simulator = make_cuda_simulator(self.problem, self.env_class.id, self.num_envs, parameters)
        self._copied, self._taken = self.simulator.copied, self.simulator.taken
        return cast(Simulator, self.simulator.template)

    def __getstate__(self) -> dict[str, Any]:
        raise InvalidParameter("an environment on a GPU cannot be pickled or copied")

    def copy_from(self, index: int, source: int) -> dict[str, Any]:
        """Raise InvalidParameter: states on a GPU cannot be copied."""
        raise InvalidParameter("an environment on a GPU cannot be pickled or copied")

    def _observe(self) -> dict[str, Any]:
        shown = self.simulator.observation
        return {name: self._copied(array) for name, array in shown.items()} if self.copy else dict(shown)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """See :meth:`SchedulingVectorEnv.reset`; ``options`` must not have a workload."""
        if isinstance(options, Mapping) and options.get("workload") is not None:
            raise InvalidParameter("options: workload cannot be given on a GPU: make the environment with it")
        return super().reset(seed=seed, options=options)

    def _actions(self, actions: Any) -> Any:
        """The actions in the GPU's memory."""
        kinds = "fiu" if self._real else "iu"
        if not hasattr(actions, "__cuda_array_interface__"):
            return self._taken(np.ascontiguousarray(_parse(actions, self._shape, "actions", kinds)))
        array = self._taken(actions)
        if array.dtype.kind not in kinds:
            raise InvalidAction(f"actions: must be {KINDS[kinds]}, got {array.dtype}")
        if array.shape != self._shape:
            raise InvalidAction(f"actions: must have shape {self._shape}, got {array.shape}")
        if not array.is_c_contiguous():
            raise InvalidAction("actions: must be C-contiguous")
        return array

    @_one_at_a_time
    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """See :meth:`SchedulingVectorEnv.step`."""
        _check_begun(self._started, "step")
        simulator, mode = self.simulator, self.autoreset_mode
        if simulator.waiting and mode is AutoresetMode.DISABLED:
            i = int(np.argmax(simulator.results.ended.copy_to_host()))
            raise ResetNeeded(f"the episode of environment {i} has ended: reset it first")
        there = self._actions(actions)
        if self.copy:
            simulator.results = simulator.make_results()
        ended = simulator.step(there)
        if ended < 0:
            i = -ended - 1
            raise simulator.refusal(i, f"actions[{i}]")
        results = simulator.results
        infos: dict[str, Any] = {**self._quiet, "metrics": dict(self._quiet["metrics"])}
        infos["repaired"] = results.repaired
        if ended:
            done = results.ended.copy_to_host()
            if mode is AutoresetMode.SAME_STEP:
                final = {name: self._copied(array) for name, array in simulator.observation.items()}
                infos |= {"final_obs": final, "_final_obs": done}
                infos |= {"final_info": self._metrics(done, done), "_final_info": done}
                simulator.begin_ended()
            else:
                infos |= self._metrics(self._all, done)
        return self._observe(), results.reward, results.terminated, results.truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """One picture or text per environment."""
        if self.render_mode is None:
            return None
        _check_begun(self._started, "render")
        one, mode = self.simulator.fetch, self.render_mode
        return tuple(_picture(self.problem, one(i), 0, mode) for i in range(self.num_envs))
