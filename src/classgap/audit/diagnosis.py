"""Why classes fail: who fails at all, and what the evidence says about each."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from classgap.audit.causes import CAUSES, Evidence
from classgap.audit.intervals import wilson_bounds
from classgap.audit.records import Cause
from classgap.audit.samples import Integers

_SAME = 1e-9  # the mean of equal accuracies may differ from them in the last digits


def diagnose(evidence: Evidence, hard_U: Integers, balanced_accuracy: float) -> dict[int, tuple[Cause, ...]]:
    """Causes of each class in the hard third whose accuracy is below the balanced accuracy.

    A class fails for certain if its whole Wilson interval is below the balanced accuracy. If not, its test samples are
    too few to tell, and nothing else is said. Causes are ranked by strength; a failing class for which none is
    supported gets "not-enough-evidence", with what was looked at.
    """
    _, high_K = wilson_bounds(evidence.correct_K, evidence.support_K, evidence.level)
    found: dict[int, tuple[Cause, ...]] = {}
    for k in hard_U.tolist():
        if evidence.accuracy_K[k] >= balanced_accuracy - _SAME:
            continue
        if high_K[k] >= balanced_accuracy:
            found[k] = (_too_few_to_tell(k, evidence, balanced_accuracy),)
            continue
        causes = [cause for look in CAUSES if (cause := look(k, evidence)) is not None]
        ranked = sorted(causes, key=lambda cause: -cause.strength)
        found[k] = tuple(ranked) or (_not_enough(evidence),)
    return found


def _too_few_to_tell(k: int, evidence: Evidence, balanced_accuracy: float) -> Cause:
    share, support = float(evidence.accuracy_K[k]), int(evidence.support_K[k])
    # Where the Wilson interval of the same share would end at the balanced accuracy: n = z² b(1-b) / (b - p)².
    z = NormalDist().inv_cdf((1 + evidence.level) / 2)
    wanted = z**2 * balanced_accuracy * (1 - balanced_accuracy) / (balanced_accuracy - share) ** 2
    enough = f"about {int(np.ceil(wanted)):,} would be" if wanted > support else "slightly more would be"
    return Cause(
        name="too-few-test-samples",
        evidence=f"{share:.1%} right of only {support} test samples could be chance; {enough} enough to tell.",
        figure=float(support),
        reference=float(wanted),
        strength=1.0,
        other=None,
        methods=(),
    )


def _not_enough(evidence: Evidence) -> Cause:
    looked = {
        "training counts": evidence.train_counts_K,
        "feature spread": evidence.spread_K,
        "overlap": evidence.nearest_Km,
        "decision boundaries": evidence.midpoint_K,
        "labels": evidence.label_issues_K,
        "training accuracy": evidence.train_accuracy_K,
    }
    seen = [what for what, value in looked.items() if value is not None]
    unseen = [what for what, value in looked.items() if value is None]
    text = f"nothing unusual in {', '.join(seen)}" if seen else "nothing but predictions was given"
    text += f"; not known: {', '.join(unseen)}." if unseen else "."
    return Cause(
        name="not-enough-evidence",
        evidence=text,
        figure=None,
        reference=None,
        strength=0.0,
        other=None,
        methods=(),
    )
