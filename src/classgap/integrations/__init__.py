"""Adapters for other training libraries, one module per library; import the module of the library you use."""
