import random
import time
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintet.rpc.blocks import KNOWN_HEADERS, BlockDecoder, encode_block
from quintet.rpc.framing import MIB, BadFrame, Decoder, Frame, Item, LineDecoder, encode_line

VALID = b'{"a":1}'
BLOCK = encode_block(VALID)


def run(decoder: Decoder, chunks: Iterable[bytes]) -> list[Item]:
    out: list[Item] = []
    for chunk in chunks:
        out += decoder.feed(chunk)
    return out + decoder.eof()


def reasons(items: list[Item]) -> list[str]:
    return ["frame" if isinstance(item, Frame) else item.reason for item in items]


def bytewise(stream: bytes) -> list[bytes]:
    return [stream[at : at + 1] for at in range(len(stream))]


# Content-Length blocks


def test_the_length_counts_bytes_not_characters() -> None:
    body = '{"a":"é😀"}'.encode()
    assert encode_block(body).startswith(b"Content-Length: %d\r\n\r\n" % len(body))
    assert run(BlockDecoder(), [encode_block(body)]) == [Frame(body)]


def test_two_blocks_in_one_chunk_are_two_frames() -> None:
    assert run(BlockDecoder(), [BLOCK + BLOCK]) == [Frame(VALID), Frame(VALID)]


def test_header_names_are_read_in_any_case() -> None:
    assert run(BlockDecoder(), [b"content-LENGTH: 7\r\n\r\n" + VALID]) == [Frame(VALID)]


def test_an_empty_body_is_a_frame() -> None:
    assert run(BlockDecoder(), [b"Content-Length: 0\r\n\r\n" + BLOCK]) == [Frame(b""), Frame(VALID)]


def test_bare_newlines_end_header_lines_only_where_allowed() -> None:
    stream = b"Content-Length: 7\n\n" + VALID
    assert run(BlockDecoder(bare_lf=True), [stream]) == [Frame(VALID)]
    assert reasons(run(BlockDecoder(), [stream + BLOCK])) == ["bad_header", "frame"]


def test_unknown_headers_are_refused_or_ignored_as_selected_and_the_counted_body_is_skipped() -> None:
    stream = b"X-Other: 1\r\nContent-Length: 7\r\n\r\n" + VALID + BLOCK
    assert run(BlockDecoder(known=None), [stream]) == [Frame(VALID), Frame(VALID)]
    assert reasons(run(BlockDecoder(), [stream])) == ["unknown_header", "frame"]


