"""2-D t-SNE embedding of the features of a few classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from classgap.audit._types import Integers
from classgap.audit.figures import ClassResult
from classgap.audit.io.rows import Matrix
from classgap.audit.metrics.class_order import ClassOrder
from classgap.audit.results import FeatureMap

AUTO_CLASSES = 8
COMPONENTS = 50  # t-SNE of the leading principal components looks the same and is much faster
MIN_POINTS = 10
STEPS = 1000  # of t-SNE, scikit-learn's default
ANGLE = 0.8  # of t-SNE's approximation of distant points; 0.5, the default, looks the same and takes a third longer


def worst_neighbors(classes: Sequence[ClassResult], limit: int = AUTO_CLASSES) -> list[int]:
    """Return the worst class and its top confusions, then those of the next worst, …, at most ``limit`` classes."""
    position = {entry.name: entry.index for entry in classes}
    seen = sorted((entry for entry in classes if entry.accuracy is not None), key=lambda entry: entry.accuracy or 0.0)
    chosen: dict[int, None] = {}
    for entry in seen:
        chosen[entry.index] = None
        chosen |= {position[confusion.name]: None for confusion in entry.confusions[:2]}
        if len(chosen) >= limit:
            break
    return [k for k in list(chosen)[:limit] if classes[k].support > 0]


def feature_map(
    features_ND: Matrix,
    order: ClassOrder,
    targets_N: Integers,
    predictions_N: Integers,
    names: Sequence[str],
    chosen: Sequence[int],
    *,
    points: int,
    seed: int,
    steps: int = STEPS,
) -> FeatureMap | None:
    """Embed at most ``points`` samples, divided evenly among the chosen classes; ``None`` for too few samples."""
    rng = np.random.default_rng(seed)
    per_class = max(1, points // max(len(chosen), 1))
    rows_of = dict(order.rows())
    picked = [rng.permutation(rows_of[k])[:per_class] for k in chosen if k in rows_of]
    rows = np.sort(np.concatenate(picked)) if picked else np.empty(0, dtype=np.int64)
    if len(rows) < MIN_POINTS:
        return None
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

    features = features_ND[torch.from_numpy(rows)].double().numpy()
    if not np.ptp(features, axis=0).any():  # t-SNE would divide by the zero variance of identical points
        return None
    components = min(COMPONENTS, *features.shape)
    perplexity = min(30.0, (len(rows) - 1) / 3)
    start = "random" if components < 2 else "pca"
    embedding = TSNE(perplexity=perplexity, random_state=seed, init=start, max_iter=steps, angle=ANGLE)
    # One thread: on a busy machine, synchronizing several threads takes longer than the short steps themselves.
    with threadpool_limits(limits=1):
        reduced = PCA(components, random_state=seed).fit_transform(features)
        flat = embedding.fit_transform(reduced / reduced.std())
    if not np.isfinite(flat).all():
        return None
    low, high = flat.min(axis=0), flat.max(axis=0)
    unit = (flat - low) / np.where(high > low, high - low, 1)
    return FeatureMap(
        classes=tuple(names[k] for k in chosen),
        x=tuple(round(float(value), 4) for value in unit[:, 0]),
        y=tuple(round(float(value), 4) for value in unit[:, 1]),
        target=tuple(targets_N[rows].tolist()),
        prediction=tuple(predictions_N[rows].tolist()),
    )
