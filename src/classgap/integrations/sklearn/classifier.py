"""``GapClassifier``: the losses of classgap as a scikit-learn classifier."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor

from classgap.integrations.sklearn.networks import build_loss, build_model
from classgap.integrations.sklearn.solvers import Problem, fit_adam, fit_lbfgs
from classgap.losses import InvalidBatchError

MODELS = ("linear", "mlp")
SOLVERS = ("auto", "lbfgs", "adam")
MAX_BATCH_SIZE, MIN_BATCHES = 256, 4  # of batch_size="auto"
MAX_ITERATIONS = 100  # of max_iter=None with L-BFGS, as in LogisticRegression
STEPS, MIN_EPOCHS, MAX_EPOCHS = 1500, 20, 100  # of max_iter=None with Adam


class GapClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear or multilayer perceptron classifier trained with a loss of classgap.

    It minimizes the weighted mean of the loss over the samples plus an L2 penalty on the weights W (not the biases):

        Σ_i w_i ℓ(x_i, y_i) / Σ_i w_i  +  alpha ‖W‖² / (2 Σ_i w_i)

    so ``GapClassifier("erm")`` equals ``LogisticRegression(C=1 / alpha)``. A linear model has no features of its own,
    and terms that pull features together have no effect: "mr2" then keeps only its logit margins, as in the linear
    probes of the paper, and "elm" is logit adjustment. Scale the inputs as for other linear models and perceptrons.

    Args:
        method: name of a loss, with options as on the command line: "mr2", "elm:strength=0.1", "mr2+logit-adjustment";
            ``classgap methods`` lists all. Methods that do more than replace the loss (stages, steps, post-hoc changes)
            need ``classgap train``.
        model: "linear" or "mlp".
        hidden_layer_sizes: width of each hidden layer of an "mlp". The features are the output of the last one.
        alpha: strength of the L2 penalty, divided by the sum of the sample weights.
        solver: "lbfgs" uses all samples in each iteration and needs a loss whose terms depend on one sample each;
            "adam" uses mini-batches. "auto" is "lbfgs" for linear models where the loss permits, "adam" otherwise.
        max_iter: maximum number of iterations ("lbfgs"), or number of epochs ("adam"). ``None`` is 100 iterations, or
            the epochs of 1,500 mini-batches, between 20 and 100.
        tol: "lbfgs" stops when no entry of the gradient is larger than this in absolute value.
        batch_size: samples per mini-batch of "adam". "auto" is 256, or a quarter of the samples if these are fewer.
        learning_rate_init: initial learning rate of "adam"; it decays to 0 on a cosine schedule.
        random_state: seed of initial weights and shuffles. "lbfgs" on a linear model uses no random numbers.

    Attributes:
        classes_: class labels.
        model_: trained ``torch.nn.Sequential``, from inputs to logits.
        loss_: the loss with its state, such as class margins.
        n_iter_: iterations or epochs.
        n_features_in_: number of inputs.
        feature_names_in_: names of the inputs, if ``X`` has them.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GapClassifier("mr2").fit(X[:1000] / 16, y[:1000])
    >>> model.score(X[1000:] / 16, y[1000:]) > 0.9
    True
    >>> model.loss_.margins().round(decimals=2)[:3]
    tensor([0.9900, 1.0300, 1.0000], dtype=torch.float64)
    """

    def __init__(
        self,
        method: str = "mr2",
        *,
        model: str = "linear",
        hidden_layer_sizes: Sequence[int] = (256,),
        alpha: float = 1.0,
        solver: str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-4,
        batch_size: int | str = "auto",
        learning_rate_init: float = 0.01,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.model = model
        self.hidden_layer_sizes = hidden_layer_sizes
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the model.

        Args:
            X: (N, features), samples.
            y: (N,), labels.
            sample_weight: (N,), weights of the samples. With "lbfgs" a weight of 2 equals repeating the sample.
                Samples of weight 0 are left out.

        Raises:
            ValueError: if an argument is invalid.
        """
        self._check_arguments()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        weight_N = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        if not weight_N.all():
            kept = weight_N > 0
            X, y, weight_N = X[kept], y[kept], weight_N[kept]
        classes, labels_N = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least 2 classes, got 1 class: {classes.tolist()}.")
        total = float(weight_N.sum(dtype=np.float64))
        weights = None if sample_weight is None else torch.from_numpy(weight_N * (len(y) / total))
        inputs_ND, labels = _to_tensor(X), torch.from_numpy(labels_N)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # the generators of other devices are not used
            widths = [X.shape[1]] if self.model == "linear" else [X.shape[1], *self.hidden_layer_sizes]
            loss = build_loss(self.method, np.bincount(labels_N, weights=weight_N), widths, len(y))
            model = build_model(widths, len(classes), loss).to(inputs_ND.dtype)
            problem = Problem(model, loss.to(inputs_ND.dtype), inputs_ND, labels, weights, self.alpha / total)
            self.n_iter_ = self._solve(problem)
        self.classes_, self.model_, self.loss_ = classes, model.eval(), loss.eval()
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits, (N, K); with two classes their difference, (N,)."""
        logits_NK = self._logits(X).numpy()
        return logits_NK[:, 1] - logits_NK[:, 0] if len(self.classes_) == 2 else logits_NK

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest logit."""
        predicted_N = self._logits(X).argmax(dim=1).numpy()
        return self.classes_[predicted_N]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the softmax of the logits, (N, K)."""
        return self._logits(X).softmax(dim=1).numpy()

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the log-softmax of the logits, (N, K)."""
        return self._logits(X).log_softmax(dim=1).numpy()

    @torch.no_grad()
    def _logits(self, X: Any) -> Tensor:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return self.model_(_to_tensor(X).to(next(self.model_.parameters()).dtype))

    def _solve(self, problem: Problem) -> int:
        """Train the model of a problem and return the number of iterations."""
        solver = self.solver
        if solver == "auto":
            solver = "lbfgs" if problem.is_linear and problem.is_fixed else "adam"
        if solver == "lbfgs":
            if not problem.is_fixed:
                raise ValueError(
                    f"solver='lbfgs' needs a loss whose terms depend on one sample each, but method={self.method!r} "
                    f"with model={self.model!r} compares samples, keeps statistics or is random. Use solver='adam'."
                )
            iterations, converged = fit_lbfgs(problem, max_iter=self.max_iter or MAX_ITERATIONS, tol=self.tol)
            if not converged:
                warnings.warn(
                    f"L-BFGS did not converge in {iterations} iterations (max_iter={self.max_iter}, tol={self.tol}). "
                    "Scale the inputs, or increase max_iter.",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            return iterations
        samples, size = len(problem.labels_N), self.batch_size
        if size == "auto":
            size = min(MAX_BATCH_SIZE, math.ceil(samples / MIN_BATCHES))
        epochs = self.max_iter or min(max(round(STEPS * int(size) / samples), MIN_EPOCHS), MAX_EPOCHS)
        try:
            fit_adam(problem, max_iter=epochs, batch_size=int(size), learning_rate=self.learning_rate_init)
        except InvalidBatchError as error:  # the samples are valid, so the logits are not
            raise FloatingPointError(
                f"training diverged with learning_rate_init={self.learning_rate_init}: scale the inputs, or reduce it."
            ) from error
        return epochs

    def _check_arguments(self) -> None:
        for name, allowed in (("model", MODELS), ("solver", SOLVERS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}.")
        sizes = self.hidden_layer_sizes
        if not isinstance(sizes, Sequence) or not sizes or not all(_is_count(size) for size in sizes):
            raise ValueError(f"hidden_layer_sizes must be a sequence of positive integers, got {sizes!r}.")
        if self.max_iter is not None and not _is_count(self.max_iter):
            raise ValueError(f"max_iter must be a positive integer or None, got {self.max_iter!r}.")
        if self.batch_size != "auto" and not _is_count(self.batch_size):
            raise ValueError(f"batch_size must be a positive integer or 'auto', got {self.batch_size!r}.")
        for name, least in (("alpha", "nonnegative"), ("tol", "positive"), ("learning_rate_init", "positive")):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < math.inf or (least == "positive" and not value):
                raise ValueError(f"{name} must be a {least} number, got {value!r}.")


def _to_tensor(X: NDArray[Any]) -> Tensor:
    """Share the memory of an array if torch can; memory-mapped files are often read-only."""
    return torch.from_numpy(np.require(X, requirements=["C", "W"]))


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and value is not True and int(value) > 0