@pytest.mark.req("security:S49", "reliability:R7")
@pytest.mark.parametrize(
    ("junk", "reason"),
    [
        (b"Content-Type: x\r\n\r\n", "missing_length"),
        (b"\r\n", "missing_length"),
        (b"Content-Length: -5\r\n\r\n", "bad_length"),
        (b"Content-Length: +5\r\n\r\n", "bad_length"),
        (b"Content-Length: 5 5\r\n\r\n", "bad_length"),
        (b"Content-Length: 0x5\r\n\r\n", "bad_length"),
        (b"Content-Length: \xd9\xa5\r\n\r\n", "bad_length"),
        (b"Content-Length:\r\n\r\n", "bad_length"),
        (b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", "bad_length"),
        (b"Content-Length: 999999999999\r\n\r\nshort", "too_large"),
        (b"Content-Length: 7\r\nContent-Length: 7\r\n\r\n" + VALID, "duplicate_length"),
        (b"Content-Length: 7\r\ncontent-length: 9\r\n\r\n" + VALID, "duplicate_length"),
        (b"no header at all\r\n", "bad_header"),
        (b"Content-Length 7\r\n\r\n" + VALID, "bad_header"),
        (b"{}\r\n", "bad_header"),
        (b"Content-Length: 7\r\n: x\r\n\r\n" + VALID, "bad_header"),
        (b"X: " + b"a" * 9000 + b"\r\n\r\n", "header_too_large"),
        (b"a" * 9000 + b"}", "header_too_large"),
        (b"\x00\xff\xfe\r\n\r\n", "bad_header"),
    ],
)
def test_bad_header_blocks_are_named_once_and_the_next_block_is_read(junk: bytes, reason: str) -> None:
    stream = junk + BLOCK + BLOCK
    assert reasons(run(BlockDecoder(), [stream])) == [reason, "frame", "frame"]
    assert reasons(run(BlockDecoder(), bytewise(stream))) == [reason, "frame", "frame"]


@pytest.mark.req("security:S49")
def test_told_not_to_recover_the_first_loss_is_fatal_and_nothing_more_is_read() -> None:
    items = run(BlockDecoder(recover=False), [b"nonsense\r\n\r\n" + BLOCK])
    assert reasons(items) == ["bad_header"]
    assert isinstance(items[0], BadFrame)
    assert items[0].fatal


def test_a_body_whose_header_had_no_length_is_not_taken_for_headers() -> None:
    stream = b"Content-Type: x\r\n\r\n" + VALID + BLOCK
    assert reasons(run(BlockDecoder(), [stream])) == ["missing_length", "frame"]


@pytest.mark.req("security:S49")
def test_text_inside_a_skipped_body_cannot_pose_as_a_header() -> None:
    # JSON escapes its newlines, so a body that talks about headers holds no mark.
    talk = rb'{"text":"Content-Length: 3\r\n\r\n{}"}'
    stream = b"Content-Length: 7\r\nContent-Length: 8\r\n\r\n" + talk + b"X-Content-Length: 2\r\n\r\n{}" + BLOCK
    assert run(BlockDecoder(), [stream])[1:] == [Frame(VALID)]


@pytest.mark.req("security:S49")
def test_a_block_over_the_limit_is_skipped_by_its_own_count_without_being_buffered() -> None:
    decoder = BlockDecoder(limit=1000)
    items = decoder.feed(b"Content-Length: 3000\r\n\r\n")
    assert reasons(items) == ["too_large"]
    for _ in range(30):
        assert decoder.feed(b"Content-Length: 5\r\n\r\n".ljust(100, b"x")) == []
        assert len(decoder._buffer) == 0
    assert decoder.feed(BLOCK) == [Frame(VALID)]


def test_a_block_of_exactly_the_limit_is_taken() -> None:
    assert reasons(run(BlockDecoder(limit=10), [encode_block(b"x" * 10), encode_block(b"x" * 11)])) == [
        "frame",
        "too_large",
    ]


def test_an_end_inside_a_block_is_truncation_and_between_blocks_is_none() -> None:
    assert run(BlockDecoder(), [BLOCK[:-1]]) == [BadFrame("truncated", "body", fatal=True)]
    assert run(BlockDecoder(), [BLOCK + b"Content"])[1:] == [BadFrame("truncated", "header", fatal=True)]
    assert run(BlockDecoder(), [BLOCK]) == [Frame(VALID)]


def test_junk_without_end_is_not_kept_in_memory() -> None:
    decoder = BlockDecoder()
    for _ in range(1000):
        decoder.feed(b"}" * 4096)
    assert len(decoder._buffer) <= 8 * 1024


# JSON lines


def test_lines_end_with_newline_or_carriage_return_newline() -> None:
    assert run(LineDecoder(), [b"a\r\nb\n\nc"]) == [Frame(b"a"), Frame(b"b"), Frame(b""), Frame(b"c")]
    assert encode_line(b"a") == b"a\n"


@pytest.mark.req("security:S49", "reliability:R7")
def test_an_over_long_line_is_reported_once_skipped_unbuffered_and_the_next_is_read() -> None:
    decoder = LineDecoder(limit=100)
    assert reasons(decoder.feed(b"x" * 102)) == ["too_large"]
    for _ in range(50):
        assert decoder.feed(b"x" * 1000) == []
        assert len(decoder._buffer) == 0
    assert decoder.feed(b"\nok\n") == [Frame(b"ok")]


def test_a_line_of_exactly_the_limit_is_taken_with_either_ending() -> None:
    stream = b"x" * 10 + b"\n" + b"y" * 10 + b"\r\n" + b"z" * 11 + b"\n" + b"w" * 11 + b"\r\nok\n"
    expected = ["frame", "frame", "too_large", "too_large", "frame"]
    assert reasons(run(LineDecoder(limit=10), [stream])) == expected
    assert reasons(run(LineDecoder(limit=10), bytewise(stream))) == expected


# Both


PIECES = [
    BLOCK, VALID, b"\r\n", b"\n", b"\r", b"}", b'"', b"garbage\r\n", b"X: y\r\n", b"Content-Length: 5\r\n",
    b"Content-Length: -5\r\n", b"Content-Length: 99999999999999\r\n", b"content-length:3\n", b"Content-Len",
    b"Content-Length: 300\r\n\r\n", b"z" * 90, b"Xcontent-length: 4\r\n", b"\xff\x00",
]  # fmt: skip
STREAMS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=14).map(b"".join)


