"""The walk through a flow: what is given to the model, where its answers lead, and where it ends before END."""

from __future__ import annotations

import pytest

from quintet.domain.flow import Chart, Flow
from quintet.engine.flows import ASKED_AT_MOST, Answer, Walk


def flow(*edges: tuple[str, str, str]) -> Flow:
    chart = Chart()
    for line, (start, label, end) in enumerate(edges, 1):
        chart.node(start, line)
        chart.node(end, line)
        chart.edge(start, end, line, label)
    return chart.flow()


DECIDES = flow(("BEGIN", "", "work"), ("work", "", "done?"), ("done?", "yes", "END"), ("done?", "not yet", "work"))


def walked(walk: Walk, *answers: str) -> list[str]:
    """What was given to the model, the last thing without an answer."""
    given = []
    for answer in answers:
        said = walk.input()
        assert said is not None
        given.append(said)
        walk.answered(Answer(answer))
    return given


@pytest.mark.req("wire:S115")
def test_each_task_is_an_input_and_a_choice_leads_on() -> None:
    walk = Walk(DECIDES)
    given = walked(walk, "did it", "hm <choice>not yet</choice>", "did more", "so: <choice> yes </choice> is my choice")
    assert given[0] == given[2] == "work"
    assert given[1] == given[3]
    assert given[1].startswith("done?\n")
    assert given[1].endswith("\n- yes\n- not yet")
    assert "<choice>" in given[1]
    assert walk.input() is None
    assert (walk.stopped, walk.inputs) == ("", 4)


@pytest.mark.req("wire:S115")
@pytest.mark.parametrize(
    ("answer", "leads"),
    [
        ("<choice>yes</choice> no: <choice>not yet</choice>", "work"),
        ("<choice>not yet</choice> <choice>yes</choice>", None),
        ("<choice>yes", "again"),
        ("</choice>yes<choice>", "again"),
        ("yes", "again"),
        ("<choice>Yes</choice>", "again"),
        ("<choice></choice>", "again"),
        ("", "again"),
    ],
)
def test_the_last_choice_counts_and_it_must_be_one_of_the_labels(answer: str, leads: str | None) -> None:
    walk = Walk(DECIDES)
    walked(walk, "done", answer)
    said = walk.input()
    assert (said if leads != "again" else said is not None and "did not end with one" in said) == (
        leads if leads != "again" else True
    )


@pytest.mark.req("wire:S116")
def test_a_model_that_never_chooses_is_asked_a_few_times_and_the_end_is_told() -> None:
    walk = Walk(DECIDES)
    given = walked(walk, "done", *["hm"] * ASKED_AT_MOST)
    assert walk.input() is None
    assert walk.stopped.startswith(
        "The flow was ended at “done?”: the model was asked 3 times and chose none of yes, not"
    )
    assert not walk.exhausted
    assert given[2] == given[3] != given[1]


@pytest.mark.req("wire:S116")
def test_each_decision_is_asked_again_from_the_start() -> None:
    walk = Walk(DECIDES)
    walked(walk, "done", "hm", "hm", "<choice>not yet</choice>", "done", "hm", "hm")
    assert walk.input() is not None
    walked_on = Walk(DECIDES)
    assert "did not end" not in walked(walked_on, "a", "hm", "<choice>not yet</choice>", "b", "hm")[4]


@pytest.mark.req("wire:S116")
def test_a_walk_without_end_is_ended_and_told() -> None:
    walk = Walk(flow(("BEGIN", "", "A"), ("A", "on", "A"), ("A", "out", "END")), most=3)
    walked(walk, *["<choice>on</choice>"] * 3)
    assert walk.input() is None
    assert walk.exhausted
    assert walk.stopped == "The flow was ended at “A”: it has given the model 3 inputs."


@pytest.mark.req("wire:S116")
def test_a_no_that_broke_the_work_off_ends_the_walk() -> None:
    walk = Walk(DECIDES)
    walk.input()
    walk.answered(Answer("", broken_off=True))
    assert walk.input() is None
    assert "refused" in walk.stopped


@pytest.mark.req("wire:S115")
def test_words_behind_the_command_go_with_the_first_input_only() -> None:
    walk = Walk(DECIDES, "the door, please")
    given = walked(walk, "done", "<choice>not yet</choice>", "done")
    assert given[0] == "work\n\nUser request:\nthe door, please"
    assert given[2] == "work"


def test_a_chart_that_leads_from_begin_to_end_gives_nothing_to_the_model() -> None:
    assert Walk(flow(("BEGIN", "", "END"))).input() is None
