"""Model requests made of bodies, as an engine would make them."""

from __future__ import annotations

from quintet.domain.item import Body, Item
from quintet.domain.model import Chunk, ModelRequest, ReasoningChunk, TextChunk, ToolInput, ToolStart
from quintet.domain.ports import Provider
from quintet.domain.tool import ToolSpec

ALL_TOOLS = ("read", "write", "edit", "shell", "list", "grep", "glob", "todo", "ask_user")


def items_of(*turns: list[Body]) -> tuple[Item, ...]:
    """Each list is one turn."""
    made: list[Item] = []
    for number, bodies in enumerate(turns, 1):
        for body in bodies:
            place = len(made) + 1
            made.append(Item(f"itm_{place}", "thr_1", f"trn_{number}", place, 0, body))
    return tuple(made)


def request_of(*turns: list[Body], tools: tuple[str, ...] = ALL_TOOLS) -> ModelRequest:
    specs = tuple(ToolSpec(name, "", {}) for name in tools)
    return ModelRequest("m", "", items_of(*turns), specs, "thr_1")


async def all_chunks(provider: Provider, request: ModelRequest) -> list[Chunk]:
    return [chunk async for chunk in provider.stream(request)]


def text_in(chunks: list[Chunk]) -> str:
    return "".join(c.text for c in chunks if isinstance(c, TextChunk))


def thought_in(chunks: list[Chunk]) -> str:
    return "".join(c.text for c in chunks if isinstance(c, ReasoningChunk))


def calls_in(chunks: list[Chunk]) -> list[tuple[str, str, str]]:
    """(id, name, whole input) of every call."""
    starts = [c for c in chunks if isinstance(c, ToolStart)]
    return [
        (s.call_id, s.name, "".join(c.text for c in chunks if isinstance(c, ToolInput) and c.call_id == s.call_id))
        for s in starts
    ]
