from __future__ import annotations

import pytest

from quintet.workspace.web import readable as room
from quintet.workspace.web.readable import readable
from quintet.workspace.web.urls import parse_url

BASE = parse_url("https://example.org/docs/page")


def text(html: str) -> str:
    return readable(html, BASE)[1]


PAGE = """<!doctype html><html><head><title> A &amp; B
</title><style>p {}</style><script>if (a < b) alert("x")</script></head><body>
<h1>Top</h1><p>One <b>two</b>
three&nbsp;&lt;four&gt;.<br>Five</p>
<ul><li>a</li><li>b <a href="../x?y=1#z">link</a><ol><li>in</li><li>out</li></ol></li></ul>
<pre>def f():
    return  1
</pre><p>Use <code>f()</code>.</p>
<table><tr><th>n</th><th>m</th></tr><tr><td>1</td><td>2</td></tr></table>
<img src=x alt="a cat"><hr><div>last</div></body></html>"""


def test_a_page_becomes_markdown():
    title, got = readable(PAGE, BASE)
    assert title == "A & B"
    assert got == (
        "# Top\n\nOne two three <four>.\nFive\n\n- a\n- b [link](https://example.org/x?y=1)\n  1. in\n  2. out\n\n"
        "```\ndef f():\n    return  1\n```\n\nUse `f()`.\n\nn | m\n\n1 | 2\n\n[image: a cat]\n\n---\n\nlast"
    )


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>HIDDEN</script>",
        "<style>HIDDEN</style>",
        "<noscript>HIDDEN</noscript>",
        "<template><p>HIDDEN</p></template>",
        "<svg><text>HIDDEN</text></svg>",
        "<iframe>HIDDEN</iframe>",
        "<p hidden>HIDDEN</p>",
        "<div hidden>a<div>b</div>HIDDEN</div>",
        '<span style="color:red; display : NONE">HIDDEN</span>',
        '<div aria-hidden="true">HIDDEN</div>',
        "<!-- HIDDEN -->",
        '<meta content="HIDDEN">',
        '<a href="javascript:HIDDEN"></a>',
        '<input value="HIDDEN">',
    ],
)
def test_what_a_reader_would_not_see_is_left_out(hidden):
    assert text(f"<p>before</p>{hidden}<p>after</p>") == "before\n\nafter"


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ('<a href="https://other.org/">x</a>', "[x](https://other.org/)"),
        ('<a href="mailto:a@b.org">x</a>', "x"),
        ('<a href="javascript:alert(1)">x</a>', "x"),
        ('<a href="file:///etc/passwd">x</a>', "x"),
        ('<a href="https://u:p@other.org/">x</a>', "x"),
        ('<a href="#part">x</a>', "[x](https://example.org/docs/page)"),
        ("<a>x</a>", "x"),
    ],
)
def test_links_are_whole_addresses_that_could_be_fetched(link, shown):
    assert text(f"<p>{link}</p>") == shown


def test_text_behind_the_last_tag_is_there():
    assert text("<p>a</p>tail &amp; end") == "a\n\ntail & end"
    assert text("no tags at all") == "no tags at all"


@pytest.mark.parametrize("tail", ["<!-- never closed", '<a href="never', "<?php x", "</never"])
def test_an_element_that_never_ends_is_told(tail):
    assert text(f"<p>a</p>{tail}") == f"a\n\n[the page's last {len(tail)} characters are an element that does not end]"


@pytest.mark.parametrize("evil", ["<!--", "<a ", "</", "<!", "<![CDATA[", "&#", "<a b='", "<script></", "<div hidden>"])
def test_a_hostile_page_is_read_in_pieces_and_given_up_in_time(evil, monkeypatch):
    # Not a timing: the clock is ours and stands still, so each page must end by itself within the test's own limit.
    monkeypatch.setattr(room.time, "monotonic", lambda: 0.0)
    readable(evil * (300_000 // len(evil)), BASE)


def test_a_page_that_takes_too_long_is_told(monkeypatch):
    ticks = iter([0.0, 1.0, 99.0])
    monkeypatch.setattr(room.time, "monotonic", lambda: next(ticks))
    got = text("<pre>word" + "<p>word</p>" * 29_999 + "xx")
    assert got.startswith("```\nword")
    assert got.endswith(f"[{330_000 - 2 * room.PIECE} characters of the page were not read: it is too tangled]")
