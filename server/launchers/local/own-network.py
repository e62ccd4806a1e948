"""Set up the network namespace of a sandbox, which the program starts in.

usage: own-network.py PORT

Brings the loopback up. Then the kernel redirects TCP connections to other addresses to PORT + 1, and DNS queries to
PORT + 2, where egress-forward.py listens. So programs that know no proxy reach the egress process too. The redirection
grants nothing: a namespace has no other way out. Only the standard library; started with `-I -S`.
"""

import os
import socket
import struct
import sys

REQUEST, ACK, CREATE, APPEND = 1, 4, 0x400, 0x800
NESTED = 0x8000
NLMSG_ERROR = 2
TIMEOUT_S = 5
LOOPBACK = 1  # The index of `lo` in each network namespace.

# linux/rtnetlink.h and linux/if.h
NETLINK_ROUTE, RTM_NEWLINK, RTM_NEWROUTE = 0, 16, 24
IFF_UP = 1
RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL = 255, 4, 254, 2
RTA_OIF, RTA_PREFSRC = 4, 7

# linux/netfilter/nfnetlink.h and nf_tables.h
NETLINK_NETFILTER, NFTABLES, BATCH_BEGIN, BATCH_END = 12, 10, 16, 17
NEWTABLE, NEWCHAIN, NEWRULE = 0, 3, 6
LOCAL_OUT, PRIORITY_NAT = 3, -100
META_L4PROTO = 16
NETWORK_HEADER, TRANSPORT_HEADER = 1, 2
EQUAL, NOT_EQUAL = 0, 1
REGISTER = struct.pack(">I", 1)
TABLE, CHAIN = b"sluice\0", b"out\0"


def attribute(kind, value):
    """Encode one netlink attribute, padded to four bytes; a list of attributes is nested."""
    if isinstance(value, list):
        kind, value = kind | NESTED, b"".join(value)
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def number(value):
    return struct.pack(">i", value)


def message(kind, flags, body, sequence):
    return struct.pack("=IHHII", 16 + len(body), kind, REQUEST | flags, sequence, 0) + body


def ask(protocol, messages, acknowledged):
    """Send the messages at once, and raise OSError for the first that the kernel refuses."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as link:
        link.settimeout(TIMEOUT_S)
        link.bind((0, 0))
        link.send(b"".join(messages))
        while acknowledged > 0:
            answer = link.recv(65536)
            while len(answer) >= 20:
                length, kind, _, _, _, code = struct.unpack_from("=IHHIIi", answer)
                if kind == NLMSG_ERROR:
                    if code != 0:
                        raise OSError(-code, os.strerror(-code))
                    acknowledged -= 1
                answer = answer[(length + 3) & ~3 :]


def bring_up_loopback():
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, LOOPBACK, IFF_UP, IFF_UP)
    ask(NETLINK_ROUTE, [message(RTM_NEWLINK, ACK, body, 1)], 1)


def route_all_to_loopback():
    """Add a local route, because a connection needs a route before its redirection."""
    body = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, 0, 0, 0, RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL, 0
    )
    body += attribute(RTA_OIF, struct.pack("=I", LOOPBACK)) + attribute(RTA_PREFSRC, socket.inet_aton("127.0.0.1"))
    ask(NETLINK_ROUTE, [message(RTM_NEWROUTE, ACK | CREATE, body, 1)], 1)


def expression(name, *attributes):
    return attribute(1, [attribute(1, name + b"\0"), attribute(2, list(attributes))])


def compared(operation, value):
    data = attribute(3, [attribute(1, value)])
    return expression(b"cmp", attribute(1, REGISTER), attribute(2, number(operation)), data)


def protocol_is(value):
    loaded = expression(b"meta", attribute(2, number(META_L4PROTO)), attribute(1, REGISTER))
    return loaded + compared(EQUAL, bytes([value]))


def payload(base, offset, length):
    place = [attribute(at, number(value)) for at, value in ((2, base), (3, offset), (4, length))]
    return expression(b"payload", attribute(1, REGISTER), *place)


def redirected(port):
    data = attribute(2, [attribute(1, struct.pack(">H", port))])
    loaded = expression(b"immediate", attribute(1, REGISTER), data)
    return loaded + expression(b"redir", attribute(1, REGISTER))


def redirect(port):
    """Add a table with two rules, as `nft` would: TCP to other than 127.0.0.0/8, and UDP to port 53."""
    # The first byte of the destination address, and the destination port.
    outside = payload(NETWORK_HEADER, 16, 1) + compared(NOT_EQUAL, bytes([127]))
    dns = payload(TRANSPORT_HEADER, 2, 2) + compared(EQUAL, struct.pack(">H", 53))
    rules = [
        protocol_is(socket.IPPROTO_TCP) + outside + redirected(port + 1),
        protocol_is(socket.IPPROTO_UDP) + dns + redirected(port + 2),
    ]
    hook = attribute(4, [attribute(1, number(LOCAL_OUT)), attribute(2, number(PRIORITY_NAT))])
    table = attribute(1, TABLE)
    bodies = [
        (NEWTABLE, CREATE, table),
        (NEWCHAIN, CREATE, table + attribute(3, CHAIN) + hook + attribute(7, b"nat\0")),
        *((NEWRULE, CREATE | APPEND, table + attribute(2, CHAIN) + attribute(4, [rule])) for rule in rules),
    ]
    family = struct.pack(">BBH", socket.AF_INET, 0, 0)
    batch = struct.pack(">BBH", socket.AF_UNSPEC, 0, NFTABLES)
    messages = [message(BATCH_BEGIN, 0, batch, 0)]
    for at, (kind, flags, body) in enumerate(bodies, 1):
        messages.append(message(NFTABLES << 8 | kind, ACK | flags, family + body, at))
    messages.append(message(BATCH_END, 0, batch, len(bodies) + 1))
    ask(NETLINK_NETFILTER, messages, len(bodies))


if __name__ == "__main__":
    bring_up_loopback()
    try:
        redirect(int(sys.argv[1]))
        route_all_to_loopback()
    except OSError as error:
        reason = f"the kernel redirects nothing ({error})"
        print(f"Only programs with proxy settings reach the network: {reason}.", file=sys.stderr)
