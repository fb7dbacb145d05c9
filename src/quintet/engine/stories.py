"""Stories: what a thread's calls did to files, read from the journal; a call that was cut off is compared now."""

from __future__ import annotations

from quintet.domain.errors import STORAGE_ERRORS, as_quintet_error
from quintet.domain.ports import FileHistory
from quintet.engine.changes import Call, Story, story_of
from quintet.engine.feed import Feed

BACKGROUND = "the command went on in the background; what it changed later is not in it"
DAMAGED = "{} of this thread's checkpoints cannot be read any more"


class Stories:
    def __init__(self, feed: Feed, history: FileHistory) -> None:
        self._feed = feed
        self._history = history

    async def of(self, thread: str) -> Story:
        journal = self._feed.journal
        story = story_of(await journal.checkpoints(thread=thread))
        # A call that still runs is not compared: what it has put aside is its own until it is over.
        running = {e.seq for e in await journal.open_checkpoints()}
        for place, call in enumerate(story.calls):
            if not call.settled and call.made not in running:
                story.calls[place] = await self._as_found(call)
        return story

    async def _as_found(self, call: Call) -> Call:
        try:
            return call.as_found(await self._history.compare(call.secured, cut_off=True))
        except STORAGE_ERRORS:
            raise
        except Exception as error:
            why = f"what {call.name} changed cannot be found out any more ({as_quintet_error(error).message})"
            return Call(call.turn, call.call_id, call.name, call.made, call.secured, partial=(*call.partial, why))


def partial_words(story: Story, calls: list[Call]) -> tuple[str, ...]:
    """Why what is known of these calls is not all there is to know."""
    words = [why for call in calls for why in call.partial]
    words += [f"the end of a {call.name} call is unknown: it was cut off" for call in calls if not call.settled]
    if story.damaged:
        words.append(DAMAGED.format(story.damaged))
    return tuple(dict.fromkeys(words))
