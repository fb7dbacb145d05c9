"""Serving over HTTP: what `quintet serve` puts together from an open app. Knows the app and the protocols it serves."""
