"""Training runs that can be interrupted, resumed, audited and compared."""
