"""Secret values this process knows of, so that whoever stores or shows text can take them out. Finds, never guards."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from quintet.workspace.credentials import Credentials
from quintet.workspace.environment import passes
from quintet.workspace.settings_file import stamp_of

SHORTEST = 8
LARGEST_FILE = 1024 * 1024
_STRONG = frozenset(
    {"KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS"}
    | {"CREDENTIAL", "CREDENTIALS", "PAT", "COOKIE", "JWT"}
)
_ENDINGS = ("APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")
_LOGIN = r"[a-z][a-z0-9+.-]*://[^/\s:@]*:([^@/\s]+)@"


class KnownSecrets:
    """Plays domain.ports.Secrets. `keys` are configured provider keys, `key_names` the variables that hold some."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        keys: Iterable[str] = (),
        key_names: Iterable[str] = (),
        credentials: Credentials | None = None,
        files: Sequence[str] = (),
    ) -> None:
        """`files` are another program's, in JSON, that hold secrets among other things."""
        named = [environment.get(name, "") for name in key_names]
        self._fixed = _usable([*keys, *named, *_from_environment(environment)])
        self._credentials = credentials
        self._files = tuple(files)
        self._seen: tuple[object, ...] | None = None
        self._values = self._fixed

    def known_values(self) -> Sequence[str]:
        """Longest first, so that a value which holds another is taken out whole."""
        if self._credentials is None and not self._files:
            return self._values
        kept = self._credentials.fingerprint() if self._credentials else ()
        changed = (kept, *map(stamp_of, self._files))
        if changed != self._seen:
            self._seen = changed
            texts = [*(self._credentials.texts() if self._credentials and kept else ()), *_json_texts(self._files)]
            self._values = _usable([*self._fixed, *(value for text in texts for value in _from_text(text))])
        return self._values


def _json_texts(paths: Iterable[str]) -> Iterator[str]:
    """What can be read of them as JSON; of anything else nobody knows which words are secret."""
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            with open(path, "rb") as file:
                data = file.read(LARGEST_FILE)
            msgspec.json.decode(data)
            yield data.decode()


def names_secret(name: str) -> bool:
    """Whether a variable's name says that its value is secret: by whole words, so AUTHOR and KEYBOARD say nothing."""
    words = name.upper().replace("-", "_").split("_")
    return any(word in _STRONG or word.endswith(_ENDINGS) for word in words)


def _from_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Of the variables children do not get, those whose name says secret. Not every one of them: the value of a
    dropped variable may be a path, a host or a plain word, and taking that out would mangle ordinary text."""
    for name, value in environment.items():
        if passes(name, value):
            continue
        login = re.match(_LOGIN, value, re.IGNORECASE) if "://" in value else None
        if login:
            yield login[1]  # of an address only the password is secret
        elif _is_secret(name, value) and not _names_a_file(value):
            yield value


def _is_secret(name: str, value: str) -> bool:
    # AUTH says less than the other words: AUTH=disabled is no secret, a long value with digits in it is.
    vague = "AUTH" in name.upper().split("_") and len(value) >= 16 and any(c.isdigit() for c in value)
    return vague or names_secret(name)


def _names_a_file(value: str) -> bool:
    return value.startswith(("/", "~")) and len(value) < 4_096 and os.path.exists(os.path.expanduser(value))


def _from_text(text: str) -> Iterator[str]:
    """A credential file is JSON, or `NAME=value` lines, or the bare value."""
    try:
        yield from _from_json("", msgspec.json.decode(text.encode()))
        return
    except msgspec.DecodeError:
        pass
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name) and value:
            if names_secret(name):
                yield value.strip("\"'")
        elif line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _from_json(name: str, value: object) -> Iterator[str]:
    match value:
        case str() if not name or names_secret(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)):
            yield value
        case dict():
            for key, inner in value.items():
                yield from _from_json(str(key), inner)
        case list():
            for inner in value:
                yield from _from_json(name, inner)


def _usable(values: Iterable[str]) -> tuple[str, ...]:
    stripped = {value.strip() for value in values}
    return tuple(sorted((value for value in stripped if len(value) >= SHORTEST), key=lambda v: (-len(v), v)))
