"""Read predictions: files, run directories, arrays and models."""
