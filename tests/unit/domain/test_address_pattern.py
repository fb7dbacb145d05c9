from __future__ import annotations

import pytest

from quintet.domain.address_pattern import fits_address

BOTH = [
    ("*", "https://example.org/", True),
    ("https://example.org/docs/*", "https://example.org/docs/a/b?c", True),
    ("https://example.org/docs/*", "https://example.org/other", False),
    ("https://example.org", "https://example.org/any/path", True),
    ("https://EXAMPLE.org/", "https://example.org/", True),
    ("https://example.org/", "https://example.org/x", False),
    ("https://example.org", "http://example.org/", False),
    ("http://example.org", "http://example.org/", True),
    ("*://example.org", "http://example.org/", True),
    ("example.org", "https://example.org/x", True),
    ("example.org/docs/*", "https://example.org/docs/x", True),
    ("example.org", "https://www.example.org/", False),
    ("*.example.org", "https://www.example.org/", True),
    ("*.example.org", "https://a.b.example.org/", True),
    ("*.example.org", "https://example.org/", False),
    ("*.example.org", "https://evil.com/x.example.org", False),
    ("https://*.example.org/*", "https://evil.com/x.example.org/y", False),
    ("https://*.example.org/*", "https://evil.com/?.example.org/y", False),
    ("*.example.org", "https://evilexample.org/", False),
    ("example.org*", "https://example.org.evil.com/", False),
    ("https://example.org*", "https://example.org.evil.com/", False),
    ("https://*/", "https://example.org/", True),
    ("https://example.org:8443", "https://example.org:8443/x", True),
    ("https://example.org:8443", "https://example.org/x", False),
    ("https://[2606:4700::1]/*", "https://[2606:4700::1]/x", True),
    ("a b", "https://example.org/", False),
    ("", "https://example.org/", False),
]


@pytest.mark.req("security:S35")
@pytest.mark.parametrize("allowing", [True, False])
@pytest.mark.parametrize(("pattern", "address", "fits"), BOTH)
def test_a_rule_speaks_of_hosts_label_by_label(pattern, address, fits, allowing):
    assert fits_address(pattern, address, allowing=allowing) is fits


@pytest.mark.req("security:S33")
@pytest.mark.parametrize("address", ["http://example.org/", "https://example.org:8443/", "http://example.org:443/"])
def test_what_a_rule_leaves_out_is_read_strictly_either_way(address):
    """An allow never covers what is not encrypted or another port by silence; a deny always does."""
    assert not fits_address("example.org", address, allowing=True)
    assert fits_address("example.org", address, allowing=False)
