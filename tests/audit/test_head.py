"""The head's rows against a loop over pairs."""

import itertools

import numpy as np
import pytest
import torch

from classgap.audit.geometry.head import head_geometry


def test_angles_against_a_loop():
    weight = np.random.default_rng(0).normal(size=(7, 5))
    cosines = {
        (i, j): weight[i] @ weight[j] / np.linalg.norm(weight[i]) / np.linalg.norm(weight[j])
        for i, j in itertools.combinations(range(7), 2)
    }
    got = head_geometry(torch.from_numpy(weight))
    assert got.angle == pytest.approx(np.degrees(np.arccos(max(cosines.values()))))
    assert got.angle_pair == max(cosines, key=cosines.get)
    assert got.mean_cosine == pytest.approx(np.mean(list(cosines.values())))
    assert got.std_cosine == pytest.approx(np.std(list(cosines.values())))
    np.testing.assert_allclose(got.weight_norm_K, np.linalg.norm(weight, axis=1))


def test_simplex_is_an_equiangular_tight_frame():
    simplex = torch.eye(4) - 0.25
    got = head_geometry(simplex)
    assert got.mean_cosine == pytest.approx(-1 / 3)
    assert got.std_cosine == pytest.approx(0, abs=1e-6)
    assert got.angle == pytest.approx(np.degrees(np.arccos(-1 / 3)))


def test_nearly_equal_rows_have_a_small_angle_not_zero():
    got = head_geometry(torch.tensor([[1.0, 0.0], [1.0, 1e-6], [-1.0, 0.0]], dtype=torch.float64))
    assert got.angle == pytest.approx(np.degrees(1e-6), rel=1e-6)


def test_one_row_and_a_row_of_zeros():
    assert head_geometry(torch.ones(1, 3)).angle is None
    assert head_geometry(torch.tensor([[0.0, 0.0], [1.0, 0.0]])).angle == pytest.approx(90)
    assert head_geometry(torch.tensor([[1.0, 0.0], [-2.0, 0.0]])).angle == pytest.approx(180)
