"""Metrics of predictions: accuracy, calibration, margins, confusions, groups and gaps."""
