"""Sources of datasets: generated, local files, torchvision."""
