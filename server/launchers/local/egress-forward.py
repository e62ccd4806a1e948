"""Forward connections from a port of a workspace's loopback to the egress socket.

usage: egress-forward.py PORT SOCKET

The program runs inside the workspace with the workspace's rights, so it decides nothing: the egress process at the
other end of the socket judges each connection. Only the standard library; started with `-I -S`.
"""

import asyncio
import sys

CHUNK = 65536
BACKLOG = 128


async def pump(reader, writer):
    """Copy bytes until the end of the stream, and pass the end on."""
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
            # The egress process restarts; the client must try again.
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
