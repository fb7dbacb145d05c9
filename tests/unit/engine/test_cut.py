"""Where a compaction cuts, what it retells, how sizes are counted: the pure parts."""

from __future__ import annotations

import random

import pytest

from quintet.domain.checkpoint import FileChange, FileKind, FileState
from quintet.domain.compaction import CompactionRecord, recorded
from quintet.domain.event import CheckpointSettled, Event
from quintet.domain.item import (
    AssistantMessage,
    Body,
    Damaged,
    ImagePart,
    Item,
    MediaKind,
    MediaPart,
    Reasoning,
    ResultStatus,
    Summary,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    user_text,
)
from quintet.domain.model import ModelInfo, ModelRequest, Usage
from quintet.domain.view import View
from quintet.engine.context import Context
from quintet.engine.cut import cut
from quintet.engine.files_seen import LISTED, files_lines, files_seen
from quintet.engine.gauge import MEDIA_TOKENS, Gauge, Room, rough_items
from quintet.engine.retelling import retold

PICTURE = ImagePart("image/png", "A" * 90_000)
CLIP = MediaPart(MediaKind.VIDEO, f"data:video/mp4;base64,{'A' * 90_000}")
SOUND = MediaPart(MediaKind.AUDIO, f"data:audio/wav;base64,{'A' * 90_000}")


def items(*bodies: Body, turn: str = "t1") -> list[Item]:
    return [Item(f"i{n}", "thr", turn, n, 0, body) for n, body in enumerate(bodies, 1)]


def asks(call_id: str) -> ToolCall:
    return ToolCall(call_id, "look", "{}")


def tells(call_id: str, text: str = "x" * 400) -> ToolResult:
    return ToolResult(call_id, "look", ResultStatus.OK, text)


@pytest.mark.req("models:C2")
@pytest.mark.parametrize("seed", range(40))
def test_wherever_it_cuts_no_call_is_parted_from_its_result_and_no_thought_from_its_call(seed: int) -> None:
    dice = random.Random(seed)
    bodies: list[Body] = [user_text("begin")]
    for step in range(dice.randint(1, 12)):
        bodies.append(Reasoning("hm", "signed"))
        ids = [f"s{step}c{n}" for n in range(dice.randint(1, 3))]
        bodies += [asks(i) for i in ids]
        bodies += [tells(i, "x" * dice.randint(0, 900)) for i in dice.sample(ids, len(ids))]
        if dice.random() < 0.2:
            bodies.append(user_text("and this", steered=True))
    given = items(*bodies)
    found = cut(given, dice.randint(0, rough_items(given)), turn="t1", resting=dice.random() < 0.5)
    if found is None:
        return
    kept = [i for i in given if i.ordinal >= found.first_kept]
    assert [*found.older, *kept] == given
    asked = {i.body.call_id for i in kept if isinstance(i.body, ToolCall)}
    assert asked == {i.body.call_id for i in kept if isinstance(i.body, ToolResult)}
    assert not isinstance(kept[0].body, ToolCall | ToolResult) if kept else True
    assert set(found.also) == {i.ordinal for i in found.older if isinstance(i.body, UserMessage)}


@pytest.mark.req("models:C2")
def test_the_newest_items_are_kept_up_to_the_measure_and_the_newest_answer_even_beyond_it() -> None:
    given = items(user_text("go"), *(b for n in range(9) for b in (asks(f"c{n}"), tells(f"c{n}"))))
    roomy, tight = cut(given, 300, turn="t1"), cut(given, 1, turn="t1")
    assert roomy is not None
    assert tight is not None
    assert (roomy.first_kept, tight.first_kept) == (16, 18)
    assert tight.also == (1,)
    resting = cut(given, 1, resting=True)
    assert resting is not None
    assert resting.first_kept == 20


