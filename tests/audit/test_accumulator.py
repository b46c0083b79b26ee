"""An accumulated audit equals the audit of all predictions in everything that sums can know."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

import classgap as cg
from classgap.audit import Audit, AuditAccumulator, AuditSettings, Notice
from classgap.distributed import rank, world_size

N, K, D = 300, 7, 4
NAMES = list("abcdefg")
COUNTS = np.arange(10, 10 + 10 * K, 10)
UNKNOWN = {"label_issues", "error_budget", "doubted_samples", "confident_errors", "logit_margin"}
UNKNOWN_FEATURES = {"dispersion", "max_intra_distance"}


def parts(kind="logits"):
    rng = np.random.default_rng(0)
    targets = rng.integers(0, K - 1, N)  # the last class has no samples
    features = rng.normal(size=(N, D)) + 30 + 2 * np.eye(K, D)[targets]
    logits = (rng.normal(size=(N, K)) + 2 * np.eye(K)[targets]).astype(np.float32)
    scores = torch.from_numpy(logits)
    return (scores.softmax(dim=1) if kind == "probabilities" else scores), targets, features


def accumulate(batches, kind="logits", feature_dim=D):
    logits, targets, features = parts(kind)
    accumulator = AuditAccumulator(feature_dim=feature_dim, class_names=NAMES, train_counts=COUNTS)
    for rows in batches:
        accumulator.update(logits[rows], targets[rows], None if feature_dim is None else features[rows])
    return accumulator


def whole(kind="logits", *, with_features=True):
    logits, targets, features = parts(kind)
    given = {"features": features} if with_features else {}
    return Audit.from_predictions(logits, targets, class_names=NAMES, train_counts=COUNTS, **given)


def close(got, expected, where=""):
    """Compare records field by field, numbers up to rounding."""
    if isinstance(expected, float):
        assert got == pytest.approx(expected, rel=1e-6, abs=1e-9), where
    elif hasattr(expected, "__dataclass_fields__"):
        for field in fields(expected):
            close(getattr(got, field.name), getattr(expected, field.name), f"{where}.{field.name}")
    elif isinstance(expected, tuple | list):
        assert len(got) == len(expected), where
        for i, (one, other) in enumerate(zip(got, expected, strict=True)):
            close(one, other, f"{where}[{i}]")
    elif isinstance(expected, dict):
        assert got.keys() == expected.keys(), where
        for key, value in expected.items():
            close(got[key], value, f"{where}.{key}")
    else:
        assert got == expected, where


def compare(got, expected, *, with_features=True):
    close(got.overall, expected.overall, "overall")
    close(got.groups, expected.groups, "groups")
    close(got.gap, expected.gap, "gap")
    close(got.pairs, expected.pairs, "pairs")
    unknown = UNKNOWN | UNKNOWN_FEATURES | {"causes"}  # some causes need the error budget
    known = [field.name for field in fields(expected.classes[0]) if field.name not in unknown]
    assert {"margin", "calibration_error", "spread", "confusions", "interval", "nearest_class"} <= set(known)
    for mine, theirs in zip(got.classes, expected.classes, strict=True):
        for name in known:
            close(getattr(mine, name), getattr(theirs, name), f"{mine.name}.{name}")
    np.testing.assert_array_equal(got.confusion_matrix(), expected.confusion_matrix())
    if with_features:
        for name in ("mean_spread_to_norm", "within_between", "spread_accuracy", "mean_norm_variation"):
            close(getattr(got.features, name), getattr(expected.features, name), name)


BATCHES = [np.arange(start, min(start + 32, N)) for start in range(0, N, 32)]


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_batches_give_the_audit_of_all_predictions(kind):
    compare(accumulate([[], *BATCHES], kind).compute(), whole(kind))


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_mean_logit_margins_follow_from_sums(kind, tmp_path):
    got, expected = accumulate(BATCHES, kind).compute(), whole(kind)
    for mine, theirs in zip(got.classes, expected.classes, strict=True):
        assert (mine.logit_margin is None) == (theirs.logit_margin is None)
        if mine.logit_margin is not None:
            close((mine.logit_margin.mean, mine.logit_margin.std), (theirs.logit_margin.mean, theirs.logit_margin.std))
    assert got.to_pandas()["logit_margin_mean"].notna().sum() == K - 1
    got.to_html(tmp_path / "a.html")  # without a chart of the quantiles


def test_logit_margins_are_unknown_if_a_probability_is_0():
    accumulator = accumulate(BATCHES, "probabilities")
    accumulator.update(torch.tensor([[1.0] + [0.0] * (K - 1)]), [1], np.zeros((1, D)))
    assert {entry.logit_margin for entry in accumulator.compute().classes} == {None}


def test_accumulated_audits_are_compared_as_independent_samples():
    got, expected = (accumulate(BATCHES).compute(), accumulate(BATCHES[:5]).compute()), whole()
    with pytest.raises(ValueError, match=r"no samples to pair: .* or compare with unpaired=True \(--unpaired\)"):
        cg.compare(*got)
    diff = cg.compare(*got, unpaired=True)
    rows = np.concatenate(BATCHES[:5])
    logits, targets, _ = parts()
    part = Audit.from_predictions(logits[rows], targets[rows], class_names=NAMES)
    assert diff.classes == tuple(
        replace(entry, f1_before=None, f1_after=None)  # F1 scores need the samples
        for entry in cg.compare(expected, part, unpaired=True).classes
    )
    assert (diff.n_samples, diff.n_samples_after, diff.only_before) == (N, len(rows), 0)


def test_without_features():
    got = accumulate(BATCHES, feature_dim=None).compute()
    compare(got, whole(with_features=False), with_features=False)
    assert got.features is None


def test_the_order_and_size_of_batches_do_not_matter():
    rng = np.random.default_rng(1)
    shuffled = np.array_split(rng.permutation(N), 3)
    compare(accumulate(shuffled).compute(), accumulate(BATCHES).compute())


def test_a_notice_says_what_sums_cannot_know():
    got = accumulate(BATCHES).compute()
    assert Notice("accumulated", {"feature_dim": D}) in got.notices
    assert not any(notice.code in ("no-features", "only-predicted-labels") for notice in got.notices)
    for entry in got.classes:
        assert entry.logit_margin is None or (entry.logit_margin.quantiles, entry.logit_margin.median) == ((), None)
        assert entry.dispersion is None
        assert entry.error_budget is None
    assert not got.has_samples
    assert "no distances within classes" in str(got)
    assert Audit.from_dict(got.to_dict()) == got


def test_samples_are_not_paired():
    got, other = accumulate(BATCHES).compute(), whole()
    for before, after in ((got, got), (got, other), (other, got)):
        with pytest.raises(ValueError, match="has no samples to pair"):
            before.diff(after)
    logits, targets, _ = parts()
    order = np.argsort(targets, kind="stable")
    ranked = Audit.from_predictions(logits[order], targets[order], class_names=NAMES, rank_by=got)
    assert Notice("unpaired-ranking") in ranked.notices


def test_merge_and_state():
    first, second = accumulate(BATCHES[:3]), accumulate(BATCHES[3:])
    copy = AuditAccumulator(feature_dim=D, class_names=NAMES, train_counts=COUNTS)
    copy.load_state_dict(first.state_dict())
    expected = accumulate(BATCHES).compute()
    compare(first.merge(second).compute(), expected)
    assert first.n_samples == N
    compare(copy.merge(second).compute(), expected)
    copy.reset()
    with pytest.raises(ValueError, match="no samples"):
        copy.compute()


def test_states_have_a_fixed_size_and_add_up():
    states = [accumulate([rows]).state_dict() for rows in BATCHES]
    total = AuditAccumulator(feature_dim=D, class_names=NAMES, train_counts=COUNTS)
    assert {name: value.shape for name, value in total.state_dict().items()} == {
        name: value.shape for name, value in states[0].items()
    }
    total.load_state_dict({name: torch.stack([state[name] for state in states]).sum(dim=0) for name in states[0]})
    compare(total.compute(), whole())


def accumulate_shard():
    """Deal batches to the processes; the second has one fewer."""
    accumulator = accumulate(BATCHES[rank() :: world_size()])
    seen, alone = accumulator.n_samples, accumulator.compute(sync=False).overall.n_samples
    return seen, alone, accumulator.compute().to_dict()


def test_two_processes_return_the_audit_of_all_samples(processes):
    (first_seen, alone, first), (second_seen, _, second) = processes.run(accumulate_shard)
    assert alone == first_seen
    assert first_seen + second_seen == N
    assert first == second
    compare(Audit.from_dict(first), accumulate(BATCHES).compute())


def test_large_means_keep_the_spread():
    rng = np.random.default_rng(0)
    targets, features = np.zeros(50, dtype=int), 1000 + rng.normal(size=(50, 3))
    accumulator = AuditAccumulator(num_classes=1, feature_dim=3)
    accumulator.update(np.zeros((50, 1)), targets, features)
    expected = np.sqrt(features.var(axis=0, ddof=1).sum())
    assert accumulator.compute().classes[0].spread == pytest.approx(expected, rel=1e-6)


def bad(**changes):
    logits, targets, features = parts()
    return {"logits": logits, "targets": targets, "features": features} | changes


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (bad(targets=np.full(N, K)), f"from 0 to {K - 1}, got {K}"),
        (bad(targets=np.full(N, -100)), "ignore_index"),
        (bad(logits=np.zeros((N, K + 1))), f"must have {K + 1} names"),
        (bad(logits=np.full((N, K), np.nan)), "row 0 contains NaN"),
        (bad(features=None), "features is required"),
        (bad(features=np.zeros((N, D + 1))), f"{D} columns, got {D + 1}"),
        (bad(features=np.zeros((N - 1, D))), "features and targets"),
    ],
)
def test_a_bad_batch_changes_nothing(batch, message):
    accumulator = accumulate(BATCHES[:2])
    before = accumulator.state_dict()
    with pytest.raises(ValueError, match=message):
        accumulator.update(**batch)
    assert all(torch.equal(value, before[name]) for name, value in accumulator.state_dict().items())


def test_bad_arguments():
    with pytest.raises(ValueError, match="num_classes or class_names"):
        AuditAccumulator()
    with pytest.raises(ValueError, match="num_classes must be at least 1"):
        AuditAccumulator(num_classes=0)
    with pytest.raises(ValueError, match="feature_dim: pass it"):
        AuditAccumulator(num_classes=2).update([[0.0, 1.0]], [0], [[1.0]])
    with pytest.raises(ValueError, match="same classes"):
        AuditAccumulator(num_classes=2).merge(AuditAccumulator(num_classes=3))
    with pytest.raises(ValueError, match="ranks_R must have shape"):
        AuditAccumulator(num_classes=2).merge(AuditAccumulator(num_classes=2, settings=AuditSettings(top_k=(1, 3))))
    with pytest.raises(ValueError, match="margin_K is missing"):
        cg.AuditAccumulator(num_classes=2).load_state_dict(
            {name: value for name, value in AuditAccumulator(2).state_dict().items() if name != "margin_K"}
        )
