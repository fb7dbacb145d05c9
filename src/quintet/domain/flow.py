"""Flow: a chart of tasks and decisions that is walked from BEGIN to END. What makes one, and what is wrong with one.

Knows no language a chart is written in, nothing of where it lies, and walks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from quintet.domain.errors import Invalid

NODES_AT_MOST = 1_000


class Kind(StrEnum):
    BEGIN = "begin"
    END = "end"
    TASK = "task"
    DECISION = "decision"  # more than one way leads on, and one is chosen by its label


class Node(msgspec.Struct, frozen=True):
    id: str
    text: str
    kind: Kind
    line: int  # where it was first written


class Edge(msgspec.Struct, frozen=True):
    to: str
    label: str
    line: int


class Flow(msgspec.Struct, frozen=True):
    """Every node that can be reached has a way on, except END; those of a decision have labels of their own."""

    nodes: dict[str, Node]
    edges: dict[str, tuple[Edge, ...]]  # by the node they start from, in the order they were written
    begin: str

    def ways(self, node: str) -> tuple[Edge, ...]:
        return self.edges.get(node, ())


def wrong(line: int, words: str) -> Invalid:
    """What is wrong with a chart, with the line it stands in."""
    return Invalid(f"Line {line}: {words}", next_step="Correct the chart and run the flow again.")


class Chart:
    """A flow while it is being read."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, bool, int]] = {}  # by id: the text, whether it was given, the line
        self._edges: dict[str, list[Edge]] = {}

    def node(self, id: str, line: int, text: str | None = None) -> None:
        """A node is what it is called until a text is given to it; a second, different text is a mistake."""
        if text is not None and not text.strip():
            raise wrong(line, f"the node {id} has an empty text.")
        before = self._texts.get(id)
        if before is None:
            if len(self._texts) == NODES_AT_MOST:
                raise wrong(line, f"a chart has {NODES_AT_MOST} nodes at most.")
            self._texts[id] = (id if text is None else text, text is not None, line)
        elif text is not None and text != before[0]:
            if before[1]:
                raise wrong(line, f"the node {id} already has another text, in line {before[2]}.")
            self._texts[id] = (text, True, before[2])

    def edge(self, start: str, end: str, line: int, label: str = "") -> None:
        self._edges.setdefault(start, []).append(Edge(end, label.strip(), line))

    def flow(self) -> Flow:
        """What was read, if it can be walked."""
        nodes = {id: Node(id, text, self._kind(id, text), line) for id, (text, _, line) in self._texts.items()}
        begin, end = _only(nodes, Kind.BEGIN), _only(nodes, Kind.END)
        flow = Flow(nodes, {start: tuple(edges) for start, edges in self._edges.items()}, begin.id)
        reached = set(_reached(flow))
        for node in nodes.values():
            if node.id in reached:
                _walkable(flow, node)
        if end.id not in reached:
            raise wrong(end.line, "END cannot be reached from BEGIN.")
        return flow

    def _kind(self, id: str, text: str) -> Kind:
        match text.strip().casefold():
            case "begin":
                return Kind.BEGIN
            case "end":
                return Kind.END
        return Kind.DECISION if len(self._edges.get(id, ())) > 1 else Kind.TASK


def _only(nodes: dict[str, Node], kind: Kind) -> Node:
    found = [node for node in nodes.values() if node.kind is kind]
    if not found:
        raise Invalid(f"The chart has no {kind.upper()}.", next_step=f"Give one node the text {kind.upper()}.")
    if len(found) > 1:
        raise wrong(found[1].line, f"a second {kind.upper()}; the first is in line {found[0].line}.")
    return found[0]


def _reached(flow: Flow) -> Iterator[str]:
    seen, waiting = {flow.begin}, [flow.begin]
    while waiting:
        here = waiting.pop()
        yield here
        for edge in flow.ways(here):
            if edge.to not in seen:
                seen.add(edge.to)
                waiting.append(edge.to)


def _walkable(flow: Flow, node: Node) -> None:
    ways = flow.ways(node.id)
    match node.kind:
        case Kind.END:
            if ways:
                raise wrong(ways[0].line, "something leads on from END.")
        case _ if not ways:
            raise wrong(node.line, f"nothing leads on from the node {node.id}; draw an arrow, to END for one.")
        case Kind.BEGIN if len(ways) > 1:
            raise wrong(ways[1].line, "more than one way leads on from BEGIN; decide in a node behind it.")
        case Kind.DECISION:
            _labelled(node, ways)


def _labelled(node: Node, ways: tuple[Edge, ...]) -> None:
    seen: set[str] = set()
    for edge in ways:
        if not edge.label:
            raise wrong(edge.line, f"several ways lead on from the node {node.id}, and this one has no label.")
        if edge.label in seen:
            raise wrong(edge.line, f"two ways from the node {node.id} have the label {edge.label!r}.")
        seen.add(edge.label)
