"""A thread as one HTML file: no script, no link, no image, nothing fetched; a policy in its head tells browsers so."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from html import escape

from quintet.domain.item import Item
from quintet.domain.shown import spelled_out
from quintet.domain.thread import Thread
from quintet.engine.documents.passage import Form, passages

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
body { color-scheme: light dark }
h2 { font-size: 1rem; margin: 2rem 0 .25rem }
time { color: GrayText; font-size: .8rem }
p, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0 }
pre { font: 13px/1.45 ui-monospace, monospace; padding: .75rem; border: 1px solid GrayText; border-radius: 6px }
"""
# Only this very style sheet; everything else a page could load or run is forbidden.
_ALLOWED = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_ALLOWED}'; base-uri 'none'; form-action 'none'"


def html(thread: Thread, items: Iterable[Item]) -> Iterator[str]:
    """The document in pieces."""
    title = escape(spelled_out(" ".join(thread.title.split())) or "A thread without a title")
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"<p>{escape(thread.id)}, begun {_time(thread.created_ms)}</p>\n"
    )
    for passage in passages(thread, items):
        yield f"<h2>{escape(passage.heading)}</h2>\n{_time(passage.at_ms)}\n"
        for form, text in passage.pieces:
            # A browser takes away the first newline of a pre: this one, and not one of the text.
            yield f"<pre>\n{escape(text)}</pre>\n" if form is Form.VERBATIM else f"<p>{escape(text)}</p>\n"
    yield "</body>\n</html>\n"


def _time(at_ms: int) -> str:
    return f"<time>{datetime.fromtimestamp(at_ms / 1000, UTC).strftime('%Y-%m-%d %H:%M UTC')}</time>"
