"""Spelling: a tool under another name and argument form, for a protocol whose models and clients know it so.

The name is for the model, the items and the client; policy, grants, hooks of the person and agents go by the tool's own
name and arguments, so that what is allowed or forbidden holds however the tool is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from quintet.domain.errors import Invalid
from quintet.domain.item import Item, ToolCall, ToolResult
from quintet.domain.ports import Tool, ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec

Given = dict[str, Any]


def as_it_is(given: Given) -> Given:
    return given


def untold(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    return outcome


class Spelling(msgspec.Struct, frozen=True):
    name: str
    own: str  # the tool's own name
    description: str
    parameters: dict[str, Any]
    inward: Callable[[Given], Given] = as_it_is  # from these arguments to the tool's own; raises Invalid
    outward: Callable[[Given], Given] = as_it_is  # and back
    told: Callable[[ToolOutcome, Prepared], ToolOutcome] = untold  # what came of it, in the words that go with the name


class Respelled:
    """Plays domain.ports.Tool."""

    def __init__(self, tool: Tool, spelling: Spelling) -> None:
        self.tool = tool
        self.spelling = spelling

    @property
    def spec(self) -> ToolSpec:
        row = self.spelling
        return replace(
            self.tool.spec, name=row.name, description=row.description, parameters=row.parameters, own=row.own
        )

    async def prepare(self, arguments: Given, scope: CallScope) -> Prepared:
        row = self.spelling
        try:
            return await self.tool.prepare(row.inward(arguments), scope)
        except Invalid as error:
            # Tools begin what they say of arguments with their own name, which this model does not know.
            words = error.message.removeprefix(f"{row.own}: ")
            raise Invalid(f"{row.name}: {words}", next_step=error.step, **error.data) from None

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        return self.spelling.told(await self.tool.run(prepared, context), prepared)


class Spellings:
    """Of the tools one turn has; or of rows alone, for whoever only retells."""

    def __init__(self, tools: Sequence[Tool], rows: Sequence[Spelling] = ()) -> None:
        rows = [*rows, *(tool.spelling for tool in tools if isinstance(tool, Respelled))]
        self._by_name = {row.name: row for row in rows}
        self._own_tools = {tool.spelling.own: tool.tool for tool in tools if isinstance(tool, Respelled)}
        self._by_own: dict[str, Spelling] = {}
        for row in rows:
            self._by_own.setdefault(row.own, row)

    @property
    def own_names(self) -> Mapping[str, str]:
        return {name: row.own for name, row in self._by_name.items()}

    def name_of(self, own: str) -> str:
        """What the model is to be told when a tool is meant."""
        row = self._by_own.get(own)
        return row.name if row else own

    def own_call(self, name: str, given: Given) -> tuple[str, Given]:
        """A call as those know it who know only the tools' own names."""
        row = self._by_name.get(name)
        if row is None:
            return name, given
        try:
            return row.own, row.inward(given)
        except Invalid:
            return row.own, given  # the tool will say what is wrong with it

    def own_tool(self, name: str) -> Tool | None:
        """The tool whose own name this is: a model that read it in what was done elsewhere may call it so."""
        return self._own_tools.get(name)

    def outward(self, name: str, arguments: str) -> tuple[str, str]:
        """A call under a tool's own name, as this turn's model would have written it; another one as it is."""
        row = None if name in self._by_name else self._by_own.get(name)
        if row is None:
            return name, arguments
        try:
            given = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
            made = row.outward(given)
        except (msgspec.DecodeError, msgspec.ValidationError, LookupError, TypeError, AttributeError):
            return row.name, arguments  # it was no good under its own name either
        return row.name, arguments if made == given else msgspec.json.encode(made).decode()

    def respelled(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """What was called elsewhere under the tools' own names, in the words of this turn's model."""
        return tuple(map(self._item, items)) if self._by_own else items

    def _item(self, item: Item) -> Item:
        match item.body:
            case ToolCall(name=name, input=given) as call if name in self._by_own:
                shown, arguments = self.outward(name, given)
                return replace(item, body=replace(call, name=shown, input=arguments, own=name))
            case ToolResult(name=name) as result if name in self._by_own:
                return replace(item, body=replace(result, name=self.name_of(name)))
        return item
