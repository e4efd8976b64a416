"""Many environments on an NVIDIA GPU: one of its threads advances one environment at a time.

Nothing of a problem is written a second time. The kernels here call the problem's own kernels (see
:mod:`schedgym.core.stepping`) for a batch of one environment, that of the thread; numba-cuda compiles their
Python source for the GPU. State, workloads, observations, actions, rewards and work space stay in the GPU's
memory, and so do draws of workloads and the turnover of episodes. A step copies four numbers to the host: the
first environment that refuses its action, what length a draw lacks, if a log is short, and how many episodes
ended.

Sums and products are those of the CPU, to the last bit: they are neither reordered nor contracted.
Logarithms, exponentials, powers, sines and cosines are those of NVIDIA's library, which may differ from the
CPU's in the last bits; workloads are drawn with them, so that a seed's workload may differ there, too.

With NUMBA_ENABLE_CUDASIM=1 and NUMBA_DISABLE_JIT=1 all of this runs on numba's simulator of a GPU, slowly.

Experimental, speed not yet measured.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numba
import numpy as np
import numpy.typing as npt
from numba import cuda as numba_cuda

from schedgym.core.arrays import (
    MOST_DIMENSIONS,
    SCRATCH,
    Flags,
    Floats,
    Integers,
    Member,
    declarations,
    members,
    static_length,
)
from schedgym.core.jit import COMPILED
from schedgym.core.problem import Problem, get_problem
from schedgym.core.random import root_seed
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT, BEGIN, CHECK, RESUME, SKIP
from schedgym.core.tables import Shifted, make_tools, row_of, table_of
from schedgym.errors import InvalidAction, InvalidParameter

cuda: Any = numba_cuda  # as kernels know it: numba's simulator puts another in its place while they run
_cuda: Any = numba_cuda

#: True if numba simulates a GPU
SIMULATED = bool(numba.config.ENABLE_CUDASIM)

BLOCK = 64  # threads that the GPU starts together
MOST_LANES = 1 << 16  # threads of a launch, each with work space of its own; more environments take turns
CHUNK = 1 << 26  # bytes that are copied to the GPU at a time
COMMANDS = np.arange(5, dtype=np.int8)  # element c is the command c, for a batch of one environment

#: beside the commands of :mod:`schedgym.core.stepping`: act, but for environments whose episode is over
HOLD = 5

#: what the kernels of a step tell the host, each an element of ``outcome``
REFUSED, NEEDED, WAITING, ENDED = range(4)


class Results(NamedTuple):
    """The results of a step, and the episodes that are over, in the GPU's memory: [B] each."""

    reward: Any
    terminated: Any
    truncated: Any
    repaired: Any
    ended: Any


class Kernels(NamedTuple):
    """The kernels of one problem and view, as Python functions or compiled."""

    take: Any
    check: Any
    draw: Any
    act: Any
    measure: Any


def _taking(access: Any) -> Any:
    """The kernel that takes actions; ``access`` is an accessor of the environment."""

    def take(table: Any, tools: Any, actions: Any) -> None:
        """Write the actions [B, components], or of real numbers [B, rows, columns], where they are read."""
        lane = cuda.grid(1)
        for b in range(lane, actions.shape[0], cuda.gridsize(1)):
            exchange = access(Shifted(table, b), Shifted(tools, lane), 0).exchange
            if exchange.numbers.shape[0] > 0:
                for r in range(exchange.result.rows):
                    for c in range(exchange.numbers.shape[1]):
                        exchange.numbers[r, c] = actions[b, r, c]
            else:
                for k in range(actions.shape[1]):
                    exchange.choices[k] = actions[b, k, 0]

    return take


