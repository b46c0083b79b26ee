import numpy as np
import pytest
from audit_cases import QUICK
from scipy import sparse
from sklearn import metrics

from classgap.audit import Audit
from classgap.audit.metrics.confusion_matrix import DENSE_CLASSES, confusion_matrix

RNG = np.random.default_rng(0)
TARGETS, PREDICTIONS = RNG.integers(0, 6, 300), RNG.integers(0, 8, 300)  # classes 6 and 7 are unseen
PREDICTIONS[PREDICTIONS == 2] = 3  # class 2 is never predicted


@pytest.fixture(scope="module")
def audit():
    return Audit.from_predictions(targets=TARGETS, predictions=PREDICTIONS, settings=QUICK)


@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
@pytest.mark.parametrize("as_sparse", [None, False, True])
def test_it_is_that_of_scikit_learn(audit, normalize, as_sparse):
    got = audit.confusion_matrix(normalize=normalize, sparse=as_sparse)
    assert sparse.issparse(got) == bool(as_sparse)
    expected = metrics.confusion_matrix(TARGETS, PREDICTIONS, labels=range(8), normalize=normalize)
    dense = got.toarray() if as_sparse else got
    assert dense.dtype == (np.int64 if normalize is None else np.float64)
    np.testing.assert_allclose(dense, expected)


def test_the_diagonal_holds_the_accuracies(audit):
    diagonal = np.diag(audit.confusion_matrix("true"))
    assert diagonal[:6].tolist() == pytest.approx([entry.accuracy for entry in audit.classes[:6]])


def test_many_classes_are_sparse():
    labels = np.array([0, 5, 5])
    assert sparse.issparse(confusion_matrix(labels, labels, DENSE_CLASSES + 1))
    assert isinstance(confusion_matrix(labels, labels, DENSE_CLASSES), np.ndarray)
    large = confusion_matrix(labels, labels[::-1], 1_000_000)
    assert (large.format, large.shape, large.sum()) == ("csr", (1_000_000, 1_000_000), 3)


def test_another_normalization_is_rejected(audit):
    with pytest.raises(ValueError, match=r"normalize must be .* got 'rows'"):
        audit.confusion_matrix("rows")
