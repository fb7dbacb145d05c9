"""Kward RPC with the real executable."""
