"""Kimi Wire, versions 1.1 to 1.10: JSON lines on stdin and stdout. Only translates; what happens is the engine's."""
