"""Agreement: words that a turn gives to the model and that are not the person's own. Nothing of them is in the thread
before somebody has agreed: it is the same yes, remembered in the same way, that reading them with a tool would need.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.domain.errors import Denied


class Agreement(msgspec.Struct, frozen=True):
    tool: str  # by its own name: the one that would show these words
    arguments: dict[str, Any]
    title: str  # of the request
    digest: str  # of the content the words are taken from
    words: str = ""  # what the model is given beside the input


def refusal(agreement: Agreement, why: str) -> Denied:
    words = f"Not agreed to: {agreement.title}. {why}"
    return Denied(words, next_step="Run it again and agree to it.", agreement=agreement.tool, reason=words)
