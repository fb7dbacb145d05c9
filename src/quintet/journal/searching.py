"""Full-text search: a person's words made safe, hidden items left out, snippets made from the items themselves."""

from __future__ import annotations

import re

from quintet.domain.item import Damaged, text_of
from quintet.domain.thread import SearchHit, Thread
from quintet.journal.codec import item_of
from quintet.journal.rows import Reads

MAX_WORDS = 16
_WORD = re.compile(r"[^\W_]+")
_AROUND = 60


def words_of(text: str, *, most: int | None = MAX_WORDS) -> list[str]:
    """The words in a text, as the index cuts them: runs of letters and digits. Whatever else was typed is no syntax."""
    return [w.lower() for w in _WORD.findall(text)[:most]]


def search(rows: Reads, text: str, *, project: str, hidden: bool, limit: int) -> list[SearchHit]:
    words = words_of(text)
    hits: list[SearchHit] = []
    if not words or limit <= 0:
        return hits
    threads: dict[str, Thread | None] = {}
    for thread, ordinal in rows.matches(words):
        if thread not in threads:
            threads[thread] = rows.thread(thread)
        here = threads[thread]
        if here is None or here.deleted_ms or (project and here.project != project):
            continue
        is_hidden = here.view.is_hidden(ordinal)
        if is_hidden and not hidden:
            continue
        for row in rows.item_range(thread, ordinal, ordinal):
            item = item_of(row)
            if not isinstance(item.body, Damaged):
                said = snippet(text_of(item.body), words)
                hits.append(SearchHit(thread, here.title, ordinal, item.id, item.at_ms, said, is_hidden))
        if len(hits) >= limit:
            break
    return hits


def snippet(text: str, words: list[str]) -> str:
    """The neighbourhood of the first word found, on one line."""
    lower = text.lower()
    places = [p for w in words if (p := lower.find(w)) >= 0]
    at = min(places, default=0)
    low, high = max(at - _AROUND, 0), min(at + 2 * _AROUND, len(text))
    cut = " ".join(text[low:high].split())
    return ("…" if low else "") + cut + ("…" if high < len(text) else "")
