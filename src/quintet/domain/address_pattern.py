"""Whether a rule's words speak of a web address. Hosts are compared label by label: a star never reaches over a slash
into the host, nor from the host into the path. Pure.
"""

from __future__ import annotations

import fnmatch
import re

_WHOLE = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*|\*)://)?(?P<host>\[[^\]]*\]|[^/:\[\]]*)(?::(?P<port>[0-9]+))?(?P<rest>/.*)?"
)


def fits_address(pattern: str, address: str, *, allowing: bool) -> bool:
    """`https://docs.example.org/3/*`, `*.example.org`, `*`. What the pattern leaves out, scheme and port, an allowing
    rule means as https and its usual port, any other rule means as all of them; a path left out is every path."""
    if pattern == "*":
        return True
    wanted, given = _WHOLE.fullmatch(pattern), _WHOLE.fullmatch(address)
    if wanted is None or given is None or not given["scheme"]:
        return False
    scheme = wanted["scheme"] or ("https" if allowing else "*")
    if scheme not in ("*", given["scheme"]):
        return False
    if wanted["port"] != given["port"] and (wanted["port"] or allowing):
        return False
    if wanted["rest"] and not fnmatch.fnmatchcase(given["rest"] or "/", wanted["rest"]):
        return False
    return _host_fits(wanted["host"].lower(), given["host"].lower())


def _host_fits(pattern: str, host: str) -> bool:
    if pattern == "*":
        return True
    labels, wanted = host.split("."), pattern.split(".")
    if wanted[0] == "*":
        return len(labels) >= len(wanted) and labels[1 - len(wanted) :] == wanted[1:]
    return labels == wanted
