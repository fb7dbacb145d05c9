"""A small web on this machine's loopback: servers that count who connects, names that lead to them, certificates they
can show, and an address check that takes 127.0.0.2 for the public internet."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import msgspec

from quintet.workspace.web.addresses import Address, why_not_public

PUBLIC = "127.0.0.2"
WAIT_S = 10.0


def why_not_our_public(address: Address) -> str:
    return "" if address == IPv4Address(PUBLIC) else why_not_public(address)


class Names:
    """A resolver by table. A name with several answers gives them one after the other, and the last one ever after."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        if name not in self._answers:
            return [PUBLIC]
        left = self._answers[name]
        return left.pop(0) if len(left) > 1 else left[0]


class Seen(msgspec.Struct):
    """One request as a server saw it."""

    line: str
    headers: dict[str, str]
    body: bytes


def reply(status: int = 200, body: bytes | str = b"", **headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{n}: {v}" for n, v in given.items()), f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + data


Answering = Callable[[Seen], bytes]


class Server:
    """Counts connections even when nothing is asked over them."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self.connections = 0
        self.seen: list[Seen] = []
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            async with asyncio.timeout(WAIT_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *rest = head.strip().split("\r\n")
                headers = {n.lower(): v.strip() for n, _, v in (row.partition(":") for row in rest)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.seen.append(Seen(line, headers, body))
                writer.write(self._answering(self.seen[-1]))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    answering: Answering | bytes, address: str = PUBLIC, *, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = Server(answering if callable(answering) else lambda _: answering)
    listener = await asyncio.start_server(server.handle, address, port, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


class Certificates(msgspec.Struct):
    server: ssl.SSLContext
    client: ssl.SSLContext  # trusts the server's


@cache
def certificates(directory: Path, *names: str) -> Certificates:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a small web")])
    now = datetime.now(UTC)
    alternatives = [_alternative(name) for name in names]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = directory / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    shown = made.public_bytes(serialization.Encoding.PEM)
    both.write_bytes(secret + shown)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(both)
    return Certificates(server, ssl.create_default_context(cadata=shown.decode()))


def _alternative(name: str):
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
