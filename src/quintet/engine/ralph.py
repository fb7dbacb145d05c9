"""Ralph: one prompt given to the model again and again, until it says that all of it is done or the times are up.

A flow of two nodes and no more; walking it is the business of whoever walks flows.
"""

from __future__ import annotations

from quintet.domain.flow import Edge, Flow, Kind, Node
from quintet.engine.flows import INPUTS_AT_MOST, FlowToRun

GO_ON, STOP = "CONTINUE", "STOP"
_NOTE = (
    "(The same is asked of you again and again, by a program, until all of it is done. Look at what there is now and "
    f"go on. Choose {STOP} only where you are certain that nothing is left to do, else {GO_ON}.)"
)


def again(prompt: str, more: int) -> FlowToRun:
    """`more` times beyond the first; below 0 as often as any flow may ask."""
    nodes = (
        Node("BEGIN", "BEGIN", Kind.BEGIN, 1),
        Node("first", prompt, Kind.TASK, 2),
        Node("again", f"{prompt}\n\n{_NOTE}", Kind.DECISION, 3),
        Node("END", "END", Kind.END, 4),
    )
    edges = {
        "BEGIN": (Edge("first", "", 1),),
        "first": (Edge("again", "", 2),),
        "again": (Edge("again", GO_ON, 3), Edge("END", STOP, 3)),
    }
    most = INPUTS_AT_MOST if more < 0 else min(more + 1, INPUTS_AT_MOST)
    return FlowToRun("again", Flow({node.id: node for node in nodes}, edges, "BEGIN"), most=most)