def functions(problem: Problem, view: str) -> Kernels:  # noqa: C901  (four kernels)
    """The kernels of a problem and view as Python functions, which are compiled for a GPU."""
    workload, metrics = problem.module("workload"), problem.module("metrics")
    dynamics = problem.module("dynamics").DYNAMICS
    access, decide, step = dynamics.access, dynamics.decide[dynamics.general(view)], dynamics.step
    draw_one, measure_one = workload.draw, metrics.measure

    def check(table: Any, tools: Any, begins: Any, outcome: Any) -> None:
        """Note the first environment that refuses its action, of those that do not begin an episode."""
        lane = cuda.grid(1)
        for b in range(lane, begins.shape[0], cuda.gridsize(1)):
            if not begins[b]:
                if decide(Shifted(table, b), Shifted(tools, lane), COMMANDS[CHECK : CHECK + 1]) < 0:
                    cuda.atomic.min(outcome, REFUSED, b)

    def draw(table: Any, tools: Any, begins: Any, seeds: Any, episodes: Any, outcome: Any) -> None:
        """Draw the workloads of the environments that begin an episode."""
        lane = cuda.grid(1)
        if outcome[REFUSED] < begins.shape[0]:
            return
        for b in range(lane, begins.shape[0], cuda.gridsize(1)):
            if begins[b]:
                own, space, end = Shifted(table, b), Shifted(tools, lane), b + 1
                needed = draw_one(own, space, begins[b:end], seeds[b:end], episodes[b:end])
                cuda.atomic.max(outcome, NEEDED, needed)

    def act(
        table: Any, tools: Any, begins: Any, others: int, episodes: Any, results: Any, outcome: Any, most: int
    ) -> None:
        """Begin episodes, and give all other environments the command ``others``, if none was refused.

        With HOLD none begins.
        """
        lane = cuda.grid(1)
        if outcome[REFUSED] < begins.shape[0] or outcome[NEEDED] > most:
            return
        for b in range(lane, begins.shape[0], cuda.gridsize(1)):
            own, space = Shifted(table, b), Shifted(tools, lane)
            result = access(own, space, 0).exchange.result
            command = others
            if others == RESUME:
                command = RESUME if result.short else SKIP
            elif others == HOLD:
                command = SKIP if begins[b] else ACT
            elif begins[b]:
                command = BEGIN
            if command == SKIP:
                continue
            if command == BEGIN:
                episodes[b] += 1
            elif command == ACT:
                decide(own, space, COMMANDS[ACT : ACT + 1])
            count = step(own, space, COMMANDS[command : command + 1])
            results.ended[b] = count > 0
            if count < 0:
                cuda.atomic.max(outcome, WAITING, 1)
                continue
            if count > 0:
                cuda.atomic.add(outcome, ENDED, 1)
            if others != SKIP:
                results.reward[b] = result.reward
                results.terminated[b] = result.terminated
                results.truncated[b] = result.truncated
                results.repaired[b] = result.repaired

    def measure(table: Any, tools: Any, ended: Any) -> None:
        """Write the metrics of the episodes that ended."""
        lane = cuda.grid(1)
        for b in range(lane, ended.shape[0], cuda.gridsize(1)):
            if ended[b]:
                measure_one(Shifted(table, b), Shifted(tools, lane), ended[b : b + 1])

    return Kernels(_taking(access), check, draw, act, measure)


@functools.cache
def compiled(problem: str, view: str) -> Kernels:
    """The kernels of a problem and view; each is compiled at its first launch."""
    return Kernels(*(_cuda.jit(function) for function in functions(get_problem(problem), view)))


def check_device() -> None:
    """Raise InvalidParameter if kernels cannot run on a GPU here."""
    if SIMULATED == COMPILED:
        raise InvalidParameter("device: on a GPU NUMBA_DISABLE_JIT=1 and NUMBA_ENABLE_CUDASIM=1 go together")
    if not SIMULATED and not _cuda.is_available():
        raise InvalidParameter("device: no NVIDIA GPU, or no driver of one, was found")


_compiling = threading.RLock()


@contextlib.contextmanager
def uncontracted() -> Iterator[None]:
    """Let what is compiled meanwhile not contract a product and a sum: numba-cuda has no option for it."""
    if SIMULATED:
        yield
        return
    from numba.cuda.cudadrv import nvvm

    module: Any = nvvm
    with _compiling:
        original = module.compile_ir
        module.compile_ir = lambda ir, **options: original(ir, **{**options, "fma": False})
        try:
            yield
        finally:
            module.compile_ir = original


def _empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array in the GPU's memory."""
    return _cuda.device_array(shape, dtype)


