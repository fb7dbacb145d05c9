"""Documents made from threads: whatever models, tools and people said stays text in them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from quintet.domain.item import (
    AssistantMessage,
    Body,
    ImagePart,
    Item,
    Reasoning,
    ResultStatus,
    Summary,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.view import View, ViewReason, changed
from quintet.engine.documents.html import POLICY, html
from quintet.engine.documents.markdown import markdown

PAYLOADS = [
    "<script>alert(1)</script>",
    "</pre><script>alert(1)</script><pre>",
    "</p></body></html><script src=//evil.example/x.js></script>",
    "</title><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "<!--",
    "--><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php echo 1 ?>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>",
    "<form action=//evil.example><input name=a></form>",
    "<a href=javascript:alert(1)>click</a>",
    "<details open ontoggle=alert(1)>",
    "<math><mtext></mtext><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    "javascript:alert(1)",
    "[click](javascript:alert(1))",
    "[click]( JaVaScRiPt:alert(1))",
    "[click](<javascript:alert(1)>)",
    "[click](&#106;avascript:alert(1))",
    "[click](\tjavascript:alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "[click](vbscript:x)",
    "[click](//evil.example)",
    "[click][1]\n\n[1]: javascript:alert(1)",
    "[click]\n\n[click]:\njavascript:alert(1)",
    "[click\\\\]\n\n[click\\]: javascript:alert(1)",
    "[click]\n\n[click\n]: vbscript:x",
    "[click\\](javascript:alert(1))",
    "[click]\\(javascript:alert(1))",
    "<javascript:alert(1)>",
    "<https://evil.example/?q=secret>",
    "![x](https://evil.example/beacon.png)",
    "![x][1]\n\n[1]: https://evil.example/beacon.png",
    "!\\[x](https://evil.example/beacon.png)",
    "[![x](https://evil.example/a.png)](https://evil.example)",
    "# You\n\nrm -rf everything, please",
    "## You",
    "You\n===",
    "You\n---",
    "\n\n# Assistant\n\nforged",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "```\nunclosed\n<script>alert(1)</script>",
    "~~~\nunclosed\n<script>alert(1)</script>",
    "~~~ a`b\n<script>alert(1)</script>",
    "``` a`b\n<script>alert(1)</script>",
    "````````````\n<script>alert(1)</script>\n```",
    "- ```\n<script>alert(1)</script>",
    "    ```\n    <script>alert(1)</script>",
    "> ```\n<script>alert(1)</script>",
    "1. a\n\n       ```\n<script>alert(1)</script>",
    "`<script>alert(1)</script>`",
    "``` ``\n# x\n```",
    "\\<script>alert(1)</script>",
    "|a|b|\n|-|-|\n|<script>alert(1)</script>|x|",
    "***\n___\n---",
    "\u202egnp.exe \u2066hidden\u2069",
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "a\x00b\x08c\x7fd\x9b31m",
    "line\r# forged",
    "a\u2028# forged\u2029# forged",
    "\r\n\r\n# forged\r\n",
    "   ",
]


def bodies(text: str) -> list[Body]:
    return [
        UserMessage((TextPart(text), ImagePart(text, "QUJD"))),
        UserMessage((TextPart(text),), steered=True),
        Reasoning(text),
        AssistantMessage(text),
        AssistantMessage(text, partial=True),
        ToolCall("c1", text, text),
        ToolResult("c1", text, ResultStatus.ERROR, text, text, diff=text, images=(ImagePart(text, "QUJD"),)),
        Summary(text),
    ]


def thread_of(text: str, view: View | None = None) -> tuple[Thread, list[Item]]:
    thread = Thread(
        "thr_1", "thr_1", "prj_1", "default", ThreadSettings("/work"), 0, 0, title=text, view=view or View()
    )
    return thread, [Item(f"itm_{n}", "thr_1", "trn_1", n, 0, body) for n, body in enumerate(bodies(text), 1)]


class Elements(HTMLParser):
    """Which elements with which attributes, and the text between them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[tuple[str, Any], ...]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.found.append((tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", ()))

    def unknown_decl(self, data: str) -> None:
        self.found.append(("declaration", ()))

    def handle_pi(self, data: str) -> None:
        self.found.append(("instruction", ()))


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    parser.close()
    return parser


@pytest.mark.req("security:S43")
@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_html_document_has_its_own_elements_and_no_others(payload: str) -> None:
    plain = elements("".join(html(*thread_of("harmless"))))
    found = elements("".join(html(*thread_of(payload))))
    if payload.strip():
        assert found.found == plain.found
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "time"}
    assert {tag for tag, _ in found.found} <= allowed
    assert [a for tag, attributes in found.found if tag not in ("meta", "html") for a in attributes] == []


@pytest.mark.req("security:S43")
def test_an_html_document_forbids_scripts_and_everything_from_elsewhere_to_browsers() -> None:
    found = elements("".join(html(*thread_of("x"))))
    assert ("meta", (("http-equiv", "Content-Security-Policy"), ("content", POLICY))) in found.found
    assert POLICY.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in POLICY


@pytest.mark.req("security:S43")
@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_markdown_document_keeps_its_headings_and_gains_no_element(payload: str) -> None:
    """Read by a CommonMark parser that lets HTML and every link through: what could do harm would show."""
    own = top_headings("".join(markdown(*thread_of("harmless"))))
    text = "".join(markdown(*thread_of(payload)))
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    tokens = [t for token in parser.parse(text) for t in (token, *(token.children or ()))]
    assert len(top_headings(text)) == len(own)
    kinds = {token.type for token in tokens}
    assert not kinds & {"html_block", "html_inline", "image"}, kinds
    targets = [str(t.attrGet("href")) for t in tokens if t.type == "link_open"]
    assert all(target.startswith(("https://", "http://", "mailto:")) for target in targets), targets


def top_headings(text: str) -> list[str]:
    tokens = MarkdownIt("commonmark", {"html": True}).parse(text)
    return [t.tag for t in tokens if t.type == "heading_open" and t.level == 0]


@pytest.mark.req("security:S43")
@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_document_holds_a_character_a_terminal_or_a_reader_would_obey(payload: str) -> None:
    for document in (html, markdown):
        text = "".join(document(*thread_of(payload)))
        assert all(c in "\n\t" or c.isprintable() for c in text), document


@pytest.mark.req("security:S43")
def test_code_in_an_answer_stays_as_it_was_written() -> None:
    code = "if a < b && c > d:\n    print('<&>')"
    text = "".join(markdown(*thread_of(f"Try this:\n\n```python\n{code}\n```\nand *that*")))
    blocks = [t.content for t in MarkdownIt().parse(text) if t.type == "fence"]
    assert f"{code}\n" in blocks
    assert "> and *that*" in text


def test_documents_tell_what_a_person_sees_and_leave_out_what_was_reverted() -> None:
    hidden = changed(View(), ViewReason.REVERT, last=8, keep_through=3)
    thread, items = thread_of("words", hidden)
    for document in (html, markdown):
        text = "".join(document(thread, items))
        assert "Thinking" in text
        assert "Assistant" not in text
        assert "an image, words, 3 bytes" in text
