"""The order in which an epoch uses the samples."""
