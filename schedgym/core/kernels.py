"""The kernels of a problem, made from the functions that it writes for one environment.

A kernel is made in the module that asks for it by ``__name__``, and under a name of its own: by these two the
cache on disk knows it (:mod:`schedgym.core.kernel_cache`), and the files which that module imports are those
that the kernel is made of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from schedgym.core.arrays import SCRATCH, SHARED
from schedgym.core.jit import COMPILED, helper, pure_kernel
from schedgym.core.scorer import Form, Given, Work, act, columns_each, play_each, score_each
from schedgym.core.stepping import Exchange, advance_each, decide_each, draw_each, measure_each
from schedgym.core.tables import accessor

F = TypeVar("F", bound=Callable[..., Any])


def made_kernel(module: str, name: str, function: F) -> F:
    """A pure kernel of a function that another one has made.

    Args:
        module: name of the module whose kernel it is.
        name: its name, which no other kernel of the module has.
        function: the function.
    """
    function.__module__, function.__name__, function.__qualname__ = module, name, name
    if COMPILED:  # uncompiled, errors show the lines of the function where they are
        file = getattr(sys.modules[module], "__file__", None) or f"<{module}>"
        function.__code__ = function.__code__.replace(co_filename=file)
    return pure_kernel(function)


def draw_kernel(module: str, drawing: type[Any], draw_one: Any) -> Any:
    """The kernel that draws workloads; see :func:`~schedgym.core.stepping.draw_each`."""
    access = accessor(drawing)

    def draw(table: Any, tools: Any, mask: Any, seeds: Any, episodes: Any) -> int:
        return draw_each(access, draw_one, table, tools, mask, seeds, episodes)

    return made_kernel(module, "draw", draw)


def measure_kernel(module: str, episode: type[Any], measure_one: Any) -> Any:
    """The kernel that writes the metrics of finished episodes; see ``measure_each`` in the same module."""
    access = accessor(episode)

    def measure(table: Any, tools: Any, mask: Any) -> None:
        measure_each(access, measure_one, table, tools, mask)

    return made_kernel(module, "measure", measure)


def serves_all(simulator: Any) -> bool:
    """Return True: for the functions of a view that serve every simulator."""
    return True


class ViewDynamics(NamedTuple):
    """The functions of an action view; see :mod:`schedgym.core.stepping`.

    Attributes:
        view: name of the view.
        decode: of the view.
        decide: of the view.
        serves: return True for the simulators (in this view) that these functions serve. A view may have
            several, so that a simulator compiles no code that it never uses; the last ones serve all.
    """

    view: str
    decode: Any
    decide: Any
    serves: Callable[[Any], bool] = serves_all

    @property
    def name(self) -> str:
        """A name that no other functions of the problem's views have."""
        return f"{self.view}.{self.decide.__name__}"


class Dynamics:
    """The kernels of steps.

    Args:
        module: name of the module whose kernels they are.
        environment: the named tuple of bundles that a step reads and writes.
        begin, advance, observe: the problem's functions; see :mod:`schedgym.core.stepping`.
        views: the functions of the action views.

    Attributes:
        access: accessor of the environment.
        module: as given.
        step: the kernel that carries out decisions.
        decide: functions of a view -> the kernel that takes its actions.
    """

    def __init__(
        self,
        module: str,
        environment: type[Any],
        begin: Any,
        advance: Any,
        observe: Any,
        views: Sequence[ViewDynamics],
    ) -> None:
        self.module, self.access = module, accessor(environment)
        access = self.access
        self.advance, self.observe, self.views = advance, observe, tuple(views)

        def step(table: Any, tools: Any, command: Any) -> int:
            return advance_each(access, begin, advance, observe, table, tools, command)

        self.step = made_kernel(module, "step", step)
        self.decide = {own: self._decide(own) for own in self.views}

    def _decide(self, own: ViewDynamics) -> Any:
        access, decode, decide = self.access, own.decode, own.decide

        def take(table: Any, tools: Any, command: Any) -> int:
            return decide_each(access, decode, decide, table, tools, command)

        return made_kernel(self.module, own.name, take)

    def functions_of(self, simulator: Any) -> ViewDynamics:
        """The first functions of a simulator's view that serve it."""
        view = simulator.interface.view
        return next(own for own in self.views if own.view == view and own.serves(simulator))

    def general(self, view: str) -> ViewDynamics:
        """The functions of a view that serve every simulator."""
        return [own for own in self.views if own.view == view][-1]


def _acting_bundles(seen: Any, memo: Any) -> Any:
    """The bundles of a scorer in one environment."""
    make: Any = NamedTuple  # type checkers know it only with types that are written out
    made = make(
        "Acting",
        [
            ("form", Annotated[Form, SHARED]),
            ("seen", seen),
            ("given", Given),
            ("exchange", Exchange),
            ("memo", Annotated[memo, SCRATCH]),
            ("work", Annotated[Work, SCRATCH]),
        ],
    )
    made.__module__ = seen.__module__
    return made


class Scoring:
    """The kernels of scorers; see :mod:`schedgym.core.scorer`.

    Args:
        dynamics: of the problem; the kernels are of the same module.
        columns: the problem's module ``columns``: its Seen, Memo, ``prepare``, ``token_columns`` and
            ``pair_columns``.
        played: the action views in which scorers play whole episodes compiled.

    Attributes:
        acting: the named tuple of bundles that a scorer reads and writes in one environment.
        score, columns: kernels; see :func:`~schedgym.core.scorer.score_each` and ``columns_each``.
        play: functions of a view -> the kernel that plays whole episodes
            (:func:`~schedgym.core.scorer.play_each`).
    """

    def __init__(self, dynamics: Dynamics, columns: Any, played: Collection[str]) -> None:
        self.acting: Any = _acting_bundles(columns.Seen, columns.Memo)
        self.played, self._dynamics = tuple(played), dynamics
        regard, module = accessor(self.acting), dynamics.module
        prepare, token_columns, pair_columns = columns.prepare, columns.token_columns, columns.pair_columns

        def score(table: Any, tools: Any, count: int) -> None:
            score_each(regard, prepare, token_columns, pair_columns, table, tools, count)

        def write(table: Any, tools: Any, rows: Any) -> None:
            columns_each(regard, prepare, token_columns, pair_columns, table, tools, rows)

        @helper
        def choose(table: Any, tools: Any, b: int) -> Any:
            return act(regard(table, tools, b), prepare, token_columns, pair_columns)

        self.score = made_kernel(module, "score", score)
        self.columns = made_kernel(module, "columns", write)
        views = [own for own in dynamics.views if own.view in played]
        self.play = {own: self._play(own, choose) for own in views}

    def _play(self, own: ViewDynamics, choose: Any) -> Any:
        access, advance, observe = self._dynamics.access, self._dynamics.advance, self._dynamics.observe
        decode, decide = own.decode, own.decide

        def play(tables: Any, played: Any) -> int:
            return play_each(access, decode, decide, advance, observe, choose, tables, played)

        return made_kernel(self._dynamics.module, f"play.{own.name}", play)

    def play_kernel(self, simulator: Any) -> Any:
        """The kernel that plays whole episodes of a simulator, in one of the views ``played``."""
        return self.play[self._dynamics.functions_of(simulator)]
