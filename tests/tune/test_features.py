# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a model sees of points: counts tell points of one bound apart, and are carried on to those without."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_times import landscape

from gpuprof.results import Bound, Counter
from gpuprof.tuning.surrogate import completed, predict
from gpuprof.tuning.work import work_of


def counted(one, bounds, **counts):
    counters = {name: Counter(value, "", "sim") for name, value in counts.items()}
    held = {part: Bound(us, "made up", "made up") for part, us in bounds.items()}
    measurement = replace(one.measurement, executor_counters=counters, bounds=held, bound_by="dram")
    return replace(one, measurement=measurement)


@pytest.fixture(scope="module")
def points():
    return landscape(1024, 0).points[:4]


def test_points_of_one_bound_differ_in_what_the_other_parts_have_to_do(points):
    bounds = {"dram": 10.0, "l1": 2.0}
    same = {"global_load_sectors": 4096, "global_load_requests": 1024, "shared_load_requests": 1024}
    alike = counted(points[0], bounds, **same, shared_load_wavefronts=1024)
    parts = counted(points[0], bounds | {"l1": 8.0}, **same, shared_load_wavefronts=1024)
    conflicts = counted(points[0], bounds, **same, shared_load_wavefronts=8192)
    pipes = counted(points[0], bounds, **same, shared_load_wavefronts=1024, pipe_alu_instructions=500)
    rows = work_of([alike, parts, conflicts, pipes, alike])
    assert np.isfinite(rows).all()
    assert (rows[0] == rows[4]).all()
    changed = [(row != rows[0]).sum() for row in rows[1:4]]
    assert all(changed)
    # What one part takes shows in that part alone, its least time and its time without caches.
    assert changed[0] == 2


def test_a_point_that_was_not_counted_has_no_row_of_its_own(points):
    rows = work_of([points[0], counted(points[1], {"dram": 3.0}, global_load_requests=7)])
    assert np.isnan(rows[0]).all()
    assert np.isfinite(rows[1]).all()
    assert work_of(points).shape == (4, 0)


def test_columns_are_completed_smoothly_and_what_is_known_stays():
    at = np.linspace(-2, 2, 41)[:, None]
    columns = np.column_stack([np.sin(at[:, 0]), at[:, 0] ** 2])
    some = columns.copy()
    some[2::3] = np.nan
    found = completed(at, some)
    known = ~np.isnan(some).any(axis=1)
    assert (found[known] == columns[known]).all()
    assert np.abs(found - columns).max() < 0.03
    assert np.isnan(completed(at, np.full((41, 2), np.nan))).all()


def test_a_sum_of_single_features_is_learnt_from_few_points():
    # Eight features of two values: what each does adds up, and 24 of 256 points tell it.
    grid = np.array(np.meshgrid(*[[-1.0, 1.0]] * 8)).reshape(8, -1).T
    values = grid @ np.array([0.4, -0.3, 0.2, 0.1, 0.05, -0.05, 0.02, 0.0])
    known = np.random.default_rng(1).permutation(len(grid))[:24].tolist()
    rest = [index for index in range(len(grid)) if index not in known]
    error = predict(grid, np.zeros(len(grid)), known, values[known]).mean[rest] - values[rest]
    assert np.sqrt(np.mean(error**2)) < 0.25 * values.std()
