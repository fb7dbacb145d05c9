"""The protocols by name, and what each offers, from the same rows that serve it."""

from __future__ import annotations

PROTOCOLS = {
    "wire": "Kimi Wire",
    "kward": "Kward RPC",
    "knp": "Popcorn KNP",
    "opencode": "OpenCode adapter",
    "kaiak": "Kaiak",
    "cursorclaw": "CursorClaw",
}


def method_rows(protocol: str) -> list[tuple[str, str]]:
    """(method, summary) of each row a protocol serves."""
    if protocol == "wire":
        from quintet.protocols.wire.server import TABLE

        return [(row.name, row.summary) for row in TABLE]
    if protocol == "kward":
        from quintet.protocols.kward.server import TABLE as KWARD

        return [(row.name, row.summary) for row in KWARD]
    if protocol == "knp":
        from quintet.protocols.knp.server import TABLE as ROUTES

        return [(route.name, route.summary) for route in ROUTES]
    return []
