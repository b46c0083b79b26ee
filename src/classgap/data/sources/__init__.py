"""Sources of data sets: generated, local files, torchvision."""
