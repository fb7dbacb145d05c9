"""Quintet: one coding-agent server, one engine, five published protocols. Imports nothing, so starting stays fast."""

__version__ = "0.1.0"
