"""Kimi Wire as its clients meet it: the real executable on pipes."""
