"""Keys in a check-up: which providers have one and where it comes from, never the key; and whether the model that is
asked by default can be asked at all. Opens no stored key: that could make the system's key store ask a question.
"""

from __future__ import annotations

from collections.abc import Callable

from quintet.domain.checkup import Row, fail, ok
from quintet.providers.keys import KeySource
from quintet.providers.settings import ProviderKind
from quintet.providers.table import ModelTable

_WHERE = {
    KeySource.ENVIRONMENT: "in the environment",
    KeySource.CONFIG: "written in config.toml",
    KeySource.STORED: "stored",
}
_WITHOUT_KEY = (ProviderKind.OFFLINE, ProviderKind.SCRIPTED)


def look_at_keys(table: ModelTable, cannot_open: Callable[[str], bool]) -> list[Row]:
    """`cannot_open` says of a stored key's name whether it is encrypted and no key store is there to open it."""
    found, locked = [], []
    for name in table.providers():
        for source in table.key_sources(name)[:1]:
            found.append(f"{name} ({_WHERE[source]})")
            if source is KeySource.STORED and cannot_open(name):
                locked.append(name)
    rows = [_default(table)]
    if locked:
        words = f"stored encrypted, and this system's key store is not there: {', '.join(locked)}"
        return [*rows, fail("keys", words, f"quintet auth set {locked[0]}")]
    none = "none found; the offline model needs none"
    return [*rows, ok("keys", ", ".join(found) or none, "" if found else "quintet auth set NAME")]


def _default(table: ModelTable) -> Row:
    reference = table.default
    name, slash, model = reference.partition("/")
    settings = table.providers().get(name)
    if settings is None:
        return fail("model", f"{reference}: there is no provider named {name!r}", "quintet models")
    if lacks := table.lacks(name):
        return fail("model", f"{reference}: {lacks}", f"quintet auth set {name}")
    if not slash or not model:
        return fail("model", f"{reference}: a model is named provider/model", "quintet models")
    if settings.kind in _WITHOUT_KEY:
        return ok("model", f"{reference}: built in, no language model is connected", "quintet models --local")
    return ok("model", f"{reference}: can be asked")
