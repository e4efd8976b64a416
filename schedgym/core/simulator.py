"""Simulator: the state and the kernels behind a problem's environment and vector environment.

A problem subclasses :class:`Simulator` and says how long its arrays' dimensions are; allocation, growth,
pickling, observations, episodes and threads are here. The base keeps which seed and episode each environment
is at, and which workloads were given.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import (
    Bytes,
    Flags,
    Floats,
    Integers,
    Shown,
    allocate,
    allocate_all,
    batched,
    declarations,
    members,
    memory_of,
    regrow,
    shape_of,
    sizes_of,
)
from schedgym.core.jit import COMPILED
from schedgym.core.policy import Interface
from schedgym.core.problem import Parameters, Problem
from schedgym.core.random import root_seed
from schedgym.core.record import ScheduleRecord
from schedgym.core.stepping import ACT, BEGIN, CHECK, RESUME, SHORT, SKIP
from schedgym.core.tables import make_tools, pack, tabled
from schedgym.core.threads import Workers
from schedgym.core.workload import Workload
from schedgym.core.workload_files import load_workload
from schedgym.errors import InvalidAction, InvalidWorkload

#: (table, tools, command [B]) -> a count, or -(b + 1) for the first environment whose action is refused
Kernel = Callable[[Any, Any, Bytes], int]

#: modules of a problem that have kernels, and the bundles that these work on
KERNEL_MODULES = ("dynamics", "workload", "metrics")

#: dimensions that follow from the action space
ACTION_DIMENSIONS = ("component", "choice", "action_row", "action_column", "mask")

#: entries of both kinds of observations
MASKS = ("job_mask", "task_mask", "action_mask")

#: most bytes of the arrays of one environment
MOST_MEMORY = 2**32

#: attributes that :meth:`Simulator._bind` makes, which are not pickled
DERIVED = frozenset(
    ("observation", "shown", "actions", "rows", "reward", "terminated", "truncated", "repaired")
    + ("table", "tools", "toolboxes", "draw_table", "measure_table", "latest")
    + ("kernels", "draw_kernel", "measure_kernel", "changing", "saved")
)


class Simulator(ABC):
    """``num_envs`` environments of one problem, advanced together.

    Each problem's module ``simulator`` has ``make_simulator(parameters, num_envs, id)``.

    The named tuples of bundles that kernels work on, and the kernels (see :mod:`schedgym.core.kernels`), are
    those of the problem's modules: ``dynamics`` has Environment and ``DYNAMICS``, ``workload`` has Drawing
    and ``draw``, ``metrics`` has Episode and ``measure``. The ``__init__`` of a subclass calls
    :meth:`_set_up`.

    Attributes:
        environment: the class of the bundles that a step reads and writes.
        drawing: the same for a draw; its bundles are the environment's, and ``source``.
        episode: the same for the metrics; its bundles are the environment's, and ``metrics``.
        draw_kernel, measure_kernel: kernels of the problem.
        grows_by_draw: the dimension that a draw may find too short; "" where episodes are all of one size.
        log: the dimension that grows when a step needs more of it; "" for none.
        num_envs: number of environments, B.
        problem: the descriptor.
        id: the environment id.
        parameters: the environment's checked parameters.
        interface: the facts that policies may know.
        source: where drawn workloads come from; its ``arrays`` are the bundle ``source`` of a draw.
        fixed: the workload of all episodes, in the place of drawn ones.
        loaded: environment -> the given workload that it runs.
        loadings: of each environment an object that stands for the workload in its arrays.
        changing: the arrays that an episode changes, each once, and the initial value of its elements.
        saved: environment -> the loading and the workload's arrays of its last snapshot.
        sizes: length of each dimension.
        arrays: the environments' bundles, batch-first.
        observation: name -> live buffer, [B, ...]; kernels overwrite it.
        shown: name -> the mark of the array of this entry, which has its limits.
        zero_copy: True if observations can be the state's own arrays: all jobs, in exact units.
        lengthened: beginning of the name of dimensions -> whether they have a length in these observations.
        action_space: space of one environment's actions.
        mask_shape: shape of the mask of feasible actions; () if observations have none.
        continuous: True if actions are real numbers (a Box space).
        action_shape: shape of one action; () for a single whole number.
        actions: buffer for a batch of actions: int64 [B, components], or with ``continuous`` float64
            [B, *action_shape]. The environments write the leading rows that count (``rows``), no others.
        action_sizes: number of choices of each component of an action; with ``continuous`` ().
        rows: with ``continuous``, the number of leading rows (axis 0) of an action that count now; int64 [B].
        reward, terminated, truncated, repaired: results of the last step, [B].
        measured: the metrics, in the order of :meth:`measure`.
        metric_names: their names.
        kernels: the kernels that a step calls in turn, until one refuses an action; the last one counts the
            episodes that ended. The first one checks every action before it changes anything, and with the
            command CHECK changes nothing.
        table: the arrays of the kernels, packed.
        threads: number of threads, each of which advances blocks of environments.
        tools: work space of the kernels, per thread.
        toolboxes: the same, packed.
    """

    grows_by_draw: ClassVar[str] = ""
    log: ClassVar[str] = ""

    arrays: Any
    environment: type[Any]
    drawing: type[Any]
    episode: type[Any]
    draw_kernel: Callable[..., int]
    measure_kernel: Callable[..., None]
    kernels: tuple[Kernel, ...]
    interface: Interface
    observation: dict[str, npt.NDArray[Any]]
    shown: dict[str, Shown]
    actions: Integers | Floats
    rows: Integers
    reward: Floats
    terminated: Flags
    truncated: Flags
    repaired: Flags
    table: Any
    draw_table: Any
    tools: list[Any]
    toolboxes: list[Any]

    def __init__(self, problem: Problem, id: str, parameters: Parameters, num_envs: int) -> None:
        self.problem, self.id, self.parameters, self.num_envs = problem, id, parameters, num_envs
        self.seeded = np.zeros(num_envs, dtype=bool)
        self.seeds = np.zeros(num_envs, dtype=np.uint64)
        self.episodes = np.zeros(num_envs, dtype=np.int64)
        self.once: dict[int, Workload] = {}
        self.repeated: dict[int, Workload] = {}
        self.loaded: dict[int, Workload] = {}
        self.loadings = np.full(num_envs, None, dtype=object)
        self.latest: tuple[Workload, Any] | None = None
        self.threads = 1
        self.workers: Workers | None = None
        self.fixed: Workload | None = None
        self.source: Any = None
        workload = problem.module("workload")
        path = getattr(parameters, "workload", None)
        if path is not None:
            self.fixed = load_workload(path, workload.SCHEMA)
            self._check_length(self.fixed, f"{path}: ")
        else:
            self.source = workload.make_source(parameters)

    def _set_up(
        self,
        sizes: Mapping[str, int],
        visible: Mapping[str, int],
        config: Mapping[str, Any] | None = None,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the arrays, unless they are too large.

        Args:
            sizes: length of each dimension that bundles name; those of actions, and of the ``mask`` of
                feasible ones, follow from the space.
            visible: the interface's ``sizes``.
            config: fields of ``constants.config`` that :meth:`_configure` does not know.
            known: values, for the interface, of the parameters that the workload decides.
        """
        parameters: Any = self.parameters
        dynamics, workload, metrics = (self.problem.module(name) for name in KERNEL_MODULES)
        self.environment, self.drawing, self.episode = dynamics.Environment, workload.Drawing, metrics.Episode
        units = parameters.observation == "dict"
        self.zero_copy = units and getattr(parameters, "window", None) == "all"
        self.lengthened = {"unit": units, "own": units and not self.zero_copy, "token": not units}
        self.sizes = self._all_sizes(dict.fromkeys(ACTION_DIMENSIONS, 0) | dict(sizes))
        self._check_memory(self.sizes, "" if self.fixed is None else f"{parameters.workload}: ")
        self.action_space = self.problem.module("views").action_space(parameters, self.sizes)
        space = self.action_space  # after the check, as its bounds take memory, too
        self.action_shape: tuple[int, ...] = tuple(space.shape or ())
        self.action_sizes: tuple[int, ...] = ()
        if hasattr(space, "nvec"):
            self.action_sizes = tuple(space.nvec.tolist())
        elif hasattr(space, "n"):
            self.action_sizes = (int(space.n),)
        self.continuous, components = not self.action_sizes, len(self.action_sizes)
        self.mask_shape: tuple[int, ...] = ()
        if self.action_sizes and getattr(parameters, "action_mask", True):
            first, *others = self.action_sizes
            # the last value of the first of several components stands alone, and is always feasible
            self.mask_shape = (first - 1, *others) if others else (first,)
        rows, *columns = self.action_shape if self.continuous else (0,)
        mask = math.prod(self.mask_shape) if self.mask_shape else 0
        lengths = components, max(components, 1), rows, math.prod(columns), mask
        # a problem may give the length of a mask of its own
        self.sizes = self._all_sizes(dict(zip(ACTION_DIMENSIONS, lengths, strict=True)) | dict(sizes))
        self.interface = Interface(
            id=self.id,
            problem=self.problem.name,
            view=parameters.view,
            observation=parameters.observation,
            parameters=dataclasses.asdict(parameters) | dict(known or {}),
            sizes=dict(visible),
        )
        self.arrays = allocate_all(self.environment, self.sizes, self.num_envs)
        if hasattr(self.arrays, "constants"):
            self._configure(config or {})
        self.arrays.action_space.counts[:] = self.action_sizes
        self.arrays.action_space.rules["strict"] = parameters.strict
        written = next(member for member in members(self.episode) if member.name == "metrics")
        self.metrics = allocate(written.bundle, self.sizes, self.num_envs)
        self.measured = self.problem.metrics_of(self.interface.parameters)
        self.metric_names = tuple(metric.name for metric in self.measured)
        self._initialise()
        self._bind()
        entries = {name: buffer.shape[1:] for name, buffer in self.observation.items()}
        self.interface = dataclasses.replace(self.interface, entries=entries)

    def _configure(self, given: Mapping[str, Any]) -> None:
        """Set the fields of ``constants.config``: those given, and others by the parameters.

        ``features`` and ``mask`` say whether observations are tokens, and carry the mask of actions. A view
        and any other choice is its number.
        """
        config, parameters = self.arrays.constants.config, cast(Any, self.parameters)
        own: dict[str, Any] = {
            "features": parameters.observation == "features",
            "mask": parameters.action_mask,
            "zero_copy": self.zero_copy,
            "action_view": [view.name for view in self.problem.views].index(parameters.view),
            "window": self.sizes.get("window"),
        }
        for field in dataclasses.fields(parameters):
            value, choices = getattr(parameters, field.name), field.metadata.get("choices")
            own.setdefault(field.name, choices.index(value) if choices and value in choices else value)
        own |= given
        for name in config.dtype.names:
            config[name] = own[name]

    def _all_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Lengths of dimensions, with those that follow from others: where ``sizes`` grow, these do."""
        own = {name: n for name, n in sizes.items() if name.partition("_")[0] not in self.lengthened}
        own |= self._derived_sizes(own)
        kinds = self.lengthened.items()
        return own | {f"{kind}_{name}": n if on else 0 for kind, on in kinds for name, n in own.items()}

    def _derived_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Lengths of a problem's dimensions that follow from others."""
        return {}

    def _initialise(self) -> None:  # noqa: B027  (most problems need none)
        """Write the initial values of arrays, and let zero-copy observations be the state's own arrays."""

    def _observation(self) -> dict[str, npt.NDArray[Any]]:
        """Return the buffers that make up the observation, by name, each [B, ...], and set :attr:`shown`.

        Tokens are the arrays whose names end in ``_tokens``: ``job_tokens`` is the entry ``jobs``. Of an
        array that stands in two bundles the last one is shown.
        """
        tokens = self.interface.observation == "features"
        found: dict[str, tuple[Shown, npt.NDArray[Any]]] = {}
        for member, bundle in zip(members(self.environment), self.arrays, strict=True):
            for declared, array in zip(declarations(member.bundle), bundle, strict=True):
                name, mark = declared.name, declared.mark(Shown)
                if name.endswith("_tokens"):
                    name, mark = f"{name.removesuffix('_tokens')}s", mark or Shown()
                if mark is None or not array.size or not mark.holds(self):
                    continue
                if name in MASKS or tokens == (declared.dtype == np.float32):
                    found[mark.name or name] = mark, array
        if not self.mask_shape:
            found.pop("action_mask", None)
        self.shown = {name: mark for name, (mark, _) in found.items()}
        return {name: self._entry(name, mark, array) for name, (mark, array) in found.items()}

    def _entry(self, name: str, mark: Shown, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array in the form in which observations show it."""
        if mark.single:
            return array[:, 0]
        shape = self.mask_shape if name == "action_mask" else shape_of(mark.shape, self.sizes)
        return array.reshape((self.num_envs, *shape)) if shape else array

    @property
    def scalars(self) -> tuple[str, ...]:
        """Names of observation entries that are one integer per environment (Discrete spaces)."""
        return tuple(name for name, mark in self.shown.items() if mark.single)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.latest = None
        self._bind()

    def use_threads(self, count: int) -> None:
        """Let ``count`` threads advance the environments, at most one for each; nothing else changes."""
        self.threads = min(count, self.num_envs)
        self.workers = Workers(self.num_envs, self.threads) if self.threads > 1 else None
        self._bind()

    def _bind(self) -> None:
        """Make DERIVED: views of arrays (pickling and copying detach them), tables and work space."""
        exchange = self.arrays.exchange
        self.actions = exchange.choices
        if self.continuous:
            self.actions = exchange.numbers.reshape((self.num_envs, *self.action_shape))
        result = exchange.result
        self.rows, self.reward, self.repaired = result["rows"], result["reward"], result["repaired"]
        self.terminated, self.truncated = result["terminated"], result["truncated"]
        self.changing = batched(self.arrays, "jobs")
        self.saved: dict[int, tuple[object, list[npt.NDArray[Any]]]] = {}
        self.table = pack(self.arrays)
        self.tools = [make_tools(self.environment, self.sizes) for _ in range(self.threads)]
        self.toolboxes = [pack(own, scratch=True) for own in self.tools]
        module, workload, metrics = (self.problem.module(name) for name in KERNEL_MODULES)
        dynamics = module.DYNAMICS
        self.kernels = dynamics.decide[dynamics.functions_of(self)], dynamics.step
        self.draw_kernel, self.measure_kernel = workload.draw, metrics.measure
        self.draw_table = self._table(self.drawing) if self.source is not None else None
        self.measure_table = self._table(self.episode)
        self.observation = self._observation()

    def _table(self, kind: type[Any]) -> tuple[Any, Any]:
        """The table for kernels that work on some of the bundles."""
        return tabled(kind(*map(self.bundle, kind._fields)), self.sizes)

    def bundle(self, name: str) -> Any:
        """The bundle of this name, of the environments, a draw or the metrics; None if there is none."""
        others = {"metrics": self.metrics, "source": getattr(self.source, "arrays", None)}
        return others.get(name, getattr(self.arrays, name, None))

    @property
    def state(self) -> Any:
        """The bundle ``state`` of all environments."""
        return self.arrays.state

    @property
    def jobs(self) -> Any:
        """The bundle ``jobs``, the workloads of all environments."""
        return self.arrays.jobs

    # Episodes ---------------------------------------------------------------------------------

    def seed(self, index: int, seed: int) -> None:
        """Let the next episode of environment ``index`` be episode 0 of ``seed``."""
        self.seeds[index] = root_seed(seed)
        self.episodes[index] = 0
        self.seeded[index] = True

    def give(self, index: int, workload: Workload, repeat: bool) -> None:
        """Let a checked workload serve the next episode of ``index``, with ``repeat`` all that follow."""
        if repeat:
            self.repeated[index] = workload
            self.once.pop(index, None)
        else:
            self.once[index] = workload

    def take_back(self, index: int) -> None:
        """Forget the workloads given to environment ``index``."""
        self.once.pop(index, None)
        self.repeated.pop(index, None)

    def check_workload(self, workload: Workload) -> None:
        """Raise InvalidWorkload if the environment cannot hold ``workload``."""
        if workload.problem != self.problem.name:
            raise InvalidWorkload(f"problem: must be {self.problem.name!r}, got {workload.problem!r}")
        self._check_length(workload)
        self._check(workload)

    def _check_length(self, workload: Workload, prefix: str = "") -> None:  # noqa: B027  (most need no limit)
        """Raise InvalidWorkload if episodes on ``workload`` would be long for its size, in slots or tasks."""

    def _check_memory(self, sizes: Mapping[str, int], prefix: str = "") -> None:
        """Raise InvalidWorkload if the arrays of one environment would be larger than MOST_MEMORY."""
        memory = memory_of(self.environment, sizes)
        total = sum(memory.values())
        if total > MOST_MEMORY:
            largest = max(memory, key=lambda name: memory[name])
            raise InvalidWorkload(
                f"{prefix}an environment of this size takes {total / 2**30:.3g} GiB, more than "
                f"{MOST_MEMORY / 2**30:.3g} (most of it for {largest})"
            )

    def _check_size(self, what: str, own: int, given: int) -> None:
        """Raise InvalidWorkload for a cluster of another size than the environment was made with."""
        if given != own:
            raise InvalidWorkload(
                f"cluster: {given} {what}, the environment has {own}; make the environment with this "
                f'workload: gym.make({self.interface.id!r}, workload="FILE.json")'
            )

    @abstractmethod
    def _check(self, workload: Workload) -> None:
        """Raise InvalidWorkload if the environment cannot hold a workload of its own problem."""

    def _check_window(self, count: int, what: str = "jobs") -> None:
        """Raise InvalidWorkload if a window that shows "all" jobs is too small for so many."""
        most = self.interface.sizes["window"]
        if cast(Any, self.parameters).window == "all" and count > most:
            raise InvalidWorkload(f"jobs: {count} {what} exceed the window, which was sized for {most}")

    def prepare(self, mask: Flags) -> None:
        """Load the next episode's workload into each environment that ``mask`` [B] names."""
        drawn = mask
        if self.once or self.repeated or self.fixed is not None:
            drawn = mask.copy()
            for index in np.flatnonzero(mask).tolist():
                workload = self.once.pop(index, None) or self.repeated.get(index, self.fixed)
                if workload is not None:
                    self.load(index, workload)
                    drawn[index] = False
        if drawn.any():
            self.draw(drawn)
        self.episodes += mask

    def instance(self, workload: Workload) -> Any:
        """The workload as the bundle ``jobs`` of one environment; it is checked, and then loaded."""
        if self.latest is None or self.latest[0] is not workload:
            self.latest = (workload, self._instance(workload))
        return self.latest[1]

    def _instance(self, workload: Workload) -> Any:
        """Make the bundle that :meth:`instance` returns."""
        return self.problem.module("workload").tables(workload)

    def load(self, index: int, workload: Workload) -> None:
        """Copy a checked workload into environment ``index``; the arrays grow if they are too short."""
        instance = self.instance(workload)
        self.reserve(**sizes_of(instance))
        for target, values in zip(self.arrays.jobs, instance, strict=True):
            target[(index, *(slice(length) for length in values.shape))] = values
        self.loaded[index] = workload
        self.loadings[index] = object()

    def draw(self, mask: Flags) -> None:
        """Draw workloads from (seed, episode) for the environments that ``mask`` [B] names."""
        needed = self._draw(mask)
        while self.grows_by_draw and needed > self.sizes[self.grows_by_draw]:
            self.reserve(**{self.grows_by_draw: needed})
            needed = self._draw(mask)
        self.loadings[mask] = [object() for _ in range(np.count_nonzero(mask))]
        for index in [index for index in self.loaded if mask[index]]:
            del self.loaded[index]

    def _draw(self, mask: Flags) -> int:
        with np.errstate(over="warn" if COMPILED else "ignore"):  # uncompiled, modular arithmetic would warn
            return self.draw_kernel(*self.draw_table, mask, self.seeds, self.episodes)

    def reserve(self, **wanted: int) -> None:
        """Make every dimension at least so long, with a reserve, and keep the contents of the arrays."""
        sizes = dict(self.sizes)
        for name, length in wanted.items():
            if length > sizes[name]:
                sizes[name] = max(length, sizes[name] + sizes[name] // 2)
        if sizes != self.sizes:
            sizes = self._all_sizes(sizes)
            self._check_memory(sizes)
            self.sizes = sizes
            self.arrays = regrow(self.arrays, self.sizes, self.num_envs)
            self._bind()

    def begin(self, mask: Flags) -> None:
        """Start the next episode of each environment that ``mask`` [B] names; the others stay as they are."""
        self.prepare(mask)
        self.begin_again(mask)

    def begin_again(self, mask: Flags) -> None:
        """Start the episode anew, on the same workload, of each environment that ``mask`` [B] names."""
        command = self._begin_prepared(mask)
        if command is not None:
            self.resume(command)

    def _begin_prepared(self, mask: Flags) -> Bytes | None:
        """Begin the prepared episodes; return the command if it has to be resumed."""
        command = np.multiply(mask, BEGIN, dtype=np.int8)
        return command if self.kernels[-1](self.table, self.toolboxes[0], command) == SHORT else None

    def now(self, index: int) -> tuple[float, int]:
        """The time up to which jobs have arrived in environment ``index``, and how many have."""
        scalars = self.state.scalars[index]
        time, arrived = (
            next(scalars[name].item() for name in names if name in scalars.dtype.names)
            for names in (("clock", "slot"), ("arrived", "submitted"))
        )
        return time, arrived

    # Steps ------------------------------------------------------------------------------------

    def write(self, actions: Any) -> None:
        """Write the actions of all environments, [B, *action_shape], or of one without its axis."""
        array = np.asarray(actions)
        if self.continuous:
            self.actions[...] = array.reshape(self.actions.shape)
        else:
            self.actions[:, : len(self.action_sizes)] = array.reshape(self.num_envs, -1)

    def step(self, command: Bytes, ended: Flags | None = None) -> int:
        """Carry out ``command`` [B]: SKIP, or ACT by ``actions``; and start the next episodes of ``ended``.

        SKIP leaves all as it is, also reward and ends; a new episode sets these to zero.

        Args:
            command: command of each environment.
            ended: [B], environments that are skipped by ``command`` and begin their next episode.

        Returns the number of episodes that ended. A negative number -(i + 1) says that environment i's
        action is out of range (a row that counts is not finite), or with strict actions infeasible, and
        that nothing has changed.
        """
        if self.workers is not None:
            return self._step_side_by_side(self.workers, command, ended)
        count = self._call_kernels(command, 0)
        if count == SHORT:
            count = self.resume(command)
        if count >= 0 and ended is not None:
            self.begin(ended)
        return count

    def _step_side_by_side(self, workers: Workers, command: Bytes, ended: Flags | None) -> int:
        """:meth:`step` by several threads."""
        checks = np.where(command == ACT, np.int8(CHECK), np.int8(SKIP))
        refused = self.kernels[0](self.table, self.toolboxes[0], checks)
        if refused < 0:
            return refused
        given = bool(self.once or self.repeated) or self.fixed is not None
        overlaps = not self.grows_by_draw and not given  # else arrays may grow, which must come first
        if ended is not None and not overlaps:
            self.prepare(ended)
        short: Bytes | None = None

        def begin_ended() -> None:
            nonlocal short
            if ended is not None:
                if overlaps:
                    self.prepare(ended)
                short = self._begin_prepared(ended)

        count = workers.run(self._call_kernels, command, begin_ended)
        if count == SHORT:
            count = self.resume(command)
        if short is not None:
            self.resume(short)
        return count

    def _call_kernels(self, command: Bytes, thread: int) -> int:
        """Call the kernels in turn; return the first negative result, else the result of the last kernel."""
        toolbox, count = self.toolboxes[thread], 0
        for kernel in self.kernels:
            count = kernel(self.table, toolbox, command)
            if count < 0:
                break
        return count

    def resume(self, command: Bytes) -> int:
        """Grow the log, and finish what ``command`` began; return the number of episodes that ended."""
        acted, short = command != SKIP, SHORT
        while short == SHORT:
            self.reserve(**{self.log: 2 * self.sizes[self.log]})
            waiting = self.arrays.exchange.result["short"] & acted
            resume = np.where(waiting, np.int8(RESUME), np.int8(SKIP))
            short = self.kernels[-1](self.table, self.toolboxes[0], resume)
        return int(np.count_nonzero(acted & (self.terminated | self.truncated)))

    def refusal(self, index: int, what: str) -> InvalidAction:
        """The error that says why environment ``index`` refused its action, which it calls ``what``."""
        if self.continuous:
            counted = self.actions[index, : self.rows[index]]
            for place in np.argwhere(~np.isfinite(counted))[:1].tolist():
                return InvalidAction(f"{what}{place}: must be finite, got {counted[tuple(place)]}")
            return InvalidAction(f"{what}: infeasible (strict=True)")
        action = self.actions[index, : len(self.action_sizes)].tolist()
        for k, (value, size) in enumerate(zip(action, self.action_sizes, strict=True)):
            if not 0 <= value < size:
                where = what if len(action) == 1 else f"{what}[{k}]"
                return InvalidAction(f"{where}: must be from 0 to {size - 1}, got {value}")
        shown = action[0] if len(action) == 1 else action
        return InvalidAction(f"{what}: {shown} is infeasible (strict=True)")

    # Results ----------------------------------------------------------------------------------

    def measure(self, mask: Flags) -> Floats:
        """Metrics [B, metrics] of the finished episodes that ``mask`` names; other rows are undefined."""
        self.measure_kernel(*self.measure_table, mask)
        return self.metric_values(self.metrics, self.state.scalars)

    def metric_values(self, written: Any, scalars: Any) -> Floats:
        """Metrics [B, metrics], of the arrays that the kernel has written and of the state's scalars."""
        flat = [array.view(np.float64).reshape(len(array), -1) for array in written]
        values: Floats = np.concatenate(flat, axis=1)
        for k, metric in enumerate(self.measured):
            if not metric.recorded and metric.name in scalars.dtype.names:  # a count that the state keeps
                values[:, k] = scalars[metric.name]
        return values

    @abstractmethod
    def record(self, index: int) -> ScheduleRecord:
        """The schedule of environment ``index`` so far."""

    def workload(self, index: int) -> Workload:
        """The workload of environment ``index``."""
        return self.loaded[index] if index in self.loaded else self._drawn_workload(index)

    def _drawn_workload(self, index: int) -> Workload:
        """The workload that environment ``index`` has drawn."""
        return self.problem.module("workload").rebuild(self.jobs_of(index))

    def jobs_of(self, index: int) -> Any:
        """The bundle ``jobs`` of environment ``index``, without the axis of environments."""
        return type(self.jobs)(*(array[index] for array in self.jobs))
