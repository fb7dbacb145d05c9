"""Composition root: the only file that knows everyone."""
