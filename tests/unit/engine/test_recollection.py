"""Which memories come to mind, why, and in which words the model is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from quintet.domain.memory import Layer, Memories, Memory, MemoryStatus
from quintet.engine.recollection import SHOWN, expired, recollected, told

NOW = datetime(2026, 5, 1, tzinfo=UTC)
HERE = ("global", "workspace:/w")


def core(number: int, text: str = "wish", **more: Any) -> Memory:
    return Memory(f"core_{number:03}", Layer.CORE, text, **more)


def soft(number: int, text: str = "hint", **more: Any) -> Memory:
    given = {"confidence": 0.65, "last_seen_at": NOW.isoformat()} | more
    return Memory(f"soft_{number:03}", Layer.SOFT, text, **given)


def ids(kept: Memories, words: str = "", before: tuple[str, ...] = ()) -> list[str]:
    return [found.id for found in recollected(kept, words, HERE, NOW, before)]


def test_at_most_six_of_each_layer_come_to_mind() -> None:
    kept = Memories(tuple(core(n) for n in range(9)), tuple(soft(n) for n in range(9)))
    found = recollected(kept, "", HERE, NOW)
    assert [f.layer for f in found] == [Layer.CORE] * 6 + [Layer.SOFT] * 6


def test_another_workspace_s_what_is_over_and_what_waits_do_not() -> None:
    old = (NOW - timedelta(days=61)).isoformat()
    kept = Memories(
        (core(1, scope="workspace:/other"), core(2, scope="workspace:/w")),
        (
            soft(1, scope="workspace:/other"),
            soft(2, last_seen_at=old),
            soft(3, status=MemoryStatus.PROPOSED),
            soft(4, status=MemoryStatus.FORGOTTEN),
            soft(5),
        ),
    )
    assert ids(kept) == ["core_002", "soft_005"]


def test_one_whose_time_cannot_be_read_or_has_no_end_is_not_over() -> None:
    assert not expired(soft(1, last_seen_at="yesterday"), NOW)
    assert not expired(soft(1, last_seen_at="2001-01-01T00:00:00Z", ttl_days=0), NOW)
    assert not expired(soft(1, last_seen_at="2026-05-01"), NOW)  # without a zone it cannot be compared
    assert expired(soft(1, last_seen_at="2001-01-01T00:00:00Z"), NOW)


def test_what_fits_the_input_comes_before_what_does_not() -> None:
    kept = Memories(
        soft=(*(soft(n, "something else") for n in range(8)), soft(9, "Tests run with pytest", tags=("ci",)))
    )
    assert "soft_009" not in ids(kept, "hello")
    assert "soft_009" in ids(kept, "how do I run the tests")
    assert "soft_009" in ids(kept, "mend the CI")


def test_the_reasons_count_and_do_not_quote() -> None:
    kept = Memories(soft=(soft(1, "Deploys go through Jenkins", tags=("jenkins",)),))
    (found,) = recollected(kept, "restart jenkins and look at deploys", HERE, NOW)
    assert found.reasons == (
        "in scope",
        "confidence 0.65",
        "2 words in common with the input",
        "a tag is in the input",
    )
    assert found.score == 1.2


def test_what_came_to_mind_before_stays_unless_another_fits_clearly_better() -> None:
    kept = Memories(soft=(*(soft(n, "alpha") for n in range(6)), soft(6, "beta gamma delta")))
    before = tuple(f"soft_{n:03}" for n in range(6))
    assert ids(kept, "beta", before) == list(before)
    assert "soft_006" in ids(kept, "beta gamma delta", before)


def test_the_same_ones_are_told_in_the_same_bytes_whatever_the_input_is() -> None:
    kept = Memories((core(1, "Be brief"),), (soft(1, "one apple"), soft(2, "two pears")))
    texts = {told(kept, recollected(kept, words, HERE, NOW)) for words in ("apple", "pears", "")}
    assert len(texts) == 1
    (text,) = texts
    assert text.index("[core_001] Be brief") < text.index("[soft_001] one apple") < text.index("[soft_002] two pears")


def test_nothing_is_told_where_nothing_came_to_mind_and_a_long_one_is_cut_and_says_so() -> None:
    assert told(Memories(), ()) == ""
    kept = Memories((core(1, "x" * (SHOWN + 5) + "\n# A heading"),))
    text = told(kept, recollected(kept, "", HERE, NOW))
    assert f"[cut: {SHOWN} of {SHOWN + 17} characters]" in text
    assert "\n# A heading" not in text
