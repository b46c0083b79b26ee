"""Why classes fail."""
