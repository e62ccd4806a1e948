"""The inner end of a workspace's way out: passes connections from a port of its own loopback on to a Unix socket.

usage: egress-forward.py PORT SOCKET

It runs inside the workspace's network namespace with the workspace's rights, so it decides nothing: what may pass is
judged at the other end of the socket. Standard library alone; started with `-I -S`.
"""

import asyncio
import sys

CHUNK = 65536
BACKLOG = 128


async def pump(reader, writer):
    """Pass bytes on until the end, and then the end."""
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except (ConnectionError, OSError):
        writer.close()


async def serve(port, path):
    """Listen on the loopback for as long as the workspace runs."""

    async def passed_on(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(path)
        except OSError:
            # The way out is being started again: a client tries again.
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        for each in (writer, far_writer):
            each.close()

    server = await asyncio.start_server(passed_on, "127.0.0.1", port, backlog=BACKLOG)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
