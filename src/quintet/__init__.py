"""Quintet: one coding-agent server, one engine, five published protocols. This file imports nothing, so that starting stays fast."""

__version__ = "0.1.0"
