"""Notices: put into the journal by whoever knows of what happened, in a turn or between two, and worded for the model.

Giving them to it is the turn's; the journal keeps with each thread which ones it has not been given yet.
"""

from __future__ import annotations

from collections.abc import Callable

from quintet.domain.errors import QuintetError
from quintet.domain.event import Draft, NoticePosted
from quintet.domain.notice import Notice
from quintet.engine.feed import Feed
from quintet.engine.unbroken import unbroken

MARK = "[A notice of Quintet, nobody's words: {}]"


class Notices:
    """`note` writes a line of the log."""

    def __init__(self, feed: Feed, note: Callable[[str], None] = lambda line: None) -> None:
        self._feed = feed
        self._note = note

    async def post(self, thread: str, notice: Notice) -> None:
        """On disk when this returns. Where it cannot be kept, the log has it: nobody waits for it who could be told."""
        try:
            await unbroken(self._feed.append([Draft(NoticePosted(notice), thread)]))
        except QuintetError as error:
            self._note(f"A notice of {thread} could not be kept ({error.message}): {notice.title}")


def for_model(notice: Notice, look_with: str) -> str:
    """`look_with` is the tool that shows more, under the name this model knows; empty where it has none."""
    hint = f"\nLook at it with {look_with}." if look_with else ""
    return f"{MARK.format(notice.title)}\n{notice.body}{hint}"
