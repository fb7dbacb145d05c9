"""Bytes and calls: framing, rows, dispatch, writers, transports. Knows no core word."""
