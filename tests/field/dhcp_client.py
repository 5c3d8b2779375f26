#!/usr/bin/env python3
"""A DHCP client for field cases: one machine on one interface, whatever MAC it has.

    dhcp_client.py INTERFACE MAC [discover] [request ADDRESS]

`discover` (the default) goes from DISCOVER to ACK, as firmware does. `request ADDRESS` asks for an address that the
machine had before, as an installed system does after a boot (RFC 2131, 4.3.2: INIT-REBOOT). Prints one line: what
came of it (`ack ADDRESS`, `nak`, `silence`); the exit status is 0 for all three.
"""

import random
import socket
import struct
import sys
import time

SECONDS = 8  # dnsmasq pings an address of its pool for three seconds before it offers it
TYPES = {2: "offer", 5: "ack", 6: "nak"}


def packet(mac, transaction, options):
    head = struct.pack("!BBBBIHH4s4s4s4s", 1, 1, 6, 0, transaction, 0, 0x8000, *[bytes(4)] * 4)
    body = b"".join(bytes([code, len(value)]) + value for code, value in options)
    return head + mac.ljust(16, b"\0") + bytes(192) + b"\x63\x82\x53\x63" + body + b"\xff"


def answer(data, mac, transaction):
    """(type, address, server) of an answer to us; None of anything else."""
    if len(data) < 240 or data[0] != 2 or data[4:8] != struct.pack("!I", transaction) or data[28:34] != mac:
        return None
    options, at = {}, 240
    while at < len(data) and data[at] != 255:
        if data[at] == 0:
            at += 1
            continue
        options[data[at]] = data[at + 2:at + 2 + data[at + 1]]
        at += 2 + data[at + 1]
    return TYPES.get(options.get(53, b"\0")[0]), socket.inet_ntoa(data[16:20]), options.get(54, b"")


class Client:
    def __init__(self, interface, mac):
        self.mac = bytes.fromhex(mac.replace(":", ""))
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in (socket.SO_REUSEADDR, socket.SO_BROADCAST):
            self.socket.setsockopt(socket.SOL_SOCKET, option, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        self.socket.bind(("", 68))

    def ask(self, kind, options=()):
        transaction = random.getrandbits(32)
        message = packet(self.mac, transaction, [(53, bytes([kind])), *options])
        self.socket.sendto(message, ("255.255.255.255", 67))
        until = time.monotonic() + SECONDS
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                got = answer(self.socket.recv(2048), self.mac, transaction)
            except TimeoutError:
                break
            if got is not None and got[0] is not None:
                return got
        return None

    def discover(self):
        offer = self.ask(1)
        if offer is None:
            return None
        return self.ask(3, [(50, socket.inet_aton(offer[1])), (54, offer[2])])

    def request(self, address):
        return self.ask(3, [(50, socket.inet_aton(address))])


def main():
    interface, mac, *rest = sys.argv[1:]
    client = Client(interface, mac)
    got = client.request(rest[1]) if rest[:1] == ["request"] else client.discover()
    print("silence" if got is None else "nak" if got[0] == "nak" else f"{got[0]} {got[1]}")


if __name__ == "__main__":
    main()
