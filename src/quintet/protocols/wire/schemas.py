"""Whether a client's JSON Schema is one, and what the validator says if it is not. Its imports wait for the first."""

from __future__ import annotations

from typing import Any


def wrong_with(schema: dict[str, Any]) -> str:
    """Nothing when it can be used."""
    import fastjsonschema  # only a client with tools of its own needs it

    try:
        fastjsonschema.compile(schema, handlers={"http": _nowhere, "https": _nowhere, "file": _nowhere})
    except Exception as error:
        # The compiler stumbles over some schemas instead of refusing them; neither can be used.
        return f"invalid JSON Schema: {error or type(error).__name__}"[:500]
    return ""


def _nowhere(address: str) -> Any:
    raise ValueError(f"the schema refers to {address}, and no address is opened for it")
