from __future__ import annotations

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.web.addresses import why_not_public
from quintet.workspace.web.fetching import Fetcher
from quintet.workspace.web.resolving import resolved_public
from quintet.workspace.web.urls import join_url, parse_url
from tests.fakes.web import Names
from tests.unit.workspace.web.corpus_urls import LEADING, REFUSED, TAKEN


@pytest.mark.req("security:S33", "security:S35")
@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_a_url_that_could_lead_elsewhere_is_refused_without_asking_anybody(text, why):
    with pytest.raises(Invalid, match=r".") as refused:
        Fetcher().check(parse_url(text))
    assert why in refused.value.line()


@pytest.mark.req("security:S33")
@pytest.mark.parametrize(("text", "why"), [(text, why) for text, why in REFUSED if text.startswith("https:")])
def test_plain_http_changes_nothing_about_what_is_refused(text, why):
    with pytest.raises(Invalid, match=r".") as refused:
        Fetcher().check(parse_url("http:" + text[6:]))
    assert why in refused.value.line()


@pytest.mark.req("security:S33")
@pytest.mark.parametrize(("answers", "why"), LEADING)
async def test_a_name_is_refused_when_one_of_its_addresses_is_not_public(answers, why):
    names = Names(looks_well_org=[answers])
    with pytest.raises(Invalid, match=r".") as refused:
        await resolved_public(parse_url("https://looks.well.org/").host, names, why_not_public)
    assert why in refused.value.message


@pytest.mark.req("security:S33", "security:S35")
@pytest.mark.parametrize(("text", "spelling"), TAKEN)
def test_a_public_url_has_one_spelling(text, spelling):
    url = parse_url(text)
    Fetcher().check(url)
    assert url.text == spelling
    assert parse_url(url.text) == url


def test_the_corpus_is_as_large_as_promised():
    assert len(REFUSED) + len(LEADING) + len(TAKEN) >= 120
    assert len({text for text, _ in REFUSED}) == len(REFUSED)


@pytest.mark.req("security:S35")
def test_hosts_are_equal_as_parsed_and_not_as_spelled():
    assert parse_url("https://EXAMPLE.org/").host == parse_url("http://example.ORG:8080/x").host
    assert parse_url("https://[2606:4700:0::1]/").host == parse_url("https://[2606:4700::0:1]/").host
    assert parse_url("https://example.org.evil.com/").host != parse_url("https://example.org/").host


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/x", "https://example.org/x"),
        ("y", "https://example.org/a/y"),
        ("../z", "https://example.org/z"),
        ("?q", "https://example.org/a/b?q"),
        ("//other.org/x", "https://other.org/x"),
        ("https://other.org", "https://other.org/"),
    ],
)
def test_a_redirect_is_read_from_where_it_was_found(location, target):
    assert join_url(parse_url("https://example.org/a/b"), location).text == target


@pytest.mark.req("security:S35")
@pytest.mark.parametrize("location", ["/\t/evil.org", "//evil.org\r\nX: y", "\\\\evil.org", "https://a@evil.org", ""])
def test_a_redirect_with_what_a_url_cannot_hold_is_refused_before_it_is_joined(location):
    with pytest.raises(Invalid):
        join_url(parse_url("https://example.org/a/b"), location)
