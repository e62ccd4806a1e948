"""Forward connections from a workspace's loopback to the egress socket.

usage: egress-forward.py PORT SOCKET

The program listens on three ports:

  PORT      TCP: HTTP proxy and SOCKS5, passed on as they are
  PORT + 1  TCP: connections to other addresses that the kernel redirected here (own-network.py), passed on by SOCKS5
  PORT + 2  UDP: DNS queries for the address of a name

A name gets a placeholder address from 240.0.0.0/8, which no host has. A connection to a placeholder is passed on with
the name, so the egress process resolves and judges the name itself.

The program runs inside the workspace with the workspace's rights, so it decides nothing: the egress process at the
other end of the socket judges each connection. Only the standard library; started with `-I -S`.
"""

import asyncio
import collections
import ipaddress
import socket
import struct
import sys

CHUNK = 65536
BACKLOG = 128
SO_ORIGINAL_DST = 80

SOCKS5, CONNECT, RESOLVE, NAME = 5, 1, 0xF0, 3
DONE, UNREACHABLE = 0, 4

FIRST_PLACEHOLDER = ipaddress.IPv4Address("240.0.0.1")
MOST_NAMES = 4096
MOST_QUERIES = 64
TTL_S = 60
TYPE_A, CLASS_IN = 1, 1
LOOPBACK = ipaddress.IPv4Address("127.0.0.1")
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3


class Placeholders:
    """Addresses that stand for names; the address that was unused for longest goes to a new name."""

    def __init__(self):
        self._addresses = collections.OrderedDict()
        self._names = {}

    def address_of(self, name):
        address = self._addresses.get(name)
        if address is None:
            address = FIRST_PLACEHOLDER + len(self._addresses)
            if len(self._addresses) >= MOST_NAMES:
                _, address = self._addresses.popitem(last=False)
            self._addresses[name] = address
            self._names[address] = name
        self._addresses.move_to_end(name)
        return address

    def name_of(self, address):
        """Return the name behind a placeholder, or the address itself as text."""
        name = self._names.get(address)
        if name is None:
            return str(address)
        self._addresses.move_to_end(name)
        return name


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


async def join(near, far):
    """Copy in both directions until both have ended."""
    await asyncio.gather(pump(near[0], far[1]), pump(far[0], near[1]))
    for _, writer in (near, far):
        writer.close()


def reset(writer):
    """Close with a reset: the program has its connection already, and an orderly end looks like an empty answer."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Forwarder:
    def __init__(self, path):
        self._path = path
        self._placeholders = Placeholders()
        self._own_name = socket.gethostname().lower()

    async def pass_on(self, reader, writer):
        """Pass on a connection of a program that speaks to a proxy."""
        try:
            far = await asyncio.open_unix_connection(self._path)
        except OSError:
            # The egress process restarts; the client must try again.
            writer.close()
            return
        await join((reader, writer), far)

    async def pass_on_redirected(self, reader, writer):
        """Pass on a connection of a program that knows no proxy."""
        far = None
        try:
            asked = writer.get_extra_info("socket").getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
            port, address = struct.unpack("!2xH4s8x", asked)
            reply, far = await self._ask(CONNECT, self._placeholders.name_of(ipaddress.IPv4Address(address)), port)
        except (OSError, EOFError):
            reply = UNREACHABLE
        if reply == DONE:
            await join((reader, writer), far)
            return
        if far is not None:
            far[1].close()
        try:
            reset(writer)
        except OSError:
            # The program has closed it already.
            pass

    async def answer(self, query):
        """Return the answer to a DNS query, or None for other datagrams."""
        try:
            name, kind, end = read_question(query)
        except (ValueError, IndexError, struct.error):
            return None
        if kind != TYPE_A:
            return dns_answer(query, end, NO_ERROR)
        # Programs that serve their own parts listen at the address of their host's name.
        if name in ("localhost", self._own_name) or name.endswith(".localhost"):
            return dns_answer(query, end, NO_ERROR, LOOPBACK)
        try:
            reply, far = await self._ask(RESOLVE, name, 0)
            far[1].close()
        except (OSError, EOFError):
            return dns_answer(query, end, SERVER_FAILURE)
        if reply == UNREACHABLE:
            return dns_answer(query, end, NO_SUCH_NAME)
        return dns_answer(query, end, NO_ERROR, self._placeholders.address_of(name))

    async def _ask(self, command, host, port):
        """Open a SOCKS5 connection with a request; return the reply and the connection."""
        far = await asyncio.open_unix_connection(self._path)
        try:
            name = host.encode("ascii")
            far[1].write(bytes([SOCKS5, 1, 0, SOCKS5, command, 0, NAME, len(name)]) + name + struct.pack("!H", port))
            method = await far[0].readexactly(2)
            reply = await far[0].readexactly(10) if method[1] == 0 else bytes([SOCKS5, UNREACHABLE])
            return reply[1], far
        except BaseException:
            far[1].close()
            raise


def read_question(query):
    """Return name, type and end of the only question of a DNS query (RFC 1035)."""
    flags, questions = struct.unpack_from("!HH", query, 2)
    if flags & 0xF800 or questions != 1:
        raise ValueError("not a query with one question")
    labels, at = [], 12
    while length := query[at]:
        label = query[at + 1 : at + 1 + length].decode("ascii")
        if length > 63 or len(label) != length or "." in label:
            raise ValueError("not a label")
        labels.append(label.lower())
        at += 1 + length
    kind, family = struct.unpack_from("!HH", query, at + 1)
    name = ".".join(labels)
    if family != CLASS_IN or not 0 < len(name) <= 253:
        raise ValueError("not a name of the internet")
    return name, kind, at + 5


def dns_answer(query, end, code, address=None):
    """Return an answer with the question of `query`, and with one address if there is one."""
    recursion_desired = query[2] & 1
    header = query[:2] + bytes([0x80 | recursion_desired, 0x80 | code])
    record = b""
    if address is not None:
        # 0xC00C points to the name of the question.
        record = struct.pack("!HHHIH", 0xC00C, TYPE_A, CLASS_IN, TTL_S, 4) + address.packed
    return header + struct.pack("!HHHH", 1, 1 if record else 0, 0, 0) + query[12:end] + record


class Resolver(asyncio.DatagramProtocol):
    """A DNS server; queries beyond a limit get no answer, and programs ask again."""

    def __init__(self, forwarder):
        self._forwarder = forwarder
        self._running = set()

    def connection_made(self, transport):
        self._transport = transport

    def datagram_received(self, query, sender):
        if len(self._running) < MOST_QUERIES:
            task = asyncio.ensure_future(self._answer(query, sender))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _answer(self, query, sender):
        answer = await self._forwarder.answer(query)
        if answer is not None:
            self._transport.sendto(answer, sender)


async def serve(port, path):
    """Listen on the loopback for as long as the workspace runs."""
    forwarder = Forwarder(path)
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: Resolver(forwarder), local_addr=("127.0.0.1", port + 2))
    await asyncio.start_server(forwarder.pass_on_redirected, "127.0.0.1", port + 1, backlog=BACKLOG)
    # Last, because its port tells that the forwarder is ready.
    server = await asyncio.start_server(forwarder.pass_on, "127.0.0.1", port, backlog=BACKLOG)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
