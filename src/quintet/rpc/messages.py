"""JSON-RPC 2.0 objects: bytes to Request, Notification, Response or a precisely named BadMessage, and back.

Pure: knows neither methods nor codes. What a protocol answers to a BadMessage is the protocol's own word.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from quintet.rpc.depth import MAX_DEPTH, too_deep
from quintet.rpc.halves import mended_halves

Id = str | int | None
NullId = Literal["refuse", "request", "notification"]


class WireError(Struct, frozen=True):
    """The error member. `data` left UNSET is not sent at all; None is sent as null (some protocols want the
    key)."""

    code: int
    message: str
    data: Any = UNSET


class Request(Struct, frozen=True):
    id: Id
    method: str
    params: Raw


class Notification(Struct, frozen=True):
    method: str
    params: Raw


class Response(Struct, frozen=True):
    id: Id
    result: Raw


class ErrorResponse(Struct, frozen=True):
    id: Id
    error: WireError


class BadMessage(Struct, frozen=True):
    """Why a body is no message. The id is what could be read of it: `has_id` tells null from absent.

    parse: not JSON or not UTF-8 · depth: nested too deep · batch: an array · object: another JSON value ·
    version: `jsonrpc` is not "2.0" · id: not string, integer or allowed null · method: missing, empty or no
    string · shape: a response with both or neither of result and error.
    """

    reason: Literal["parse", "depth", "batch", "object", "version", "id", "method", "shape"]
    detail: str
    id: Id = None
    has_id: bool = False


Message = Request | Notification | Response | ErrorResponse
ABSENT = Raw(b"")


class _Envelope(Struct):
    # Raw members are checked for syntax but not built: params are decoded once, straight into their own type.
    jsonrpc: Raw = ABSENT
    id: Raw = ABSENT
    method: Raw = ABSENT
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


_envelope = msgspec.json.Decoder(_Envelope)
_anything = msgspec.json.Decoder(Raw)
_id = msgspec.json.Decoder(str | int | None)
_string = msgspec.json.Decoder(str)
_error = msgspec.json.Decoder(WireError)
_encoder = msgspec.json.Encoder()
_VERSION = b'"2.0"'
HALF = "a text holds half of a surrogate pair"
UNREADABLE = Raw(b'"\\ud800"')  # params that no decoder takes


def decode(body: bytes, *, null_id: NullId = "refuse", max_depth: int = MAX_DEPTH) -> Message | BadMessage:
    try:
        # msgspec skips over bytes in unread strings without looking at their encoding.
        if not body.isascii():
            body.decode("utf-8")
        envelope = _envelope.decode(body)
    except RecursionError:
        return BadMessage("depth", f"nested deeper than {max_depth}")
    except msgspec.ValidationError:
        return _not_an_object(body)
    except ValueError as why:  # msgspec.DecodeError and UnicodeDecodeError are both ValueErrors
        mended = mended_halves(body)
        if mended == body:
            return BadMessage("parse", str(why))
        return _unreadable(decode(mended, null_id=null_id, max_depth=max_depth))
    if too_deep(body, max_depth):
        return BadMessage("depth", f"nested deeper than {max_depth}")
    return _classify(envelope, null_id)


def _unreadable(message: Message | BadMessage) -> Message | BadMessage:
    """Who sent such a thing learns that it cannot be taken, under its own id; nobody is given something else."""
    match message:
        case Request(id=id_) | Response(id=id_) | ErrorResponse(id=id_) if isinstance(id_, str) and "\ufffd" in id_:
            return BadMessage("id", HALF, None, has_id=True)
        case Request(id=id_, method=method):
            return Request(id_, method, UNREADABLE)
        case Notification(method=method):
            return Notification(method, UNREADABLE)
        case Response(id=id_):
            return ErrorResponse(id_, WireError(0, HALF))
    return message


def _not_an_object(body: bytes) -> BadMessage:
    try:
        _anything.decode(body)
    except RecursionError:
        return BadMessage("depth", "nested too deep")
    except ValueError as why:
        return BadMessage("parse", str(why))
    if body.lstrip()[:1] == b"[":
        return BadMessage("batch", "an array where one object is expected")
    return BadMessage("object", "a JSON value that is not an object")


def _classify(envelope: _Envelope, null_id: NullId) -> Message | BadMessage:
    raw_id = bytes(envelope.id)
    has_id = raw_id != b""
    try:
        id_ = _id.decode(raw_id) if has_id else None
    except ValueError:
        return BadMessage("id", "id must be a string or an integer", None, has_id)
    if bytes(envelope.jsonrpc) != _VERSION:
        return BadMessage("version", 'jsonrpc must be "2.0"', id_, has_id)
    if bytes(envelope.method) == b"":
        return _answer(envelope, id_, has_id=has_id)
    try:
        method = _string.decode(envelope.method)
    except ValueError:
        method = ""
    if not method:
        return BadMessage("method", "method must be a non-empty string", id_, has_id)
    if has_id and id_ is None:
        if null_id == "refuse":
            return BadMessage("id", "id must not be null", None, has_id)
        has_id = null_id == "request"
    return Request(id_, method, envelope.params) if has_id else Notification(method, envelope.params)


def _answer(envelope: _Envelope, id_: Id, *, has_id: bool) -> Message | BadMessage:
    result, error = bytes(envelope.result), bytes(envelope.error)
    if not has_id or (not result and not error):
        return BadMessage("method", "neither a method nor an answer", id_, has_id)
    # Older peers send both members, the idle one as null.
    failed = error not in (b"", b"null")
    if failed and result not in (b"", b"null"):
        return BadMessage("shape", "both result and error", id_, has_id)
    if not failed:
        return Response(id_, Raw(result or b"null"))
    try:
        return ErrorResponse(id_, _error.decode(error))
    except ValueError:
        # Whoever waits for this answer must still learn that it failed.
        return ErrorResponse(id_, WireError(0, "malformed error object", Raw(error)))


class _Call(Struct, omit_defaults=True):
    jsonrpc: str
    method: str
    id: Id | UnsetType = UNSET
    params: Any = UNSET


class _Result(Struct):
    jsonrpc: str
    id: Id
    result: Any


class _Failure(Struct):
    jsonrpc: str
    id: Id
    error: WireError


def encode_request(id: str | int, method: str, params: Any = UNSET) -> bytes:
    return encode(_Call("2.0", method, id, params))


def encode_notification(method: str, params: Any = UNSET) -> bytes:
    return encode(_Call("2.0", method, UNSET, params))


def encode_notifications(method: str, many: Sequence[Any]) -> list[bytes]:
    """One body for each of the params."""
    try:
        return [_encoder.encode(_Call("2.0", method, UNSET, params)) for params in many]
    except UnicodeEncodeError:
        return [encode_notification(method, params) for params in many]


def encode_result(id: Id, result: Any) -> bytes:
    return encode(_Result("2.0", id, result))


def encode_error(id: Id, error: WireError) -> bytes:
    return encode(_Failure("2.0", id, error))


def encode(value: Any) -> bytes:
    """JSON without raw newlines. Lone surrogates become U+FFFD: UTF-8 cannot carry them."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mend(msgspec.to_builtins(value, builtin_types=(Raw,))))


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mend(item) for item in value]
    return value
