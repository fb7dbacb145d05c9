"""Kward RPC, protocol version 1, as published with Kward ("Kward RPC Protocol"): JSON-RPC 2.0 in Content-Length blocks
on stdin and stdout, for one trusted local client. Only translates; what happens is the engine's."""
