"""Event kinds: each declared once, with payload, durability and who may write it."""

from __future__ import annotations

import re

from quintet.domain.errors import QuintetError, all_error_classes
from quintet.domain.event import KIND_BY_NAME, KIND_OF, KINDS, Delta, Durability, Payload
from quintet.domain.thread import title_from


def test_every_kind_is_declared_once_and_named_noun_dot_past() -> None:
    assert len(KIND_BY_NAME) == len(KIND_OF) == len(KINDS)
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", k.name) for k in KINDS)


def test_every_payload_type_belongs_to_a_kind() -> None:
    ours = {t for t in (*Payload.__subclasses__(), *Delta.__subclasses__()) if t.__module__.startswith("quintet.")}
    assert ours == set(KIND_OF)


def test_deltas_are_exactly_the_array_like_payloads() -> None:
    assert all((k.durability is Durability.DELTA) == issubclass(k.payload, Delta) for k in KINDS)


def test_every_error_has_its_own_code_and_says_what_to_do_next() -> None:
    codes = [c.code for c in all_error_classes()]
    assert len(codes) == len(set(codes))
    for error in all_error_classes():
        made: QuintetError = error("It happened.")
        assert made.line().startswith("It happened. ")
        assert made.info().next_step.endswith(".")


def test_a_title_is_the_first_line_with_words_cut_to_eighty() -> None:
    assert title_from("\n\n  fix   the\tbug \nmore") == "fix the bug"
    assert title_from("x" * 200) == "x" * 79 + "…"
    assert title_from(" \n ") == ""
