"""Stories: what a thread's calls and their subagents did to files, read from the journal; a call that was cut off is
compared now.
"""

from __future__ import annotations

from msgspec.structs import replace

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
        await self._add_subagents(thread, story)
        # A call that still runs is not compared: what it has put aside is its own until it is over.
        running = {e.seq for e in await journal.open_checkpoints()}
        for place, call in enumerate(story.calls):
            if not call.settled and call.made not in running:
                story.calls[place] = await self._as_found(call)
        return story

    async def _add_subagents(self, thread: str, story: Story) -> None:
        """What subagents did, as the doing of the calls of this thread that they worked for."""
        journal = self._feed.journal
        served: dict[str, dict[str, tuple[str, str]]] = {thread: {}}  # by thread, by turn: the turn and call up here
        for child in reversed(await journal.tree(thread)):  # each one behind its parent
            if child.parent not in served:
                continue
            above, own = served[child.parent], {}
            for turn in await journal.turns(child.id):
                if child.parent == thread:
                    own[turn.id] = (turn.for_turn, turn.for_call)
                elif turn.for_turn in above:
                    own[turn.id] = above[turn.for_turn]
            served[child.id] = own
            below = story_of(await journal.checkpoints(thread=child.id))
            for call in below.calls:
                if call.turn in own and own[call.turn][0]:
                    story.calls.append(replace(call, turn=own[call.turn][0], call_id=own[call.turn][1]))
            story.restores += below.restores
            story.damaged += below.damaged
        story.calls.sort(key=lambda call: call.made)
        story.restores.sort(key=lambda restore: restore.seq)

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
