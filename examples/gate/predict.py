"""Predictions of a model on its test set, for ``classgap gate``: scikit-learn's digits stand for your own data.

python predict.py                  # writes predictions.npz
python predict.py --train-size 60  # a worse model
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train-size", type=int, default=900)
    parser.add_argument("--out", default="predictions.npz")
    arguments = parser.parse_args()
    images, labels = load_digits(return_X_y=True)
    images = images / 16
    model = LogisticRegression(C=0.01, max_iter=200)
    model.fit(images[: arguments.train_size], labels[: arguments.train_size])
    test = np.arange(900, len(images))
    np.savez(
        arguments.out,
        logits=model.decision_function(images[test]),
        targets=labels[test],
        index=test,  # ids let later test sets differ
        class_names=[str(digit) for digit in range(10)],
    )


if __name__ == "__main__":
    main()
