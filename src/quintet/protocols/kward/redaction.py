"""Redaction of everything that is sent: what stands under a secret's name, and what has a secret's shape. Pure.

Stored items and session files keep their text; this is about frames alone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.protocols.kward.masking import MASK, PIECES, masked

NAMES = ("token", "secret", "api_key", "apikey", "authorization", "password", "credential")
# Names that only sound like it: what they hold is promised to the client.
READABLE = frozenset({"apikeyproviders", "storedcredentialtype", "authorizationurl"})
# Cheap, over the bytes of a frame: most have nothing of this, and are sent as they are.
_SUSPECT = tuple(word.encode() for word in (*NAMES, "bearer", "sk-"))


def redacted(value: Any) -> Any:
    """The value with secrets masked at any depth. Numbers and booleans say nothing and stay."""
    if isinstance(value, dict):
        return {key: _under(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [redacted(inner) for inner in value]
    return masked(value) if isinstance(value, str) else value


def body(frame: bytes, plain: set[Any]) -> bytes:
    """A message's bytes as they may be sent. `plain` holds the ids of requests whose answer is promised unmasked."""
    low = frame.lower()
    if not any(word in low for word in _SUSPECT):
        return frame
    message = msgspec.json.decode(frame)
    if _is_piece(message):
        return frame  # masked with what came before it
    if "result" in message and message.get("id") in plain:
        plain.discard(message["id"])
        return frame
    return msgspec.json.encode(redacted(message))


def _is_piece(message: dict[str, Any]) -> bool:
    return message.get("method") == "turn/event" and message["params"].get("type") in PIECES


def _under(key: str, value: Any) -> Any:
    if key == "arguments" and isinstance(value, str):
        return _arguments(value)
    name = key.lower()
    if name in READABLE or not any(word in name for word in NAMES):
        return redacted(value)
    return _hidden(value)


def _hidden(value: Any) -> Any:
    """Every text in it."""
    if isinstance(value, dict):
        return {key: _hidden(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    return MASK if isinstance(value, str) and value else value


def _arguments(text: str) -> str:
    """The arguments of a call are an object written as a text."""
    try:
        given = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return masked(text)
    made = redacted(given)
    return text if made == given else msgspec.json.encode(made).decode()
