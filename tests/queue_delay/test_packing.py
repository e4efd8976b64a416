"""Offline packing: small cases by hand, and properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgym import errors
from schedgym.baselines.queue_delay.packing import PACKING_RULES, pack
from tests.tables import table

# two complementary pairs and a filler: first fit in the given order needs three bins
ITEMS = [(0.5, 0.1), (0.5, 0.1), (0.1, 0.8), (0.1, 0.8), (0.3, 0.1)]


@pytest.mark.parametrize(("rule", "size", "bins"), table(__file__, "test_small_cases"))
def test_small_cases(rule, size, bins):
    packing = pack(ITEMS, rule=rule, size=size)
    assert packing.bin.tolist() == bins
    assert packing.bins == max(bins) + 1


def literal(items, rule, p):
    """Section III-A word by word: bins of free capacities; best fit leaves least, worst fit most."""

    def size(vector):
        return max(vector) if p == math.inf else sum(x**p for x in vector)

    free, chosen = [], {}
    order = sorted(range(len(items)), key=lambda i: -size(items[i])) if rule[-1] == "d" else range(len(items))
    for i in order:
        left = {j: [f - d for f, d in zip(bin, items[i], strict=True)] for j, bin in enumerate(free)}
        left = {j: rest for j, rest in left.items() if min(rest) >= -1e-9}
        if not left:
            left = {len(free): [1.0 - d for d in items[i]]}
            free.append(None)
        sign = {"f": 0, "b": 1, "w": -1}[rule[0]]
        chosen[i] = min(left, key=lambda j: (sign * size(left[j]), j))
        free[chosen[i]] = left[chosen[i]]
    return [chosen[i] for i in range(len(items))]


@pytest.mark.parametrize("p", [2, 3, math.inf])
@pytest.mark.parametrize("rule", ["ff", "bf", "wf", "ffd", "bfd"])
def test_packings_are_those_of_the_rule_word_by_word(rule, p):
    rng = np.random.default_rng(7)
    for _ in range(60):
        items = rng.integers(0, 65, (rng.integers(1, 25), 2)) / 128  # exact: sums, squares and cubes, too
        assert pack(items, rule=rule, p=p).bin.tolist() == literal(items.tolist(), rule, p)


def test_the_bin_centric_rule_takes_other_norms():
    """The first item would leave (.8, .1), the second (.6, .55); they do not fit together."""
    items = [(0.2, 0.9), (0.4, 0.45)]
    assert pack(items, rule="bin-centric").bin.tolist() == [0, 1]
    assert pack(items, rule="bin-centric", p=math.inf).bin.tolist() == [1, 0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=25),
    st.sampled_from(PACKING_RULES),
    st.integers(0, 2**32),
)
def test_properties(items, rule, seed):
    size = "dot" if rule == "bin-centric" and seed % 2 else "norm"
    packing = pack(items, rule=rule, size=size, rng=np.random.default_rng(seed))
    table = np.array(items)
    for j in range(packing.bins):
        load = table[packing.bin == j].sum(axis=0)
        assert (load <= 1 + 1e-7).all()
        assert packing.free[j] == pytest.approx(1 - load, abs=1e-9)
    assert sorted(set(packing.bin.tolist())) == list(range(packing.bins))
    assert packing.bins >= np.ceil(table.sum(axis=0).max() - 1e-6)
    if rule in ("ff", "bf", "wf", "rf"):  # any-fit: the item that opened a bin fitted none before it
        for j in range(packing.bins):
            opener = table[np.flatnonzero(packing.bin == j)[0]]
            assert not (opener <= packing.free[:j] + 1e-9).all(axis=1).any()


@pytest.mark.parametrize(("arguments", "error", "match"), table(__file__, "test_errors"))
def test_errors(arguments, error, match):
    with pytest.raises(getattr(errors, error), match=match):
        pack(**arguments)