def decoders() -> list[Callable[[], Decoder]]:
    return [
        lambda: LineDecoder(limit=100),
        lambda: BlockDecoder(limit=200, header_limit=40),
        lambda: BlockDecoder(limit=200, header_limit=300, bare_lf=True, known=None),
        lambda: BlockDecoder(limit=200, header_limit=100, known=KNOWN_HEADERS, recover=False),
    ]


@pytest.mark.req("reliability:R7")
@settings(max_examples=1000, deadline=None)
@given(STREAMS, st.randoms(use_true_random=False))
def test_any_cut_of_any_stream_gives_the_same_frames(stream: bytes, rng: random.Random) -> None:
    cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(4))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    for make in decoders():
        whole = run(make(), [stream])
        assert run(make(), bytewise(stream)) == whole
        assert run(make(), pieces) == whole


@pytest.mark.req("reliability:R7")
@settings(max_examples=1000, deadline=None)
@given(STREAMS)
def test_after_any_junk_the_decoder_comes_back_to_step(junk: bytes) -> None:
    lines = run(LineDecoder(limit=100), [junk, b"\n", b"ok\n"])
    assert lines[-1] == Frame(b"ok")
    # Junk may open a block of up to 300 bytes (more is skipped to a mark); what follows that is read again.
    blocks = run(BlockDecoder(limit=200, header_limit=100, bare_lf=True), [junk, b"}" * 1500, BLOCK, BLOCK])
    assert blocks[-1] == Frame(VALID)


SMALL, LARGE = MIB // 4, 4 * MIB
TRIES = 10


def cost(kind: str, size: int) -> float:
    """Seconds this thread itself has worked: other work on the machine does not count."""
    decoder: Decoder = (
        LineDecoder(limit=2 * LARGE if kind == "line" else 10) if "line" in kind else BlockDecoder(limit=2 * LARGE)
    )
    decoder.feed({"block": b"Content-Length: %d\r\n\r\n" % size, "seeking": b"?\r\n"}.get(kind, b""))
    chunk = b"x" * 1024
    began = time.thread_time()
    for _ in range(size // len(chunk)):
        decoder.feed(chunk)
    decoder.feed(b"\n")
    return time.thread_time() - began


@pytest.mark.parametrize("kind", ["block", "line", "skipped line", "seeking"])
def test_feeding_in_small_chunks_takes_linear_work(kind: str) -> None:
    # Sixteen times the bytes. Going over what was fed before with each chunk would be 256 times the work, however
    # often it is tried; what disturbs a single try (caches, a clock that changes its pace) does not stay.
    small = large = float("inf")
    for _ in range(TRIES):
        small, large = min(small, cost(kind, SMALL)), min(large, cost(kind, LARGE))
        if large < 40 * small:
            return
    pytest.fail(f"{LARGE // SMALL} times the bytes took {large / small:.0f} times the work")