def _view(memory: Any, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    """An array over bytes in the GPU's memory, which it keeps alive."""
    if SIMULATED:
        return type(memory)(np.ndarray(shape, dtype, memory._ary, offset, strides))
    return _cuda.from_cuda_array_interface(
        {
            "shape": shape,
            "strides": strides,
            "typestr": np.dtype(dtype).str,
            "data": (_address(memory) + offset, False),
            "version": 3,
        },
        owner=memory,
    )


def _address(memory: Any) -> int:
    """The address of an array in the GPU's memory."""
    return int(memory.__cuda_array_interface__["data"][0])


class _Memory:
    """The GPU's memory of one array, whose axis 0 is the environment, or of one that all of them share.

    Args:
        one: of one environment [1, ...], or the shared array; its values are the first ones.
        count: number of environments; None: shared.
    """

    def __init__(self, one: npt.NDArray[Any], count: int | None) -> None:
        self.dtype, self.count = one.dtype, count
        self.shape = one.shape if count is None else (count, *one.shape[1:])
        self.row = one.nbytes  # bytes of one environment
        self.bytes = _empty((max(self.row * (count or 1), 1),), np.uint8)
        for first, last in self._blocks():
            self._write(first, np.repeat(one, last - first, axis=0) if count else one)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """The environments, as many at a time as are copied at once."""
        count = (self.count or 1) if self.row else 0
        block = max(CHUNK // max(self.row, 1), 1)
        for first in range(0, count, block):
            yield first, min(first + block, count)

    def _write(self, first: int, values: npt.NDArray[Any]) -> None:
        start = first * self.row
        self.bytes[start : start + values.nbytes].copy_to_device(np.frombuffer(values.tobytes(), np.uint8))

    def rows(self, first: int, last: int) -> npt.NDArray[Any]:
        """A copy, on the host, of the arrays of the environments from ``first`` to before ``last``."""
        shape = (last - first, *self.shape[1:])
        if self.row == 0:
            return np.zeros(shape, self.dtype)
        found = self.bytes[first * self.row : last * self.row].copy_to_host()
        return np.frombuffer(bytearray(found), self.dtype).reshape(shape)

    def grown(self, one: npt.NDArray[Any]) -> _Memory:
        """The array with the longer dimensions of ``one`` [1, ...], which has the values of new elements."""
        new = _Memory(one, self.count)
        both = (slice(None), *(slice(length) for length in self.shape[1:]))
        for first, last in new._blocks():
            rows = np.repeat(one, last - first, axis=0)
            if self.row:
                rows[both] = self.rows(first, last)
            new._write(first, rows)
        return new

    def in_table(self) -> Any:
        """The array as tables have it: its row; on the simulator, itself."""
        if SIMULATED:
            return np.ndarray(self.shape, self.dtype, self.bytes._ary)
        return row_of(_address(self.bytes), self.shape)


class _Tables(NamedTuple):
    """The arrays of some kernels in the GPU's memory, and the work space of each lane."""

    table: Any
    tools: Any
    memory: tuple[_Memory, ...]  # the work space, which this keeps alive


class CudaSimulator:
    """``num_envs`` environments of one problem on a GPU, with the interface of a Simulator.

    Args:
        template: a simulator of two environments, which have not begun: the sizes and first values of all
            arrays are its own, and it describes the environments.
        num_envs: number of environments, B.

    Raises:
        InvalidParameter: if they take more memory than is free; nothing has been allocated then.

    Attributes:
        observation: name -> array in the GPU's memory, [B, ...]; kernels overwrite it.
        results: those of the last step, in the GPU's memory.
        waiting: number of episodes that are over, and after which none has begun.
        continuous, metric_names, action_shape: see :class:`~schedgym.core.simulator.Simulator`.
        seeded: [B], on the host.
    """

    def __init__(self, template: Simulator, num_envs: int) -> None:
        self.template, self.num_envs = template, num_envs
        self.blocks = math.ceil(min(num_envs, MOST_LANES) / BLOCK)
        if template.fixed is not None:
            template.load(0, template.fixed)
        self._check_free(self.needs(num_envs))
        self.kernels = compiled(template.problem.name, cast(Any, template.parameters).view)
        self.memory = {id(array): _Memory(*self._one(array, is_batch)) for array, is_batch in self._arrays()}
        self.metric_names = template.metric_names
        self.continuous, self.action_shape = template.continuous, template.action_shape
        self.seeded = np.zeros(num_envs, dtype=bool)
        self.seeds = np.zeros(num_envs, dtype=np.uint64)
        self._episodes: Integers | None = np.zeros(num_envs, dtype=np.int64)
        self._seeds_there = _cuda.to_device(self.seeds)
        self._episodes_there = _cuda.to_device(np.zeros(num_envs, dtype=np.int64))
        self._outcome = _cuda.to_device(np.zeros(4, dtype=np.int64))
        self._ended = _cuda.to_device(np.zeros(num_envs, dtype=bool))
        self.results = self.make_results()
        self.waiting = 0
        self._bind()

    # Memory -----------------------------------------------------------------------------------

    @property
    def _kinds(self) -> tuple[type[Any], ...]:
        """The bundles that the kernels of a step, of a draw and of the metrics work on."""
        return self.template.environment, self.template.drawing, self.template.episode

    def _arrays(self) -> Iterator[tuple[npt.NDArray[Any], bool]]:
        """Every array of the template but for work space, once, and whether axis 0 is the environment."""
        seen = set()
        for member in (member for kind in self._kinds for member in members(kind)):
            for array in self._bundle(member) or ():
                if id(array) not in seen:
                    seen.add(id(array))
                    yield array, member.kind == ""

    def _bundle(self, member: Member) -> Any:
        """The template's bundle; None for work space, of which each lane has its own."""
        return None if member.kind == SCRATCH else self.template.bundle(member.name)

    def _one(self, array: npt.NDArray[Any], is_batch: bool) -> tuple[npt.NDArray[Any], int | None]:
        """The arguments of :class:`_Memory` for an array of the template."""
        return (array[:1], self.num_envs) if is_batch else (array, None)

    def needs(self, num_envs: int) -> int:
        """Bytes of the GPU's memory that ``num_envs`` environments take, and a copy of their results."""
        template, lanes = self.template, BLOCK * math.ceil(min(num_envs, MOST_LANES) / BLOCK)
        total = sum(self._bytes(array, is_batch, num_envs) for array, is_batch in self._arrays())
        for kind in self._kinds:
            for bundle in make_tools(kind, template.sizes):
                total += lanes * sum(array.nbytes for array in bundle or ())
        shown = sum(buffer.nbytes // 2 for buffer in template.observation.values())
        result = np.dtype(np.float64).itemsize + 4  # of Results
        return total + num_envs * (shown + 2 * result + 16)

    @staticmethod
    def _bytes(array: npt.NDArray[Any], is_batch: bool, num_envs: int) -> int:
        """Bytes that an array of the template, which has two environments, takes for ``num_envs``."""
        return array.nbytes // 2 * num_envs if is_batch else array.nbytes

    def _check_free(self, needed: int) -> None:
        context = _cuda.current_context()
        if not SIMULATED:
            # what nobody uses any more is given back late otherwise
            context.memory_manager.deallocations.clear()
        free = context.get_memory_info()[0]
        if needed > free:
            raise InvalidParameter(
                f"num_envs: {self.num_envs} environments take {needed / 2**30:.2f} GiB of the GPU's memory, "
                f"{free / 2**30:.2f} GiB are free"
            )

    def _bind(self) -> None:
        """Make tables and the views of arrays that callers get."""
        template = self.template
        self._main = self._tables(template.environment)
        self._drawing = self._tables(template.drawing) if template.source is not None else None
        self._episode = self._tables(template.episode)
        self.observation = {name: self._shown(buffer) for name, buffer in template.observation.items()}

    def _tables(self, kind: type[Any]) -> _Tables:
        """The tables of the kernels that work on the bundles of ``kind``."""
        rows: list[Any] = []
        for member in members(kind):
            bundle = self._bundle(member)
            made = None if bundle is None else [self.memory[id(array)].in_table() for array in bundle]
            rows.append((member, made))
        lanes, space, memory = self.blocks * BLOCK, [], []
        for member, bundle in zip(members(kind), make_tools(kind, self.template.sizes), strict=True):
            own = [_Memory(array[np.newaxis], lanes) for array in bundle or ()]
            memory += own
            space.append((member, [array.in_table() for array in own] if bundle is not None else None))
        static = static_length(kind(*map(self._bundle, members(kind))))
        return _Tables(_table(kind, rows, static), _table(kind, space), tuple(memory))

    def _shown(self, buffer: npt.NDArray[Any]) -> Any:
        """Return the array in the GPU's memory for ``buffer``, a view of one of the template's arrays."""
        shape, address = (self.num_envs, *buffer.shape[1:]), buffer.ctypes.data
        if buffer.size == 0:
            return _empty(shape, buffer.dtype)
        for array, _ in self._arrays():
            offset = address - array.ctypes.data
            if 0 <= offset < array.nbytes:
                return _view(self.memory[id(array)].bytes, shape, buffer.dtype, offset, buffer.strides)
        raise TypeError("an entry of the observation is no view of an array of the environment")

    def make_results(self) -> Results:
        """New arrays for the results of steps, which share ``ended``."""
        terminated, truncated, repaired = (_empty((self.num_envs,), np.bool_) for _ in range(3))
        return Results(_empty((self.num_envs,), np.float64), terminated, truncated, repaired, self._ended)

    def _reserve(self, name: str, length: int) -> None:
        """Make a dimension at least so long; arrays that grow pass through the host.

        Raises:
            InvalidParameter: if they take more memory than is free; the simulator is of no use then.
        """
        before = [array for array, _ in self._arrays()]
        self.template.reserve(**{name: length})
        pairs = list(zip(before, self._arrays(), strict=True))
        self._check_free(sum(self._bytes(*new, self.num_envs) for old, new in pairs if new[0] is not old))
        memory = {}
        for old, (array, is_batch) in pairs:
            own = self.memory[id(old)]
            memory[id(array)] = own if array is old else own.grown(self._one(array, is_batch)[0])
        self.memory = memory
        self._bind()

    @staticmethod
    def copied(array: Any) -> Any:
        """A copy of a contiguous array in the GPU's memory."""
        made = _empty(array.shape, array.dtype)
        made.copy_to_device(array)
        return made

    @staticmethod
    def taken(array: Any) -> Any:
        """An array in the GPU's memory: of another library, as it is, or a copy of a numpy array."""
        there = hasattr(array, "__cuda_array_interface__")
        return _cuda.as_cuda_array(array) if there else _cuda.to_device(array)

    # Episodes and steps -----------------------------------------------------------------------

    @property
    def episodes(self) -> Integers:
        """The number of each environment's next episode; may be changed until the next :meth:`begin`."""
        if self._episodes is None:
            self._episodes = self._episodes_there.copy_to_host()
        return self._episodes

    def seed(self, index: int, seed: int) -> None:
        """See :meth:`Simulator.seed`."""
        self.seeds[index] = root_seed(seed)
        self.episodes[index] = 0
        self.seeded[index] = True

    def take_back(self, index: int) -> None:
        """Forget given workloads: there are none."""

    def begin(self, mask: Flags) -> None:
        """Start the next episode of each environment that ``mask`` [B] names; the others stay as they are."""
        self._seeds_there.copy_to_device(self.seeds)
        self._episodes_there.copy_to_device(self.episodes)
        self._advance(SKIP, _cuda.to_device(mask), begins=True)
        self.waiting = int(np.count_nonzero(self.results.ended.copy_to_host()))

    def begin_ended(self) -> None:
        """Start the next episode of each environment whose episode is over."""
        self._advance(SKIP, self.results.ended, begins=True)
        self.waiting = 0

    def step(self, actions: Any, hold: bool = False) -> int:
        """Carry out ``actions`` [B, ...] in the GPU's memory.

        Environments whose episode is over begin one, or with ``hold`` do nothing.

        Returns the number of episodes that ended, or -(i + 1) if environment i's action is out of range, or
        with strict actions infeasible; then nothing has changed.
        """
        count = self.num_envs
        if self.template.continuous:
            actions = actions.reshape(count, actions.shape[1], math.prod(actions.shape[2:]))
        else:
            actions = actions.reshape(count, math.prod(actions.shape[1:]), 1)
        self._launch(self.kernels.take, self._main, actions)
        ended = self._advance(HOLD if hold else ACT, self.results.ended, begins=self.waiting > 0 and not hold)
        if ended >= 0:
            self.waiting = ended + (self.waiting if hold else 0)
        return ended

    def _advance(self, others: int, begins_here: Any, begins: bool) -> int:
        """Begin episodes where ``begins_here`` [B] is True (``begins``: it may be); others do ``others``.

        Returns what :meth:`step` does.
        """
        template = self.template
        grows = template.grows_by_draw
        draws = begins and self._drawing is not None
        if begins:
            self._episodes = None
        found = self._told(others != SKIP, draws, others, begins_here)
        if found[REFUSED] < self.num_envs:
            return -int(found[REFUSED]) - 1
        while grows and found[NEEDED] > template.sizes[grows]:
            self._reserve(grows, int(found[NEEDED]))
            found = self._told(False, draws, others, begins_here)
        ended = int(found[ENDED])
        while found[WAITING]:
            self._reserve(template.log, 2 * template.sizes[template.log])
            # beginning an episode, in one go or not, leaves the results of the step before as they are
            results = self.make_results() if others == SKIP else self.results
            found = self._told(False, False, RESUME, begins_here, results)
            ended += int(found[ENDED])
        return ended

    def _told(
        self, checks: bool, draws: bool, others: int, begins_here: Any, results: Results | None = None
    ) -> Integers:
        """Launch the kernels of a step; return what they told."""
        kernels, outcome, template = self.kernels, self._outcome, self.template
        outcome.copy_to_device(np.array([self.num_envs, 0, 0, 0]))
        if checks:
            self._launch(kernels.check, self._main, begins_here, outcome)
        if draws:
            places = (self._seeds_there, self._episodes_there)
            self._launch(kernels.draw, self._drawing, begins_here, *places, outcome)
        most = template.sizes[template.grows_by_draw] if template.grows_by_draw else 2**62
        given = (begins_here, others, self._episodes_there, results or self.results, outcome, most)
        self._launch(kernels.act, self._main, *given)
        return outcome.copy_to_host()

    def _launch(self, kernel: Any, tables: Any, *arguments: Any) -> None:
        with uncontracted(), np.errstate(over="ignore"):
            kernel[self.blocks, BLOCK](tables.table, tables.tools, *arguments)

    def refusal(self, index: int, what: str) -> InvalidAction:
        """See :meth:`Simulator.refusal`."""
        return self.fetch(index).refusal(0, what)

    # Results ----------------------------------------------------------------------------------

    def measure(self, mask: Flags) -> Floats:
        """See :meth:`Simulator.measure`; all on the host."""
        self._launch(self.kernels.measure, self._episode, _cuda.to_device(mask))
        template, count = self.template, self.num_envs
        written = [self.memory[id(array)].rows(0, count) for array in template.metrics]
        scalars = self.memory[id(template.state.scalars)].rows(0, count)
        return template.metric_values(written, scalars)

    def fetch(self, index: int) -> Simulator:
        """The template, with environment ``index`` as its environment 0."""
        for array, is_batch in self._arrays():
            if is_batch:
                array[:1] = self.memory[id(array)].rows(index, index + 1)
        return self.template

    def record(self, index: int) -> ScheduleRecord:
        """The schedule of environment ``index`` so far."""
        return self.fetch(index).record(0)


def _table(kind: type[Any], bundles: list[tuple[Any, list[Any] | None]], static: int = 0) -> Any:
    """A table of :func:`schedgym.core.tables.pack` in the GPU's memory; on the simulator, the bundles.

    It is that of the work space, or with ``static``, their static length, that of all other bundles.
    """
    if SIMULATED:
        return kind(*(None if arrays is None else member.bundle(*arrays) for member, arrays in bundles))
    rows: list[Any] = []
    for member, arrays in bundles:
        if (member.kind == SCRATCH) != bool(static):
            rows += arrays or [row_of(0, ())] * len(declarations(member.bundle))
    table = np.array(rows, dtype=np.int64).reshape(-1, 1 + MOST_DIMENSIONS)
    return _cuda.to_device(table_of(table, static) if static else table)
