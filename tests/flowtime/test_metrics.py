"""Metrics of records that name what is not there; all others: tests/test_all_records.py."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from schedgym.errors import InvalidSchedule
from schedgym.problems.flowtime.metrics import metrics
from tests.flowtime.schedules import example


def test_metrics_refuse_indices_out_of_range() -> None:
    record = example()
    for name, bad in (("job", 2), ("server", 2), ("job", -1)):
        with pytest.raises(InvalidSchedule, match=name):
            metrics(dataclasses.replace(record, **{name: np.array([0, bad])}))
