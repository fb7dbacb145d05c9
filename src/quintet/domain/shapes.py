"""Text that looks like a secret although nobody told us that it is one. Masked where things go wrong and people copy
the words elsewhere: logs, errors, diagnostics. Never in stored items: a look-alike there may be somebody's code. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise

MASK = "[redacted]"

_PREFIXED = re.compile(
    r"\b(?:"
    r"(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}\b|AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r")"
)
_SCHEME = re.compile(r"\b(bearer|basic|token)(\s+)([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_LOGIN = re.compile(r"([a-z][a-z0-9+.-]*://[^/\s:@]*:)([^@/\s]+)(@)", re.IGNORECASE)
_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_NAMED = re.compile(
    r"(?i)\b((?:x-)?api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|secret[_-]?key|password|passwd)"
    r"([\"']?\s*[:=]\s*[\"']?)([^\s\"',;}]{6,})"
)
_RUN = re.compile(r"[A-Za-z0-9_-]{32,}")


def mask_shapes(text: str) -> str:
    """The text with everything masked that looks like a key, a token or a password."""
    text = _BLOCK.sub(MASK, text)
    text = _LOGIN.sub(rf"\1{MASK}\3", text)
    text = _SCHEME.sub(lambda m: m[0] if _plain_word(m[1], m[3]) else f"{m[1]}{m[2]}{MASK}", text)
    text = _PREFIXED.sub(lambda m: MASK if any(c.isdigit() for c in m[0]) else m[0], text)
    text = _NAMED.sub(lambda m: m[0] if _names_code(m[3]) else f"{m[1]}{m[2]}{MASK}", text)
    return _RUN.sub(lambda m: MASK if _random(m[0]) else m[0], text)


def _plain_word(scheme: str, value: str) -> bool:
    """ "Bearer authentication", "basic understanding", "token refresh": prose, not a header."""
    if scheme.lower() == "basic":
        try:
            return b":" not in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            return True
    return not any(c.isdigit() for c in value)


def _names_code(value: str) -> bool:
    """`password = getpass()`, `api_key: str`, `token=None`, `$TOKEN`, `<token>`: code and placeholders, not values."""
    return not any(c.isdigit() for c in value) or bool(re.search(r"[()\[\]<>${]", value)) or value.startswith("[")


def _random(word: str) -> bool:
    """Whether it jumps between lower case, upper case and digits the way only random text does. Hashes, ids and UUIDs
    have one case; identifiers change it at most once a word."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "-" for c in word]
    if min(kinds.count("d"), kinds.count("u"), kinds.count("l")) < 3:
        return False
    jumps = sum(a != b for a, b in pairwise(kinds))
    return jumps / len(word) > 0.45 and len(set(word)) > len(word) // 3
