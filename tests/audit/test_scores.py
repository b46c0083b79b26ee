"""Per-sample scores against a loop over samples."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.scores import row_chunks, score_samples


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_margins_and_confidence_agree_with_a_loop(kind):
    rng = np.random.default_rng(1)
    logits = torch.from_numpy(rng.normal(size=(60, 5)) * 3).to(kind)
    targets = rng.integers(0, 5, 60)
    scores = score_samples(logits, targets)
    for i, (z, y) in enumerate(zip(logits.double().numpy(), targets, strict=True)):
        p, others = softmax(z), [c for c in range(5) if c != y]
        assert scores.confidence_N[i] == pytest.approx(p.max(), rel=1e-4)
        assert scores.output_margin_N[i] == pytest.approx(p[y] - p[others].max(), abs=1e-4)
        assert scores.logit_margin_N[i] == pytest.approx(z[y] - z[others].max(), abs=1e-4)
        assert scores.rank_N[i] == (z[others] > z[y]).sum()


@pytest.mark.parametrize("classes", [1, 2, 7])
def test_predictions_and_ranks_order_equal_scores_by_class(classes):
    rng = np.random.default_rng(2)
    logits = torch.from_numpy(rng.integers(0, 3, (500, classes))).half()  # most rows have ties
    targets = rng.integers(0, classes, 500)
    scores = score_samples(logits, targets)
    order = np.argsort(-logits.float().numpy(), axis=1, kind="stable")
    np.testing.assert_array_equal(scores.predictions_N, order[:, 0])
    np.testing.assert_array_equal(scores.rank_N, (order == targets[:, None]).argmax(axis=1))
    assert scores.limits == (float(logits.min()), float(logits.max()))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2e100])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_scores_that_cannot_be_squared_are_rejected_wherever_they_are(value, column):
    logits = np.random.default_rng(3).normal(size=(5, 3))
    logits[3, column] = value
    with pytest.raises(ValueError, match="finite, but row 3" if abs(value) != 2e100 else "1e.100"):
        Predictions.from_arrays([0, 1, 2, 1, 0], logits=logits)


def test_huge_logits_stay_finite():
    scores = score_samples(torch.tensor([[1e4, -1e4], [-1e4, 1e4]]), np.array([0, 0]))
    assert scores.output_margin_N.tolist() == [1.0, -1.0]
    assert scores.logit_margin_N.tolist() == [2e4, -2e4]


def test_single_class_has_no_margin():
    scores = score_samples(torch.zeros(2, 1), np.array([0, 0]))
    assert np.isnan(scores.output_margin_N).all()
    assert scores.confidence_N.tolist() == [1.0, 1.0]


def test_chunks_cover_every_row_once():
    covered = [row for part in row_chunks(1003, 7, entries=100) for row in range(part.start, part.stop)]
    assert covered == list(range(1003))
