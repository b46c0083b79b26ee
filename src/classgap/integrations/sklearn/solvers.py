"""Solvers of ``GapClassifier``: full-batch L-BFGS for fixed objectives, mini-batch Adam for all others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from classgap.data.sampling.batching import count_batches, split_batches
from classgap.functional import on_sphere, squared_norm
from classgap.losses import ClassLoss, MR2Loss

MAX_LINE_SEARCH = 50  # evaluations per line search, as in scikit-learn


@dataclass(frozen=True)
class Problem:
    """A model, a loss and the training samples.

    Attributes:
        model: hidden layers and the head, which is the last one.
        loss: loss to minimize.
        inputs_ND: samples.
        labels_N: class indices.
        weight_N: sample weights with mean 1; ``None`` if all are equal.
        penalty: strength of the L2 penalty on the weights (not the biases), for the mean loss.
    """

    model: nn.Sequential
    loss: ClassLoss
    inputs_ND: Tensor
    labels_N: Tensor
    weight_N: Tensor | None
    penalty: float

    @property
    def is_linear(self) -> bool:
        """Whether the head is applied to the inputs themselves."""
        return len(self.model) == 1

    @property
    def is_fixed(self) -> bool:
        """Whether the objective is a fixed function of the parameters, which L-BFGS requires.

        Losses that compare samples, remember them or draw random numbers are not. MR² on a linear model is: its margins
        depend on the inputs only, and a pull on the inputs has no gradient.
        """
        loss = self.loss
        if self.is_linear and isinstance(loss, MR2Loss) and not loss.pulls:
            return True
        return loss.by_sample and not loss.stochastic and next(loss.parameters(), None) is None

    def weights(self) -> list[Tensor]:
        """Return the parameters that the penalty applies to."""
        return [layer.weight for layer in self.model if isinstance(layer, nn.Linear)]

    def mean_loss(self, rows: Tensor | slice) -> Tensor:
        """Return the loss of some samples."""
        features_BD = self.model[:-1](self.inputs_ND[rows])
        head = self.model[-1]
        weight_B = None if self.weight_N is None else self.weight_N[rows]
        return self.loss(
            head(features_BD), self.labels_N[rows], features=features_BD, head=head, sample_weight=weight_B
        )


def fit_lbfgs(problem: Problem, *, max_iter: int, tol: float) -> tuple[int, bool]:
    """Minimize the penalized loss of all samples.

    Returns:
        Number of iterations, and whether the largest entry of the gradient is at most ``tol`` (or no step reduces the
        objective).
    """
    loss, parameters = problem.loss, list(problem.model.parameters())
    if isinstance(loss, MR2Loss) and loss.required_inputs:
        _set_sizes(loss, problem)
    every = slice(None)
    with torch.no_grad(), loss.frozen():
        problem.mean_loss(every)  # checks all values once
    checks, loss.validate_args = loss.validate_args, False
    dtype = problem.inputs_ND.dtype

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        vector_to_parameters(torch.from_numpy(flat).to(dtype), parameters)
        value = problem.mean_loss(every)
        if problem.penalty:
            value = value + 0.5 * problem.penalty * sum(weight.square().sum() for weight in problem.weights())
        gradient = torch.autograd.grad(value, parameters)
        return value.item(), parameters_to_vector(gradient).double().numpy()

    try:
        with loss.frozen():
            found = minimize(
                objective,
                parameters_to_vector(parameters).detach().double().numpy(),
                jac=True,
                method="L-BFGS-B",
                options={
                    "maxiter": max_iter,
                    "maxls": MAX_LINE_SEARCH,
                    "gtol": tol,
                    "ftol": 64 * torch.finfo(dtype).eps,
                },
            )
    finally:
        loss.validate_args = checks
    vector_to_parameters(torch.from_numpy(found.x).to(dtype), parameters)
    return max(int(found.nit), 1), bool(found.success)


def fit_adam(problem: Problem, *, max_iter: int, batch_size: int, learning_rate: float) -> None:
    """Train for ``max_iter`` epochs of shuffled mini-batches; the learning rate falls to 0 along a cosine.

    The shuffle follows torch's global seed.
    """
    weights = problem.weights()
    biases = [each for each in problem.model.parameters() if all(each is not weight for weight in weights)]
    groups = [
        {"params": weights, "weight_decay": problem.penalty},
        {"params": [*biases, *problem.loss.parameters()], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.Adam(groups, lr=learning_rate)
    steps, step = max_iter * count_batches(len(problem.labels_N), batch_size), 0
    for _ in range(max_iter):
        for rows in split_batches(torch.randperm(len(problem.labels_N)), batch_size):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            optimizer.zero_grad(set_to_none=True)
            problem.mean_loss(rows).backward()
            optimizer.step()
            step += 1


@torch.no_grad()
def _set_sizes(loss: MR2Loss, problem: Problem) -> None:
    """Set the class sizes that determine the margins of MR² to weighted means over all samples."""
    inputs_ND = on_sphere(problem.inputs_ND) if loss.normalize else problem.inputs_ND
    weight_N = torch.ones_like(inputs_ND[:, 0]) if problem.weight_N is None else problem.weight_N
    total_K = torch.zeros(loss.num_classes, dtype=inputs_ND.dtype).index_add_(0, problem.labels_N, weight_N)
    size_N = squared_norm(inputs_ND, loss.stats.p) * weight_N
    size_K = torch.zeros_like(total_K).index_add_(0, problem.labels_N, size_N) / total_K
    loss.stats.size.copy_(size_K)
