"""Rows of columns: names, compiled and uncompiled access; and the names by which kernels are known."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from schedgym.core import columns, jit
from schedgym.core.problem import list_problems


class Token(NamedTuple):
    load: float
    quiet_times_free: float
    load_to_the_4: float


@jit.pure_kernel
def shift(tokens: Any, rows: Any) -> None:
    """Write each token, doubled, from the second place of its row on."""
    for i in range(tokens.shape[0]):
        token = columns.read(Token, tokens[i])
        both = Token(load_to_the_4=2 * token.load_to_the_4, load=2 * token.load, quiet_times_free=True)
        columns.put(rows[i], 1, both)


def test_columns_are_fields() -> None:
    assert columns.names_of(Token, Token)[:4] == ("load", "quiet * free", "load^4", "load")
    place = columns.places(Token)
    tokens = np.arange(8, dtype=np.float32).reshape(2, 4)
    rows = np.full((2, 5), -1.0)
    shift(tokens, rows)
    assert rows.tolist() == [[-1.0, 0.0, 1.0, 4.0, -1.0], [-1.0, 8.0, 1.0, 12.0, -1.0]]
    expected = np.full(5, -1.0)
    columns._put(expected, 1, columns._read(Token, tokens[1])._replace(quiet_times_free=True))
    assert (rows[1, 1:4] == [2 * expected[1], 1.0, 2 * expected[1 + place.load_to_the_4]]).all()


def test_a_row_must_be_contiguous() -> None:
    with pytest.raises(numba.core.errors.TypingError, match="a row must be a contiguous array"):
        shift(np.ones((2, 8), dtype=np.float32)[:, ::2], np.zeros((2, 5)))


def test_each_kernel_has_a_name_of_its_own() -> None:
    """By its module and name the cache knows it: one that has none is not kept."""
    for problem in list_problems().values():
        for name in ("dynamics", "workload", "metrics"):
            problem.module(name)
    gc.unfreeze()  # else what a test before this one has frozen is not found
    # by its type: isinstance looks into weak references, of which some lead nowhere
    kernels = [made for made in gc.get_objects() if issubclass(type(made), jit._Kernel)]
    kept = [made for made in kernels if isinstance(made._cache, jit.KernelCache)]
    names = {(made.py_func.__module__, made.py_func.__qualname__) for made in kept}
    assert len(names) == len(kept) > 50
    assert not isinstance(jit.kernel(lambda x: x)._cache, jit.KernelCache)
