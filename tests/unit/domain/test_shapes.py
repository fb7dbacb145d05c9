from __future__ import annotations

import pytest

from quintet.domain.errors import ProviderFailed, StorageDamaged
from quintet.domain.shapes import MASK, mask_shapes
from quintet.engine.redaction import Redactor
from tests.unit.look_alikes import LOOK_ALIKES

SHAPED = [
    "sk-proj-abcDEF1234567890abcDEF",
    "sk_live_51H8abcdef1234",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0123456789_abcdefghij",
    "glpat-abcdef1234567890XY",
    "xoxb-123456789012-abcdefghij",
    "hf_abcdefghijKLMNOPQRST1234",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstu",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "q7Rt2Kx9Lm4Zp8Wv3Bn6Yc1Hd5Gj0Sf7Qa",
]


@pytest.mark.req("security:S44")
@pytest.mark.parametrize("secret", SHAPED)
def test_what_looks_like_a_key_is_masked_in_logs_and_errors(secret):
    for text in (secret, f"failed with {secret}, see above", f'{{"key": "{secret}"}}'):
        assert secret not in mask_shapes(text)
        assert MASK in mask_shapes(text)


@pytest.mark.req("security:S44")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc123def456", "Authorization: Bearer [redacted]"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic [redacted]"),
        ("postgres://me:hunter2@db/x", "postgres://me:[redacted]@db/x"),
        ('"api_key": "abc123xyz"', '"api_key": "[redacted]"'),
        ("password=hunter22", "password=[redacted]"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted]"),
    ],
)
def test_only_the_secret_part_is_masked(text, left):
    assert mask_shapes(text) == left


@pytest.mark.req("security:S48")
def test_two_hundred_look_alikes_stay_as_they_are_in_both_layers():
    assert len(set(LOOK_ALIKES)) >= 200
    assert [text for text in LOOK_ALIKES if mask_shapes(text) != text] == []
    known = Redactor(["hunter2hunter2", "sk-proj-abcDEF1234567890abcDEF", "q7Rt2Kx9Lm4Zp8Wv3Bn6"])
    assert [text for text in LOOK_ALIKES if known.text(text) != text] == []


@pytest.mark.req("security:S47")
def test_an_error_that_leaves_names_no_path_of_the_machine_and_no_header():
    error = ProviderFailed(
        "The provider said: invalid key sk-proj-abcDEF1234567890abcDEF.",
        headers={"authorization": "Bearer abc123def456"},
        request={"Authorization": "x", "url": "https://me:hunter22@example.org/v1"},
        files=["/home/somebody/.ssh/id_rsa", "src/app.py"],
        status=401,
    )
    info = error.info()
    assert info.message == "The provider said: invalid key [redacted]."
    assert info.data == {
        "request": {"url": "https://me:[redacted]@example.org/v1"},
        "files": ["id_rsa", "src/app.py"],
        "status": 401,
    }
    assert StorageDamaged("Damaged.", path="/home/somebody/q/quintet.db").info().data == {"path": "quintet.db"}
