"""Kimi Wire."""
