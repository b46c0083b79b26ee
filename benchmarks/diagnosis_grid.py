"""The configurations of ``diagnosis.py``: cause × model × inputs × size.

A third of them have no cause. Those marked ``held_out`` have other numbers of classes, models or data than those with
which thresholds were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from diagnosis_problems import Configuration


def _without_cause() -> Iterator[Configuration]:
    for model, inputs in product(("logreg", "nb", "forest", "mlp"), ("scores", "all")):
        yield Configuration("none", model, inputs)
    for model, inputs in product(("logreg", "nb", "mlp"), ("labels", "features")):
        yield Configuration("none", model, inputs)
    for model, inputs in (("logreg", "all"), ("nb", "scores"), ("mlp", "all"), ("forest", "labels")):
        yield Configuration("none", model, inputs, classes=5, test_each=200)
    for model, inputs in (
        ("logreg", "scores"),
        ("nb", "all"),
        ("mlp", "scores"),
        ("logreg", "all"),
        ("forest", "labels"),
    ):
        yield Configuration("none", model, inputs, classes=20)
    for model, inputs in (("logreg", "all"), ("nb", "scores"), ("logreg", "labels")):
        yield Configuration("none", model, inputs, classes=50, test_each=50, train_each=100)
    for inputs in ("features", "all"):
        yield Configuration("none", "mlp-long", inputs, train_each=60)
    for model, inputs in (("logreg", "all"), ("mlp", "all"), ("nb", "scores"), ("logreg", "labels")):
        yield Configuration("none", model, inputs, test_each=8)  # tiny test sets
    yield Configuration("none", "logreg", "all", classes=50, test_each=6, train_each=100)
    yield Configuration("none", "knn", "all", held_out=True)
    yield Configuration("none", "knn", "features", classes=5, held_out=True)
    yield Configuration("none", "mlp", "all", classes=15, held_out=True)
    yield Configuration("none", "lda", "all", classes=30, held_out=True)
    yield Configuration("none", "knn", "scores", classes=20, held_out=True)
    yield Configuration("none", "lda", "features", classes=15, held_out=True)
    yield Configuration("none", "logreg", "all", classes=30, data="correlated", held_out=True)
    yield Configuration("none", "mlp", "scores", classes=7, data="correlated", held_out=True)
    yield Configuration("none", "nb", "all", classes=12, test_each=60, held_out=True)
    yield Configuration("none", "forest", "features", classes=15, held_out=True)
    yield Configuration("none", "lda", "scores", classes=40, test_each=60, held_out=True)
    yield Configuration("none", "nb", "labels", classes=25, held_out=True)
    yield Configuration("none", "forest", "scores", classes=30, held_out=True)
    yield Configuration("none", "knn", "labels", classes=10, test_each=300, held_out=True)
    yield Configuration("none", "lda", "scores", classes=6, test_each=400, held_out=True)


def _natural() -> Iterator[Configuration]:
    yield Configuration("natural", "nb", "scores", data="digits")
    yield Configuration("natural", "logreg", "all", data="digits")
    for model, inputs in (("nb", "all"), ("forest", "all"), ("mlp", "features"), ("knn", "scores")):
        yield Configuration("natural", model, inputs, data="digits", held_out=True)


def _training_counts() -> Iterator[Configuration]:
    for model in ("logreg", "nb", "mlp"):
        yield Configuration("few", model, "all")
    yield Configuration("few", "logreg", "labels+counts")
    yield Configuration("few", "nb", "scores+counts", classes=20)
    yield Configuration("tail", "logreg", "all")
    yield Configuration("tail", "mlp", "all")
    yield Configuration("few", "lda", "all", classes=15, held_out=True)
    yield Configuration("few", "nb", "scores+counts", data="digits", held_out=True)
    yield Configuration("few", "mlp", "all", data="digits", held_out=True)
    yield Configuration("tail", "forest", "scores+counts", classes=15, train_each=300, held_out=True)


def _labels() -> Iterator[Configuration]:
    for model, inputs in product(("logreg", "mlp", "forest"), ("scores", "all")):
        yield Configuration("labels", model, inputs)
    for model in ("nb", "mlp", "logreg"):
        yield Configuration("labels-test", model, "scores")
    yield Configuration("labels-pair", "logreg", "scores")
    yield Configuration("labels-pair", "mlp", "features")
    yield Configuration("labels-pair-train", "logreg", "all")
    yield Configuration("labels", "logreg", "scores", data="digits", held_out=True)
    yield Configuration("labels-test", "forest", "all", data="digits", held_out=True)
    yield Configuration("labels-test", "knn", "scores", classes=15, held_out=True)
    yield Configuration("labels-pair", "nb", "scores", classes=15, held_out=True)


def _overlap() -> Iterator[Configuration]:
    for model, inputs in (("logreg", "labels"), ("logreg", "all"), ("nb", "labels"), ("mlp", "all"), ("forest", "all")):
        yield Configuration("twins", model, inputs)
    for model, inputs in (("logreg", "scores"), ("nb", "all"), ("mlp", "scores"), ("mlp", "all"), ("forest", "labels")):
        yield Configuration("near", model, inputs)
    yield Configuration("twins", "logreg", "labels", classes=50, test_each=50, train_each=100)
    for model, inputs in (("logreg", "labels"), ("nb", "scores"), ("mlp", "scores")):
        yield Configuration("between", model, inputs)
    yield Configuration("between", "forest", "labels", classes=15, held_out=True)
    yield Configuration("between", "lda", "scores", classes=20, held_out=True)
    yield Configuration("between", "knn", "scores", classes=30, held_out=True)
    yield Configuration("twins", "logreg", "features", data="digits", held_out=True)
    yield Configuration("twins", "nb", "scores", data="digits", held_out=True)
    yield Configuration("twins", "lda", "all", data="digits", held_out=True)
    yield Configuration("twins", "mlp", "scores", data="digits", held_out=True)
    yield Configuration("near", "lda", "features", classes=15, held_out=True)
    yield Configuration("near", "knn", "labels", classes=30, held_out=True)


def _decision() -> Iterator[Configuration]:
    for model, inputs in product(("logreg", "nb", "mlp"), ("scores", "all")):
        yield Configuration("bias", model, inputs)
    for model in ("logreg", "nb", "mlp"):
        yield Configuration("prior", model, "scores")
    yield Configuration("prior", "logreg", "features")
    yield Configuration("bias", "logreg", "features", data="digits")
    yield Configuration("bias", "forest", "scores", classes=15, held_out=True)
    yield Configuration("bias", "nb", "scores", data="digits", held_out=True)
    yield Configuration("bias", "lda", "all", data="digits", held_out=True)
    yield Configuration("prior", "lda", "features", classes=7, held_out=True)


def _head_and_representation() -> Iterator[Configuration]:
    for model, inputs in (("logreg", "features"), ("mlp", "features"), ("mlp", "all")):
        yield Configuration("head", model, inputs)
    for model, inputs in (("logreg", "features"), ("logreg", "all"), ("mlp", "all"), ("forest", "features")):
        yield Configuration("spread", model, inputs)
    for model, inputs in (("logreg", "features"), ("logreg", "all"), ("nb", "features"), ("mlp", "all")):
        yield Configuration("representation", model, inputs)
    yield Configuration("head", "logreg", "features", data="digits")
    yield Configuration("head", "lda", "features", classes=15, held_out=True)
    yield Configuration("head", "lda", "features", data="digits", held_out=True)
    yield Configuration("spread", "knn", "features", classes=15, held_out=True)
    yield Configuration("spread", "lda", "all", data="correlated", held_out=True)
    yield Configuration("representation", "nb", "all", classes=7, held_out=True)
    yield Configuration("representation", "lda", "all", classes=15, held_out=True)


def _training() -> Iterator[Configuration]:
    yield Configuration("under", "mlp", "all")
    yield Configuration("under", "mlp", "all", data="digits")
    for model in ("mlp", "logreg", "forest"):
        yield Configuration("over", model, "all")
    yield Configuration("over", "mlp", "all", data="digits")
    yield Configuration("under", "mlp", "all", classes=15, held_out=True)
    yield Configuration("over", "mlp-long", "all", classes=15, held_out=True)
    yield Configuration("over", "mlp-long", "all", data="digits", held_out=True)


def _valid_labels() -> Iterator[Configuration]:
    """Sets of valid labels, which show wrong labels to an audit without scores and confirm right ones."""
    for model, inputs in (("logreg", "labels"), ("nb", "scores"), ("mlp", "all")):
        yield Configuration("none", model, f"{inputs}+valid")
    for cause, model, inputs in (
        ("labels-test", "logreg", "labels"),
        ("labels-test", "mlp", "scores"),
        ("labels-several", "logreg", "labels"),
        ("labels-several", "nb", "scores"),
        ("labels-several", "mlp", "all"),
        ("bias", "logreg", "scores"),
        ("near", "nb", "labels"),
        ("few", "logreg", "all"),
    ):
        yield Configuration(cause, model, f"{inputs}+valid")
    yield Configuration("none", "knn", "labels+valid", classes=20, held_out=True)
    yield Configuration("none", "forest", "scores+valid", classes=15, held_out=True)
    yield Configuration("labels-test", "nb", "all+valid", classes=15, held_out=True)
    yield Configuration("labels-several", "forest", "labels+valid", classes=15, held_out=True)
    yield Configuration("labels-several", "knn", "scores+valid", data="digits", held_out=True)


def _examined_in_part() -> Iterator[Configuration]:
    """Test sets of which the error budget examines two fifths, as it does beyond ``diagnosis_samples`` samples."""
    size: dict[str, int] = {"test_each": 250, "examined": 1_000}
    for model, inputs in (("logreg", "all"), ("nb", "scores"), ("mlp", "features"), ("forest", "scores+valid")):
        yield Configuration("none", model, inputs, **size)
    for cause, model, inputs in (
        ("labels", "logreg", "scores"),
        ("labels-several", "nb", "scores+valid"),
        ("twins", "logreg", "all"),
        ("bias", "nb", "scores"),
        ("prior", "logreg", "features"),
        ("head", "logreg", "features"),
        ("representation", "nb", "features"),
    ):
        yield Configuration(cause, model, inputs, **size)
    for model, inputs in (("lda", "all"), ("knn", "scores"), ("logreg", "scores+valid")):
        yield Configuration("none", model, inputs, classes=15, test_each=200, examined=1_500, held_out=True)
    for cause, model, inputs in (
        ("labels-test", "mlp", "scores"),
        ("bias", "logreg", "all"),
        ("head", "lda", "features"),
        ("spread", "knn", "features"),
        ("under", "mlp", "all"),
    ):
        yield Configuration(cause, model, inputs, classes=15, test_each=200, examined=1_500, held_out=True)


CONFIGURATIONS: tuple[Configuration, ...] = (
    *_without_cause(),
    *_natural(),
    *_training_counts(),
    *_labels(),
    *_overlap(),
    *_decision(),
    *_head_and_representation(),
    *_training(),
    *_valid_labels(),
    *_examined_in_part(),
)
