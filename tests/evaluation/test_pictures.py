"""Panels: the axes that follow from their values, where series stand, and both libraries that draw them."""

import numpy as np
import pytest

from schedgym.evaluation.canvas import draw_panels
from schedgym.evaluation.figures import figure_of
from schedgym.evaluation.pictures import MARKS, Line, Panel, Series, appearance, axis_of, places, swept_axis
from tests.tables import table


@pytest.mark.parametrize(
    ("scale", "values", "found", "ticks"),
    table(__file__, "test_axes_follow_from_their_values"),
)
def test_axes_follow_from_their_values(scale, values, found, ticks):
    axis = axis_of(Panel("x", "y", [Series("a", range(len(values)), values)], y_scale=scale), "y")
    assert axis.scale == found and list(axis.texts) == ticks
    low, high = axis.limits
    assert low is None or low <= min(values)
    assert high is None or high >= max(values)


def test_what_is_far_off_stretches_no_axis():
    """Neither the low end of an interval, nor a bound of 0, nor an episode far below all means."""
    series = [
        Series("a", [0, 1], [2.0, 90.0], [1e-9, 80.0], [3.0, 100.0]),
        Series("bound", [0, 1], [0.0, 1.0], bound=True),
        Series("a", [0, 1, 1], [1e-6, 1e-6, 500.0], kind="dots"),
    ]
    low, high = axis_of(Panel("x", "y", series, y_scale="value"), "y").limits
    assert 0.1 < low < 0.2 and 500 < high < 1000


def test_places_on_the_x_axis():
    panel = Panel("x", "y", [Series(k, [0, 1], [1, 2]) for k in "abc"], apart=True)
    stands = np.array([places(panel, k) for k in range(3)])
    assert stands[1].tolist() == [0.0, 1.0] and np.allclose(stands[2] - stands[1], stands[1] - stands[0])
    assert 0 < stands[2, 0] < 0.1  # beside each other, but nearer to their own value than to another
    bars = Panel("x", "y", [Series("a", ["v"], [1]), Series("b", ["u", "v"], [1, 2])], kind="bars")
    assert [places(bars, k).tolist() for k in range(2)] == [[0.8], [0.2, 1.2]]
    axis = axis_of(bars, "x")
    assert (list(axis.ticks), list(axis.texts), axis.limits) == ([0, 1], ["u", "v"], (-0.5, 1.5))


def test_an_infinite_value_has_no_place_on_an_axis_of_numbers():
    axes = [swept_axis(values) for values in ([1, 2, 8], [1, 2], [1, 2.0, np.inf], [True, 2])]
    assert axes == ["log", "linear", "category", "category"]


def test_every_series_is_told_by_its_mark_or_its_colour():
    marks = {(number % 14, appearance(number)[0]) for number in range(14 * len(MARKS))}
    assert len(marks) == 14 * len(MARKS)


def test_both_libraries_draw_the_same():
    series = [Series("a", [2.0], [0], [1.0], [4.0]), Series("b", [50.0], [1], [40.0], [70.0])]
    line, rows = Line("x", 3.0, bound="bound"), ["a", "b"]
    panel = Panel("x", "", series, kind="means", x_scale="value", rows=rows, lines=[line])
    axes, figure = draw_panels([panel], 8, 3).axes[0], figure_of(panel)
    x, y = figure["layout"]["xaxis"], figure["layout"]["yaxis"]
    assert axes.get_xscale() == x["type"] == "log" and np.allclose(np.log10(axes.get_xlim()), x["range"])
    assert axes.get_ylim() == tuple(y["range"]) == (1.5, -0.5)
    assert [text.get_text() for text in axes.get_yticklabels()] == [t.strip() for t in y["ticktext"]] == rows
    assert figure["layout"]["shapes"][0]["x0"] == axes.lines[0].get_xdata()[0] == 3.0
    error = figure["data"][1]["error_x"]
    assert (error["arrayminus"], error["array"]) == ([10.0], [20.0])
    assert axes.collections[1].get_segments()[0][:, 0].tolist() == [40.0, 70.0]
    panel = Panel("x", "y", [Series("a", [1, 2], [2.0, 300.0], [1.0, 30.0], [4.0, 600.0])])
    band, curve = figure_of(panel)["data"]
    (axes,) = draw_panels([panel], 8, 3).axes
    assert axes.lines[0].get_ydata().tolist() == curve["y"] == [2.0, 300.0]
    assert set(axes.collections[0].get_paths()[0].vertices[:, 1]) == set(band["y"])
