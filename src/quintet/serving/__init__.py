"""Serving: what each protocol is given of an open app, a file each, and the door that `quintet serve` opens.

Knows the app and the protocols; nothing below knows of it.
"""
