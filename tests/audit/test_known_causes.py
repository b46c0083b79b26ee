"""Four cases in which a rule of thumb was wrong; the error budget must get them right."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from classgap.audit import Audit, AuditSettings

QUICK = AuditSettings(map="none", n_resamples=100)


def first_causes(audit):
    return {entry.name: entry.diagnosis[0].name for entry in audit.classes if entry.diagnosis}


@pytest.fixture(scope="module")
def digits():
    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


@pytest.mark.parametrize("seed", range(5))
def test_over_confident_naive_bayes_does_not_doubt_clean_labels(digits, seed):
    images, labels = digits
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = order[:900], order[900:]
    model = GaussianNB().fit(images[train], labels[train])
    audit = Audit.from_predictions(
        probabilities=model.predict_proba(images[test]), targets=labels[test], features=images[test], settings=QUICK
    )
    assert "wrong-labels" not in {cause.name for entry in audit.classes for cause in entry.diagnosis}
    # An independent model agrees with almost every label that is doubted: there are few.
    forest = RandomForestClassifier(200, random_state=0).fit(images[train], labels[train])
    doubted = [row for entry in audit.classes for row in entry.doubted_samples]
    agreed = (forest.predict(images[test][doubted]) == labels[test][doubted]).sum() if doubted else 0
    assert agreed <= 3
    assert len(doubted) <= 0.01 * len(test)


@pytest.mark.parametrize("seed", range(3))
def test_naive_bayes_is_not_called_under_trained(digits, seed):
    """A linear classifier on the pixels is better, and no longer training makes naive Bayes one."""
    images, labels = digits
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = order[:900], order[900:]
    model = GaussianNB().fit(images[train], labels[train])
    scores = {"probabilities": model.predict_proba(images[test]), "targets": labels[test], "settings": QUICK}
    audit = Audit.from_predictions(
        **scores,
        features=images[test],
        train_targets=labels[train],
        train_predictions=model.predict(images[train]),
        train_features=images[train],
    )
    assert "under-trained" not in {cause.name for entry in audit.classes for cause in entry.diagnosis}
    linear = LogisticRegression(max_iter=1000).fit(images[train], labels[train])
    better = [entry for entry in audit.classes if entry.diagnosis and entry.diagnosis[0].name == "close-boundary"]
    assert better
    for entry in better:
        own = test[labels[test] == entry.index]
        assert (linear.predict(images[own]) == entry.index).mean() > entry.accuracy + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_few_training_samples_come_before_doubts_about_labels(digits, seed):
    images, labels = digits
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    train, test = order[:900], order[900:]
    eights = train[labels[train] == 8]
    train = np.concatenate([train[labels[train] != 8], eights[:27]])
    model = GaussianNB().fit(images[train], labels[train])
    audit = Audit.from_predictions(
        probabilities=model.predict_proba(images[test]),
        targets=labels[test],
        features=images[test],
        train_counts=np.bincount(labels[train]),
        settings=QUICK,
    )
    assert first_causes(audit).get("8", "few-training-samples") in ("few-training-samples", "too-few-test-samples")


def train_network(images, labels, epochs, seed=0):
    torch.manual_seed(seed)
    x, y = torch.tensor(images, dtype=torch.float32), torch.tensor(labels)
    body, head = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()), torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.02, momentum=0.9)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(head(body(x[rows])), y[rows]).backward()
            optimizer.step()
    return body, head


def audit_network(digits, epochs, seed):
    images, labels = digits
    train, test = slice(0, 900), slice(900, None)
    body, head = train_network(images[train], labels[train], epochs, seed)
    with torch.no_grad():
        features, train_features = (body(torch.tensor(images[part], dtype=torch.float32)) for part in (test, train))
        logits, train_logits = head(features), head(train_features)
    return Audit.from_predictions(
        logits,
        labels[test],
        features=features,
        head=head,
        train_targets=labels[train],
        train_predictions=train_logits.argmax(dim=1),
        train_features=train_features,
        settings=QUICK,
    )


@pytest.mark.parametrize("seed", range(3))
def test_an_under_trained_network_is_called_under_trained(digits, seed):
    early, late = audit_network(digits, 1, seed), audit_network(digits, 60, seed)
    failing = {name: cause for name, cause in first_causes(early).items() if cause != "too-few-test-samples"}
    assert failing
    assert set(failing.values()) == {"under-trained"}
    assert "under-trained" not in first_causes(late).values()
    assert late.overall.accuracy > early.overall.accuracy + 0.2  # training longer was right


def test_labels_alone_show_overlap():
    """Predicted labels only, 50 samples of 200 classes: 60 % of the laptops are predicted as notebooks."""
    rng = np.random.default_rng(0)
    names = ["laptop", "notebook", *(f"class {k}" for k in range(198))]
    targets = np.repeat(np.arange(200), 50)
    predictions = np.where(rng.random(len(targets)) < 0.8, targets, rng.integers(0, 200, len(targets)))
    predictions[:30] = 1
    predictions[50:70] = 0
    audit = Audit.from_predictions(predictions=predictions, targets=targets, class_names=names, settings=QUICK)
    found = audit.classes[0].diagnosis[0]
    assert (found.name, found.other) == ("overlap", "notebook")
    assert found.details["count"] >= 30
    assert found.details["back_count"] >= 20
    assert {audit.pairs[0].first, audit.pairs[0].second} == {"laptop", "notebook"}
    claimed = [entry for entry in audit.classes[2:] if entry.diagnosis and entry.diagnosis[0].name == "overlap"]
    assert not claimed


def test_the_example_of_the_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(block, {})
    assert "ErrorBudget(" in capsys.readouterr().out
