"""Where a server is: an address and its token, given by somebody or found in the home's server.json."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from quintet.domain.errors import Invalid, NoServer
from quintet.domain.home import home_directory

TOKEN_VARIABLE = "QUINTET_TOKEN"  # noqa: S105  (a name, not a token)


class Address(msgspec.Struct, frozen=True):
    url: str
    token: str = ""
    socket: str = ""  # a Unix socket to go through instead


class _Knp(msgspec.Struct):
    url: str = ""
    socket: str = ""


class _Facts(msgspec.Struct):
    token: str
    knp: _Knp


def find_server(home: str | Path | None = None, environment: Mapping[str, str] = os.environ) -> Address:
    """The server of this home. A file that a killed server left leads nowhere, as the first call finds out."""
    directory = Path(home_directory(str(home) if home else None, environment))
    try:
        facts = msgspec.json.decode((directory / "server.json").read_bytes(), type=_Facts)
    except FileNotFoundError:
        raise NoServer("No server runs on this home.") from None
    except (OSError, msgspec.DecodeError) as error:
        raise NoServer(f"server.json cannot be read: {error}.", next_step="Restart the server.") from None
    return Address(facts.knp.url or "http://localhost", facts.token, "" if facts.knp.url else facts.knp.socket)


def parse_address(text: str, token: str = "", environment: Mapping[str, str] = os.environ) -> Address:
    """An address as people paste it, with the token in front of the path or beside it."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise Invalid(f"{text!r} is not a server's address.", next_step="Give one like http://127.0.0.1:4096.")
    path, _, after = parts.path.partition("/t/")
    in_path, _, rest = after.partition("/")
    if rest:
        raise Invalid(f"{text!r} names a path behind the token.", next_step="Leave out what follows the token.")
    return Address(
        f"{parts.scheme}://{parts.netloc}{path.rstrip('/')}", token or in_path or environment.get(TOKEN_VARIABLE, "")
    )