@pytest.mark.req("models:C2")
def test_what_an_earlier_compaction_has_summarised_does_not_come_back() -> None:
    """The person's request stands before what was kept; a cut there would bring back everything behind it."""
    ordinals = [(50, Summary("before")), (3, user_text("go")), (40, asks("a")), (41, tells("a")), (51, asks("b"))]
    given = [Item(f"i{n}", "thr", "t1", n, 0, body) for n, body in [*ordinals, (52, tells("b"))]]
    found = cut(given, 10_000, first=40, turn="t1")
    assert found is None  # only the summary and the request stand before what is kept
    found = cut(given, 1, first=40, turn="t1")
    assert found is not None
    assert (found.first_kept, found.also) == (51, (3,))
    steered = [given[0], given[1], Item("i20", "thr", "t1", 20, 0, user_text("and")), *given[2:]]
    found = cut(steered, 10_000, first=40, turn="t2", resting=True)
    assert found is not None
    assert (found.first_kept, found.also) == (40, ())


def test_there_is_nothing_to_compact_in_an_empty_thread_or_behind_a_summary_alone() -> None:
    assert cut([], 10, resting=True) is None
    assert cut(items(Summary("before")), 0, resting=True) is None


def test_long_results_are_retold_in_part_and_it_says_so() -> None:
    told = retold(items(user_text("go"), asks("a"), tells("a", "A" * 3_000 + "Z" * 3_000)), 10**6)
    assert "[… 4,000 characters left out …]" in told
    assert told.count("A") < 2_000
    assert told.endswith("Z" * 500)


def test_without_room_the_oldest_go_first_and_the_persons_words_last() -> None:
    bodies = [Summary("before"), user_text("mind this"), *(tells(f"c{n}", f"result {n} " * 30) for n in range(20))]
    told = retold(items(*bodies), 2_000)
    assert len(told) < 2_200
    assert "mind this" in told
    assert "## Summary of what came before\nbefore" in told
    assert "result 19" in told
    assert "result 0 " not in told
    assert "older entries are left out here" in told


def test_an_item_that_can_no_longer_be_read_is_said_to_be_there() -> None:
    assert "can no longer be read" in retold(items(Damaged()), 1_000)


def test_a_summary_is_made_of_what_was_shown_by_name() -> None:
    told = retold(items(UserMessage((TextPart("see"), PICTURE, CLIP, SOUND))), 1_000)
    assert told == (
        "## The person\nsee\n[an image, image/png, 67500 bytes]\n[a video, video/mp4, 67500 bytes]\n"
        "[sound, audio/wav, 67500 bytes]"
    )


def test_what_is_shown_or_heard_counts_as_such_not_as_its_letters() -> None:
    for part in (PICTURE, CLIP, SOUND):
        assert rough_items(items(UserMessage((part,)))) < MEDIA_TOKENS[part.kind] + 100
        shown = ToolResult("c", "read", ResultStatus.OK, "", images=(part,))
        assert rough_items(items(shown)) < MEDIA_TOKENS[part.kind] + 100


def test_a_request_grows_in_the_proportion_the_provider_counted() -> None:
    gauge = Gauge()
    small = ModelRequest("m", "", tuple(items(user_text("x" * 4_000))), (), "thr")
    large = ModelRequest("m", "", tuple(items(user_text("x" * 8_000))), (), "thr")
    gauge.measured(small, Usage(input_tokens=3_000))
    assert gauge.tokens(small) == 3_000
    assert 5_900 < gauge.tokens(large) < 6_000
    gauge.measured(large, Usage())
    assert gauge.tokens(small) == 3_000
    gauge.refused(small, Room(10_000, 9_000, 7_000))
    assert gauge.tokens(small) >= 8_999


def test_an_answer_said_to_be_as_long_as_the_window_leaves_half_of_it_for_input() -> None:
    assert Room.of(ModelInfo("a/b", 1_000, 1_000)) == Room(1_000, 500, 400)
    assert Room.of(ModelInfo("a/b", 1_000, 200)) == Room(1_000, 800, 640)
    assert Room.of(ModelInfo("a/b")) is None


@pytest.mark.req("models:C9")
def test_results_are_left_out_from_the_oldest_on_and_only_as_many_as_needed() -> None:
    given = items(
        user_text("go"), *(b for n in range(5) for b in (asks(f"c{n}"), tells(f"c{n}"))), tells("c9", "short")
    )
    whole = Context(View(), given)
    trimmed = whole.trimmed(rough_items(given) - 150)
    texts = [i.body.text for i in trimmed.for_model() if isinstance(i.body, ToolResult)]
    note = "[result of 400 characters left out to save room]"
    assert texts == [note, note, "x" * 400, "x" * 400, "x" * 400]
    assert [i.body for i in trimmed.all()] == [i.body for i in given]
    assert trimmed.trimmed(0).trimmed(0).for_model() == trimmed.trimmed(0).for_model()


