"""Redaction: known values never pass, in any form or split; everything else is left alone and not delayed."""

from __future__ import annotations

import base64
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.domain.event import ItemAdded
from quintet.domain.item import Item, ResultStatus, ToolResult, user_text
from quintet.domain.thread import ThreadSettings
from quintet.engine.redaction import MASK, RedactedStream, Redactor

SECRET = 'k9/"Zt+p\\w3=ü secret'
redactor = Redactor([SECRET])


@pytest.mark.req("mechanisms:M9.known", "security:S44")
@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"user:" + SECRET.encode()).decode(),
        base64.b64encode(b"ab" + SECRET.encode() + b"xyz").decode(),
    ],
)
def test_a_known_value_is_masked_in_every_form(form: str) -> None:
    masked = redactor.text(f"before {form} after")
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert form not in masked


@pytest.mark.req("mechanisms:M9.known", "security:S44")
def test_a_struct_is_masked_wherever_the_value_stands() -> None:
    body = ToolResult("c1", "shell", ResultStatus.OK, f"x{SECRET}y", display=({"a": [SECRET]},))
    masked = redactor.struct(ItemAdded(Item("itm_1", "thr_1", "trn_1", 1, 0, body)))
    assert isinstance(masked.item.body, ToolResult)
    assert masked.item.body.text == f"x{MASK}y"
    assert masked.item.body.display == ({"a": [MASK]},)


def test_what_holds_no_secret_is_the_very_same_object() -> None:
    payload = ItemAdded(Item("itm_1", "thr_1", "trn_1", 1, 0, user_text("nothing here")))
    assert redactor.struct(payload) is payload


def test_short_values_are_not_taken_for_secrets() -> None:
    assert Redactor(["abc1234"]).idle


@pytest.mark.req("mechanisms:M9.stream", "security:S44")
@given(st.text(alphabet="ab k9/", max_size=20), st.text(alphabet="ab k9/", max_size=20), st.data())
def test_a_value_split_over_deltas_never_passes(before: str, after: str, data: st.DataObject) -> None:
    text = before + SECRET + after
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    stream = RedactedStream(redactor)
    said = "".join(stream.add(piece) for piece in pieces) + stream.release()
    assert SECRET[2:] not in said  # at most two characters of it went out before it could be recognised
    assert said.count(MASK) == 1
    assert said.endswith(redactor.text(after))


@pytest.mark.req("mechanisms:M9.stream")
def test_only_a_possible_beginning_of_a_value_is_held_back() -> None:
    stream = RedactedStream(redactor)
    assert stream.add("plain words k9/") == "plain words "
    assert stream.holding
    assert stream.add(" is a path") == "k9/ is a path"
    assert not stream.holding


@pytest.mark.req("mechanisms:M9.stream", "security:S44")
@given(st.integers(3, len(SECRET) - 1))
def test_when_the_wait_inside_a_value_was_too_long_its_rest_is_still_masked(cut: int) -> None:
    stream = RedactedStream(redactor)
    said = stream.add("key: " + SECRET[:cut]) + stream.release() + stream.add(SECRET[cut:] + " ok") + stream.release()
    assert said == f"key: {SECRET[:cut]}{MASK} ok"


@pytest.mark.req("mechanisms:M9.stream")
def test_what_was_held_comes_out_when_the_text_ends() -> None:
    stream = RedactedStream(redactor)
    assert stream.add(SECRET[:6]) == ""
    assert stream.release() == SECRET[:6]


@pytest.mark.req("mechanisms:M9.known")
def test_a_value_that_is_no_text_is_known_too_and_breaks_nothing() -> None:
    """As an environment variable with bytes that are not UTF-8 is read."""
    value = b"c4nary\xff\xfe-latin-\xe9".decode("utf-8", "surrogateescape")
    odd = Redactor([value, "\ud83dplain-half-1234"])
    shown = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    encoded = base64.b64encode(value.encode("utf-8", "surrogateescape")).decode()
    assert odd.text(f"a {shown} b") == f"a {MASK} b"
    assert encoded[:-4] not in odd.text(encoded)
    assert odd.text("nothing here") == "nothing here"


@pytest.mark.req("mechanisms:M9.known")
@pytest.mark.parametrize("value", ["assistant", "00000000", "17000000", "itm_0000", "tool_result", "/project/here"])
def test_a_value_that_looks_like_the_structs_own_words_breaks_nothing(value: str) -> None:
    item = Item("itm_00000000000000000000000000", "thr_1", "trn_1", 1, 1_700_000_000_000, user_text(f"it is {value}"))
    masked = Redactor([value]).struct(ItemAdded(item))
    assert masked.item == msgspec.structs.replace(item, body=user_text(f"it is {MASK}"))
    settings = ThreadSettings(cwd="/project/here", agent="/project/here")
    assert Redactor(["/project/here"]).struct(settings) == ThreadSettings(cwd="/project/here", agent=MASK)
