"""Kward RPC."""