@pytest.mark.req("models:C9")
def test_images_of_a_result_are_left_out_with_it_and_counted_in_the_note() -> None:
    seen = ToolResult("a", "look", ResultStatus.OK, "short", images=(PICTURE, PICTURE))
    (_, result) = Context(View(), items(asks("a"), seen)).trimmed(0).for_model()
    assert isinstance(result.body, ToolResult)
    assert (result.body.text, result.body.images) == ("[result of 5 characters and 2 images left out to save room]", ())


@pytest.mark.req("models:C5")
def test_files_are_listed_once_where_they_were_used_last_and_a_failed_read_is_none() -> None:
    def reads(call_id: str, path: str, status: ResultStatus = ResultStatus.OK) -> list[Body]:
        return [ToolCall(call_id, "read", f'{{"path": "{path}"}}'), ToolResult(call_id, "read", status, "")]

    failed = reads("4", "gone.py", ResultStatus.ERROR)
    given = items(*reads("1", "a.py"), *reads("2", "/p/b.py"), *reads("3", "/p/x/../a.py"), *failed, asks("5"))
    assert files_seen(given, [], "/p") == (["b.py", "a.py"], [])
    odd = items(ToolCall("1", "read", "[1"), tells("1"), ToolCall("2", "read", "[]"), tells("2"))
    assert files_seen(odd, [], "/p") == ([], [])


@pytest.mark.req("models:C5")
def test_a_change_known_only_from_a_checkpoint_is_listed_and_long_lists_say_what_is_missing() -> None:
    change = FileChange("made.py", FileState(), FileState(FileKind.FILE))
    settled = CheckpointSettled("a", "look", "/p", (change,))
    event = Event(1, "checkpoint.settled", 0, settled, "thr", "thr", "t1")
    assert files_seen(items(asks("a"), tells("a")), [event], "/p") == ([], ["made.py"])
    assert files_seen(items(asks("b"), tells("b")), [event], "/p") == ([], [])
    many = ToolResult("a", "look", ResultStatus.OK, "", changed_files=tuple(f"/p/f{n}" for n in range(LISTED + 7)))
    lines = files_lines(items(asks("a"), many), [], "/p")
    assert "(and 7 used earlier)" in lines
    assert lines.count("\n- ") == LISTED


@pytest.mark.req("models:C7")
def test_each_failure_doubles_the_wait_and_a_stopped_turn_is_no_failure() -> None:
    record, waits = CompactionRecord(), []
    for _ in range(4):
        record = recorded(record, last=10, before=9, after=0, summarised=False, error="provider_failed")
        waits.append(next(n for n in range(999) if record.may_try(10 + n)))
    assert waits == [8, 16, 32, 64]
    assert recorded(record, last=99, before=9, after=0, summarised=False, error="cancelled") == record
    assert recorded(record, last=99, before=9, after=5, summarised=False) == record
    assert recorded(record, last=99, before=9, after=5, summarised=True) == CompactionRecord(99)


@pytest.mark.req("models:C8")
def test_a_summary_that_saves_less_than_a_tenth_and_one_needed_at_once_again_have_not_helped() -> None:
    record = recorded(CompactionRecord(), last=10, before=100, after=95, summarised=True)
    assert record == CompactionRecord(10, 0, 1)
    fine = recorded(CompactionRecord(), last=10, before=100, after=20, summarised=True)
    assert fine == CompactionRecord(10)
    assert recorded(fine, last=13, before=100, after=20, summarised=True) == CompactionRecord(13, 0, 1)
    assert recorded(fine, last=40, before=100, after=20, summarised=True) == CompactionRecord(40)


def test_a_short_thought_is_not_retold_as_an_answer() -> None:
    assert retold(items(Reasoning("secret thought"), AssistantMessage("done")), 1_000) == "## The agent\ndone"
