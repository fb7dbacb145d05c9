"""Nouns: frozen types, ports and errors. No asyncio, no I/O, no framework."""
