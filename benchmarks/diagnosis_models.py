"""Data and models of the constructed problems in ``diagnosis_problems.py``.

Gaussian classes have equidistant means and one covariance, so every class is equally hard until a construction changes
one of them. The digits of scikit-learn are real data with clean labels, but their classes are not equally hard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Distance between two means in standard deviations, at which a model with 200 training samples per class is right on
# 85 to 95 % of the test samples: enough errors to see a gap, enough correct samples to lose.
SEPARATION = {"logreg": 4.6, "lda": 4.6, "nb": 4.6, "forest": 6.0, "mlp": 4.8, "mlp-long": 5.2, "knn": 5.6}
REPEATS = 3  # naive Bayes counts every feature this often, which makes it over-confident


@dataclass(frozen=True)
class Samples:
    """Training and test samples; ``means_KD`` is None for real data."""

    num_classes: int
    train_ND: Floats
    train_targets: Integers
    test_ND: Floats
    test_targets: Integers
    means_KD: Floats | None = None

    def keep_train(self, kept: NDArray[Any]) -> Samples:
        """Keep some of the training samples (mask or indices)."""
        return replace(self, train_ND=self.train_ND[kept], train_targets=self.train_targets[kept])


@dataclass(frozen=True)
class Outputs:
    """Scores and features of a fitted model; the head is None for models without one."""

    test_logits: Floats
    test_features: Floats
    train_logits: Floats
    train_features: Floats
    head: tuple[Floats, Floats] | None = None
    probabilistic: bool = False  # logits are log-probabilities

    def with_head(self, weight_KD: Floats, bias_K: Floats) -> Outputs:
        """Replace the head and compute the scores again."""
        return replace(
            self,
            test_logits=self.test_features @ weight_KD.T + bias_K,
            train_logits=self.train_features @ weight_KD.T + bias_K,
            head=(weight_KD, bias_K),
        )

    def with_offset(self, offset_K: Floats) -> Outputs:
        """Add a constant to the score of each class."""
        if self.head is not None:
            return self.with_head(self.head[0], self.head[1] + offset_K)
        return replace(
            self,
            test_logits=_log_normalize(self.test_logits + offset_K),
            train_logits=_log_normalize(self.train_logits + offset_K),
        )


def draw_gaussian(
    num_classes: int,
    separation: float,
    train_counts: int | Integers,
    test_each: int,
    rng: np.random.Generator,
    correlated: bool = False,
) -> Samples:
    """Draw Gaussian classes with equidistant means.

    ``correlated`` maps all samples by one random matrix. The classes stay equally hard for models that are invariant to
    linear maps, but features differ in scale and depend on each other.
    """
    width = max(32, num_classes + 6)
    directions_DD, _ = np.linalg.qr(rng.normal(size=(width, width)))
    means_KD = separation / np.sqrt(2) * directions_DD[:num_classes]
    train_targets = np.repeat(np.arange(num_classes), train_counts)
    test_targets = np.repeat(np.arange(num_classes), test_each)
    train_ND = means_KD[train_targets] + rng.normal(size=(len(train_targets), width))
    test_ND = means_KD[test_targets] + rng.normal(size=(len(test_targets), width))
    if correlated:
        left_DD, _ = np.linalg.qr(rng.normal(size=(width, width)))
        mixing_DD = left_DD * np.geomspace(0.5, 2.0, width)
        train_ND, test_ND, means_KD = train_ND @ mixing_DD, test_ND @ mixing_DD, means_KD @ mixing_DD
    return Samples(num_classes, train_ND, train_targets, test_ND, test_targets, means_KD)


def draw_digits(rng: np.random.Generator) -> Samples:
    """Split the digits of scikit-learn into random halves, about 90 samples per class each."""
    images_ND, targets = load_digits(return_X_y=True)
    order = rng.permutation(len(targets))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    return Samples(10, images_ND[train] / 16, targets[train], images_ND[test] / 16, targets[test])


def fit(model: str, samples: Samples, seed: int, **options: Any) -> Outputs:
    """Fit a model and return its outputs on both sets; ``options`` go to the model."""
    if model in ("mlp", "mlp-long"):
        long = {"epochs": 150, "width": 128, "weight_decay": 0.0} if model == "mlp-long" else {}
        return _fit_network(samples, seed, **{**long, **options})
    if model in ("logreg", "lda"):
        return _fit_linear(model, samples, **options)
    return _fit_probabilistic(model, samples, seed, **options)


def _fit_linear(model: str, samples: Samples, **options: Any) -> Outputs:
    fitted = LinearDiscriminantAnalysis() if model == "lda" else LogisticRegression(max_iter=2000, **options)
    fitted.fit(samples.train_ND, samples.train_targets)
    empty = Outputs(samples.test_ND, samples.test_ND, samples.train_ND, samples.train_ND)
    return empty.with_head(fitted.coef_, fitted.intercept_)


def _fit_probabilistic(
    model: str, samples: Samples, seed: int, repeats: int = REPEATS, min_samples_leaf: int = 2
) -> Outputs:
    columns = np.tile(np.arange(samples.train_ND.shape[1]), repeats if model == "nb" else 1)
    fitted = {
        "nb": GaussianNB(var_smoothing=1e-3),
        "forest": RandomForestClassifier(100, min_samples_leaf=min_samples_leaf, random_state=seed, n_jobs=1),
        "knn": KNeighborsClassifier(15),
    }[model].fit(samples.train_ND[:, columns], samples.train_targets)

    def log_probabilities(inputs_ND: Floats) -> Floats:
        if model == "nb":
            return fitted.predict_log_proba(inputs_ND[:, columns])
        return _log_normalize(np.log(np.maximum(fitted.predict_proba(inputs_ND), 1e-3)))

    return Outputs(
        log_probabilities(samples.test_ND),
        samples.test_ND,
        log_probabilities(samples.train_ND),
        samples.train_ND,
        probabilistic=True,
    )


def _fit_network(
    samples: Samples,
    seed: int,
    width: int = 64,
    epochs: int = 40,
    learning_rate: float = 0.1,
    weight_decay: float = 1e-4,
    batch_size: int = 64,
) -> Outputs:
    """Train a network with one hidden layer by SGD; its features are the hidden activations."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        hidden = nn.Sequential(nn.Linear(samples.train_ND.shape[1], width), nn.ReLU())
        head = nn.Linear(width, samples.num_classes)
        network = nn.Sequential(hidden, head)
        inputs, targets = torch.tensor(samples.train_ND).float(), torch.tensor(samples.train_targets)
        optimizer = torch.optim.SGD(network.parameters(), learning_rate, momentum=0.9, weight_decay=weight_decay)
        steps = epochs * -(-len(inputs) // batch_size)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=steps)
        for _ in range(epochs):
            for batch in torch.randperm(len(inputs)).split(batch_size):
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(inputs[batch]), targets[batch]).backward()
                optimizer.step()
                schedule.step()
        with torch.no_grad():
            test_NF, train_NF = (
                hidden(torch.tensor(inputs_ND).float()).double().numpy()
                for inputs_ND in (samples.test_ND, samples.train_ND)
            )
            weight, bias = head.weight.double().numpy(), head.bias.double().numpy()
    return Outputs(test_NF, test_NF, train_NF, train_NF).with_head(weight, bias)


def _log_normalize(scores_NK: Floats) -> Floats:
    return scores_NK - np.logaddexp.reduce(scores_NK, axis=1, keepdims=True)
