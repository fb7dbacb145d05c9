"""Runs inside the sandbox, around the command: listens on its loopback and hands each connection to the proxy's socket.

Given to a bare interpreter as text (`-I -S -c`), so it imports nothing of Quintet. The forwarding process belongs to
nobody inside and ends with the sandbox, which ends with the command. Words: SOCKET PORT [unset=NAME] `--` command.
"""

import os
import socket
import sys

FAILED = 125


def main(words: list[str]) -> None:
    end = words.index("--")
    command = words[end + 1 :]
    try:
        start(words[0], int(words[1]))
        for word in words[2:end]:
            os.environ.pop(word.partition("=")[2], None)
        import _signal  # type: ignore[import-not-found]  # `signal` itself takes a millisecond to import

        for number in (13, 25):  # Python ignores SIGPIPE and SIGXFSZ; the command must not inherit that
            _signal.signal(number, _signal.SIG_DFL)
    except Exception as error:
        os.write(2, f"quintet: the way to the allowed hosts could not be opened: {error}\n".encode())
        os._exit(FAILED)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def start(path: str, port: int) -> None:
    """Listening when this returns; forked twice, so that the command has no child it does not know of."""
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    first = os.fork()
    if first == 0:
        try:
            os.setsid()  # a signal to the command's group is not for us, from the first moment
            if os.fork() == 0:
                forward(listener, path)
            os._exit(0)
        finally:
            os._exit(FAILED)
    listener.close()
    if os.waitpid(first, 0)[1]:
        raise OSError("no process could be started")


def forward(listener: socket.socket, path: str) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # its pipes must close when it ends
        os.dup2(nothing, number)
    import asyncio

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            out_reader, out_writer = await asyncio.open_unix_connection(path)
            try:
                await asyncio.gather(pump(reader, out_writer), pump(out_reader, writer))
            finally:
                out_writer.close()
        except OSError:
            pass  # one side is gone; the other learns it by the close
        finally:
            writer.close()

    async def listen() -> None:
        server = await asyncio.start_server(serve, sock=listener)
        await server.serve_forever()

    try:
        asyncio.run(listen())
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
