"""Popcorn KNP 0.1 over HTTP and Server-Sent Events: threads, runs, replayable events, approvals, agents, files.

Translates and decides nothing; what other protocols also need is the engine's. Must not know sockets or processes.
"""
