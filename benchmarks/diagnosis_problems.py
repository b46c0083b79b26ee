"""Constructed classification problems in which the cause of every failing class is known.

Each function of ``CAUSES`` starts with classes that are equally hard, damages one or two of them in one way, fits a
model and returns its outputs with the affected classes and the names of causes that count as right. Where a second name
counts, a comment gives the reason. ``CONFIGURATIONS`` in ``diagnosis_grid.py`` lists the problems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
from diagnosis_changes import map_class, move_class, split_class, turn_row
from diagnosis_models import SEPARATION, Integers, Outputs, Samples, draw_digits, draw_gaussian, fit

NO_CLAIM = ("too-few-test-samples", "not-enough-evidence")
UNDER = {"gaussian": (2, 0.03), "digits": (12, 0.05)}  # epochs and learning rate
REGULARIZED: dict[str, dict[str, Any]] = {"mlp": {"width": 32, "epochs": 6, "weight_decay": 1e-3}}
INPUTS = ("labels", "labels+counts", "scores", "scores+counts", "features", "all")
INPUTS += ("labels+valid", "scores+valid", "all+valid")
TWO_LABELS = 0.1  # fraction of test samples for which a second class is valid
NO_LABELS = 0.05  # fraction of test samples without a valid class


@dataclass(frozen=True)
class Configuration:
    """One kind of problem: the cause, the model, the inputs of the audit and the size.

    Attributes:
        cause: key of ``CAUSES``.
        model: "logreg", "nb", "forest", "mlp", "mlp-long", "knn" or "lda".
        inputs: one of ``INPUTS``. "labels" are predicted labels only, "features" includes scores and the head, "all"
            adds training counts, predictions, targets and features; "+valid" adds the valid labels of each sample.
        classes: number of classes.
        test_each: number of test samples of each class.
        train_each: number of training samples of each class.
        data: "gaussian", "correlated" or "digits" (which fixes the sizes).
        held_out: never used to choose a threshold.
        examined: largest number of test samples that the error budget examines; by default all.
    """

    cause: str
    model: str
    inputs: str
    classes: int = 10
    test_each: int = 100
    train_each: int = 200
    data: str = "gaussian"
    held_out: bool = False
    examined: int | None = None

    def __str__(self) -> str:
        size = "digits" if self.data == "digits" else f"{self.data}-K{self.classes}-n{self.test_each}"
        part = "" if self.examined is None else f"-of{self.examined}"
        return f"{self.cause}/{self.model}/{self.inputs}/{size}{part}"


@dataclass(frozen=True)
class Problem:
    """A fitted model with a known cause.

    Attributes:
        samples: data with the targets that the audit sees.
        outputs: outputs of the model.
        affected: classes that the construction damages.
        accepted: names of causes that are right for these classes.
        mislabeled: classes with wrong labels in the test set.
        clean: whether the classes are equally hard, so that every claim of a cause is wrong.
        shown: classes that each test sample shows, if not its target alone.
        valid_labels: classes that people called right for each test sample; ``None`` if nobody was asked.
    """

    samples: Samples
    outputs: Outputs
    affected: tuple[int, ...] = ()
    accepted: tuple[str, ...] = ()
    mislabeled: tuple[int, ...] = ()
    clean: bool = False
    shown: list[set[int]] | None = None
    valid_labels: list[list[int]] | None = None

    @property
    def predictions(self) -> Integers:
        """Predicted labels of the test set."""
        return self.outputs.test_logits.argmax(axis=1)

    @property
    def support_K(self) -> Integers:
        """Number of test samples of each class."""
        return np.bincount(self.samples.test_targets, minlength=self.samples.num_classes)

    @property
    def correct_K(self) -> Integers:
        """Number of correct test samples of each class."""
        targets = self.samples.test_targets
        return np.bincount(targets[targets == self.predictions], minlength=self.samples.num_classes)

    def audit_inputs(self, inputs: str) -> dict[str, Any]:
        """Return the arguments of ``Audit.from_predictions`` for one of ``INPUTS``."""
        samples, outputs = self.samples, self.outputs
        inputs, valid, _ = inputs.partition("+valid")
        given: dict[str, Any] = {"targets": samples.test_targets}
        if valid:
            given |= {"valid_labels": self.valid_labels}
        if inputs.startswith("labels"):
            given |= {"predictions": self.predictions}
            given |= {"class_names": [str(k) for k in range(samples.num_classes)]}
        elif outputs.probabilistic:
            given |= {"probabilities": np.exp(outputs.test_logits)}
        else:
            given |= {"logits": outputs.test_logits}
        if inputs in ("features", "all"):
            given |= {"features": outputs.test_features}
            given |= {"head": outputs.head} if outputs.head is not None else {}
        if inputs == "all" or inputs.endswith("+counts"):
            given |= {"train_counts": np.bincount(samples.train_targets, minlength=samples.num_classes)}
        if inputs == "all":
            given |= {"train_predictions": outputs.train_logits.argmax(axis=1), "train_targets": samples.train_targets}
            given |= {"train_features": outputs.train_features}
        return given


class Draw:
    """Random numbers of one problem: the data, and the classes that a construction damages."""

    def __init__(self, configuration: Configuration, seed: int) -> None:
        self.configuration = configuration
        # Configurations that differ only in the inputs get different data, so that their results are independent.
        self.seed = crc32(f"{configuration} seed {seed}".encode())
        self.rng = np.random.default_rng(self.seed)
        classes = configuration.classes
        self.first = int(self.rng.integers(classes))
        self.second = int((self.first + 1 + self.rng.integers(classes - 1)) % classes)

    def samples(self, easier: float = 0.0, train_counts: Integers | None = None) -> Samples:
        """Draw the data; ``easier`` adds to the distance between Gaussian classes."""
        c = self.configuration
        if c.data == "digits":
            return draw_digits(self.rng)
        counts = c.train_each if train_counts is None else train_counts
        separation = SEPARATION[c.model] + easier
        return draw_gaussian(c.classes, separation, counts, c.test_each, self.rng, correlated=c.data == "correlated")

    def fit(self, samples: Samples, **options: Any) -> Outputs:
        """Fit the model of the configuration."""
        return fit(self.configuration.model, samples, self.seed, **options)


def build(configuration: Configuration, seed: int) -> Problem:
    """Build the problem of a configuration; equal seeds give equal problems."""
    draw = Draw(configuration, seed)
    problem = CAUSES[configuration.cause](draw)
    return replace(problem, valid_labels=_judge(problem, draw.rng)) if "+valid" in configuration.inputs else problem


def _judge(problem: Problem, rng: np.random.Generator) -> list[list[int]]:
    """Ask people for the valid classes of each test sample.

    They name the classes that the sample shows. For some samples they also name the class that looks most similar, the
    other class with the highest score; for some they name none.
    """
    targets_N = problem.samples.test_targets
    others_NK = problem.outputs.test_logits.copy()
    others_NK[np.arange(len(targets_N)), targets_N] = -np.inf
    chance_N = rng.random(len(targets_N))
    shown = problem.shown or [{target} for target in targets_N.tolist()]
    return [
        [] if chance < NO_LABELS else sorted(classes | {similar} if chance > 1 - TWO_LABELS else classes)
        for classes, similar, chance in zip(shown, others_NK.argmax(axis=1).tolist(), chance_N, strict=True)
    ]


def no_cause(draw: Draw) -> Problem:
    """Classes that are equally hard; differences in accuracy are chance."""
    samples = draw.samples()
    return Problem(samples, draw.fit(samples), clean=True)


def natural(draw: Draw) -> Problem:
    """Unmodified real data: classes differ for unknown reasons, but not because of wrong labels."""
    samples = draw.samples()
    return Problem(samples, draw.fit(samples))


def few_training_samples(draw: Draw) -> Problem:
    """One class with a twentieth of the training samples of the others."""
    samples, a = draw.samples(easier=-0.6), draw.first
    own = np.flatnonzero(samples.train_targets == a)
    samples = samples.keep_train(np.setdiff1d(np.arange(len(samples.train_targets)), own[max(5, len(own) // 20) :]))
    return Problem(samples, draw.fit(samples), (a,), ("few-training-samples",))


def long_tail(draw: Draw) -> Problem:
    """Training counts that fall geometrically to a fiftieth; classes below the median are affected."""
    c = draw.configuration
    counts_K = np.round(c.train_each * 0.02 ** np.linspace(0, 1, c.classes)).astype(int)
    draw.rng.shuffle(counts_K)
    samples = draw.samples(easier=-0.4, train_counts=counts_K)
    tail = np.flatnonzero(counts_K < np.median(counts_K))
    return Problem(samples, draw.fit(samples), tuple(tail.tolist()), ("few-training-samples",))


def label_noise(draw: Draw) -> Problem:
    """Some training and test samples of every other class carry the label of one class."""
    return _mislabel(draw, train=0.35)


def label_noise_in_test(draw: Draw) -> Problem:
    """Wrong labels in the test set only."""
    return _mislabel(draw)


def label_noise_from_one(draw: Draw) -> Problem:
    """Wrong test labels, all from one other class."""
    return _mislabel(draw, source=draw.second)


def label_noise_from_one_in_training(draw: Draw) -> Problem:
    """Wrong training and test labels, all from one other class."""
    # With more noise in training, the other class would fail as well.
    problem = _mislabel(draw, train=0.2, source=draw.second)
    # The same samples arise if a quarter of the class truly looks like the other class. Only a person can tell.
    return replace(problem, accepted=("wrong-labels", "overlap"))


def several_answers(draw: Draw) -> Problem:
    """Some test samples of one class also show another class, so that both labels are valid."""
    problem = _mislabel(draw)
    assert problem.shown is not None
    labeled = zip(problem.shown, problem.samples.test_targets.tolist(), strict=True)
    return replace(problem, shown=[classes | {target} for classes, target in labeled])


def twins(draw: Draw) -> Problem:
    """One class under two labels."""
    samples, a, b = draw.samples(easier=0.4), draw.first, draw.second
    if samples.means_KD is None:
        samples = split_class(samples, a, b, draw.rng)
    else:
        samples = move_class(samples, b, samples.means_KD[a] - samples.means_KD[b])
    return Problem(samples, draw.fit(samples), (a, b), ("overlap",))


def near_duplicates(draw: Draw) -> Problem:
    """Two classes whose means are 1.5 standard deviations apart."""
    samples, a, b = draw.samples(easier=0.6), draw.first, draw.second
    assert samples.means_KD is not None
    way_D = samples.means_KD[a] - samples.means_KD[b]
    samples = move_class(samples, b, way_D * (1 - 1.5 / (SEPARATION[draw.configuration.model] + 0.6)))
    return Problem(samples, draw.fit(samples), (a, b), ("overlap",))


def between_others(draw: Draw) -> Problem:
    """A class whose mean is that of three other classes, so that its errors go to all three."""
    samples, a = draw.samples(), draw.first
    assert samples.means_KD is not None
    others = (a + 1 + draw.rng.choice(samples.num_classes - 1, 3, replace=False)) % samples.num_classes
    samples = move_class(samples, a, samples.means_KD[others].mean(axis=0) - samples.means_KD[a])
    return Problem(samples, draw.fit(samples), (a, *others.tolist()), ("overlap",))


def shifted_decision(draw: Draw) -> Problem:
    """A constant subtracted from the score of one class, 0.8 times the median distance of the two highest scores."""
    samples, a = draw.samples(), draw.first
    outputs = draw.fit(samples)
    highest_N2 = np.sort(outputs.test_logits, axis=1)[:, -2:]
    offset_K = np.zeros(samples.num_classes)
    offset_K[a] = -0.8 * float(np.median(highest_N2[:, 1] - highest_N2[:, 0]))
    return Problem(samples, outputs.with_offset(offset_K), (a,), ("decision-bias",))


def shifted_priors(draw: Draw) -> Problem:
    """Two classes that are eight times as rare in training as in the test set, with unknown counts.

    The rare classes have enough samples to be learned, so the prior and not the estimate costs them accuracy. Naive
    Bayes counts each feature once here, because repeated features outweigh any prior.
    """
    c, rare = draw.configuration, [draw.first, draw.second]
    counts_K = np.full(c.classes, 4 * c.train_each)
    counts_K[rare] = c.train_each // 2
    samples = draw.samples(easier=-1.2, train_counts=counts_K)
    options: dict[str, Any] = {"nb": {"repeats": 1}, "mlp": {"epochs": 12, "weight_decay": 1e-3}}.get(c.model, {})
    return Problem(samples, draw.fit(samples, **options), tuple(rare), ("decision-bias",))


def turned_head_row(draw: Draw) -> Problem:
    """A direction that separates no classes is added to the head weights of one class; the class loses 30 points.

    The bias keeps the number of predictions of the class on the training set. A turned row alone would attract samples
    of all other classes, and an offset would then repair a part of the damage.
    """
    samples, a = draw.samples(easier=0.2), draw.first
    outputs = turn_row(draw.fit(samples), samples.train_targets, a, draw.rng, lost=0.3)
    accepted = ["close-boundary"]
    if draw.configuration.inputs == "all":
        # With equal accuracies in training and test and a better head at hand, more training would turn it back.
        accepted.append("under-trained")
    return Problem(samples, outputs, (a,), tuple(accepted))


def large_spread(draw: Draw) -> Problem:
    """One class with twice the standard deviation of the others."""
    samples, a = draw.samples(easier=0.8), draw.first
    assert samples.means_KD is not None
    mean_D = samples.means_KD[a]
    samples = map_class(samples, a, lambda inputs_ND: mean_D + 2.0 * (inputs_ND - mean_D))
    # No head and no nearest neighbors on these features separate the class: its spread is how the features fail.
    return Problem(samples, draw.fit(samples), (a,), ("large-spread", "representation"))


def lost_representation(draw: Draw) -> Problem:
    """Features without the direction that separates one class from the center of the others.

    Networks get more training samples and regularization. They would otherwise learn the class by heart, and
    over-fitting would be a second true cause. Forests learn it by heart even so and are not used.
    """
    c, a = draw.configuration, draw.first
    options = REGULARIZED.get(c.model, {})
    samples = draw.samples(easier=0.6, train_counts=np.full(c.classes, (8 if options else 2) * c.train_each))
    assert samples.means_KD is not None
    lost_D = samples.means_KD[a] - np.delete(samples.means_KD, a, axis=0).mean(axis=0)
    lost_D = lost_D / np.linalg.norm(lost_D)
    train_ND, test_ND = (x_ND - np.outer(x_ND @ lost_D, lost_D) for x_ND in (samples.train_ND, samples.test_ND))
    samples = replace(samples, train_ND=train_ND, test_ND=test_ND)
    return Problem(samples, draw.fit(samples, **options), (a,), ("representation",))


def under_trained(draw: Draw) -> Problem:
    """A network that is stopped after a few epochs; classes 10 points below the mean are affected."""
    samples = draw.samples(easier=1.2)
    samples = replace(samples, train_ND=0.25 * samples.train_ND, test_ND=0.25 * samples.test_ND)
    epochs, rate = UNDER["digits" if samples.means_KD is None else "gaussian"]
    problem = Problem(samples, draw.fit(samples, epochs=epochs, learning_rate=rate), accepted=("under-trained",))
    accuracy_K = problem.correct_K / problem.support_K
    return replace(problem, affected=tuple(np.flatnonzero(accuracy_K < accuracy_K.mean() - 0.1).tolist()))


def over_fitted(draw: Draw) -> Problem:
    """One class with as many training samples as the others, but few distinct ones, which the model memorizes."""
    samples, a = draw.samples(easier=-0.2), draw.first
    own = np.flatnonzero(samples.train_targets == a)
    train_ND = samples.train_ND.copy()
    train_ND[own] = train_ND[draw.rng.choice(own[: max(3, len(own) // 25)], len(own))]
    samples = replace(samples, train_ND=train_ND)
    return Problem(samples, draw.fit(samples), (a,), ("over-fitted",))


CAUSES: dict[str, Callable[[Draw], Problem]] = {
    "none": no_cause,
    "natural": natural,
    "few": few_training_samples,
    "tail": long_tail,
    "labels": label_noise,
    "labels-test": label_noise_in_test,
    "labels-pair": label_noise_from_one,
    "labels-pair-train": label_noise_from_one_in_training,
    "labels-several": several_answers,
    "twins": twins,
    "near": near_duplicates,
    "between": between_others,
    "bias": shifted_decision,
    "prior": shifted_priors,
    "head": turned_head_row,
    "spread": large_spread,
    "representation": lost_representation,
    "under": under_trained,
    "over": over_fitted,
}


def _mislabel(draw: Draw, test: float = 0.35, train: float = 0.0, source: int | None = None) -> Problem:
    """Give the label of the first class to samples of other classes, as many as a fraction of its own."""
    samples, a = draw.samples(easier=0.6), draw.first

    def relabel(targets: Integers, fraction: float) -> Integers:
        candidates = np.flatnonzero(targets != a if source is None else targets == source)
        wrong = draw.rng.choice(candidates, int(fraction * (targets == a).sum()), replace=False)
        changed = targets.copy()
        changed[wrong] = a
        return changed

    shown = [{true} for true in samples.test_targets.tolist()]
    test_targets, train_targets = relabel(samples.test_targets, test), relabel(samples.train_targets, train)
    samples = replace(samples, test_targets=test_targets, train_targets=train_targets)
    return Problem(samples, draw.fit(samples), (a,), ("wrong-labels",), mislabeled=(a,), shown=shown)
