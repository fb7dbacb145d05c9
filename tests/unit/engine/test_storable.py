from __future__ import annotations

from quintet.domain.item import ImagePart, ResultStatus
from quintet.domain.tool import ToolOutcome
from quintet.engine.storable import storable_outcome


def test_everything_a_store_can_hold_stays_as_the_tool_said_it():
    said = ToolOutcome(
        "text",
        ResultStatus.ERROR,
        "message",
        ({"type": "brief", "text": "x"},),
        ("/a",),
        "+x",
        (ImagePart("image/png", "aGk="),),
        facts={"lines": 1},
    )
    assert storable_outcome(said) == said
    assert all(getattr(said, name) for name in ToolOutcome.__struct_fields__)


def test_half_a_character_is_replaced_and_a_display_that_holds_one_goes():
    kept = storable_outcome(ToolOutcome("a\ud800", display=({"type": "brief", "text": "\ud800"},)))
    assert (kept.text, kept.display) == ("a\ufffd", ())
