"""A machine on interface IFACE with MAC: `discover` takes what is offered, `reboot ADDRESS` asks for an address that it had.

dhcp_client.py IFACE MAC discover|reboot [ADDRESS]: prints "ack ADDRESS", "nak" or "silence".
"""

import os
import select
import socket
import struct
import sys
import time

PATIENCE = 3.0


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(mac, xid, options):
    body = struct.pack("!BBBBIHH16s16s64s128s", 1, 1, 6, 0, xid, 0, 0x8000, bytes(16), mac + bytes(10), bytes(64), bytes(128))
    body += b"\x63\x82\x53\x63" + options + b"\xff"
    udp = struct.pack("!HHHH", 68, 67, 8 + len(body), 0) + body
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return b"\xff" * 6 + mac + b"\x08\x00" + ip + udp


def answer(wire, xid):
    """(message type, address) of the next answer to this exchange; None after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while (left := end - time.monotonic()) > 0:
        if not select.select([wire], [], [], left)[0]:
            break
        frame = wire.recv(4096)
        if len(frame) < 282 or frame[12:14] != b"\x08\x00" or frame[23] != 17 or frame[36:38] != b"\x00\x44":
            continue
        bootp = frame[42:]
        if struct.unpack("!I", bootp[4:8])[0] != xid:
            continue
        at = 240
        while at + 1 < len(bootp) and bootp[at] not in (53, 255):
            at += 1 if bootp[at] == 0 else 2 + bootp[at + 1]
        return bootp[at + 2], socket.inet_ntoa(bootp[16:20]), socket.inet_ntoa(bootp[20:24])
    return None


def main():
    interface, mac, verb = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", "")), sys.argv[3]
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    wire.bind((interface, 0))
    xid = struct.unpack("!I", os.urandom(4))[0]
    arch = b"\x5d\x02\x00\x07"
    if verb == "reboot":
        wire.send(packet(mac, xid, b"\x35\x01\x03\x32\x04" + socket.inet_aton(sys.argv[4]) + arch))
    else:
        wire.send(packet(mac, xid, b"\x35\x01\x01" + arch))
        offer = answer(wire, xid)
        if offer is None or offer[0] != 2:
            return print("silence")
        wire.send(packet(mac, xid, b"\x35\x01\x03\x32\x04" + socket.inet_aton(offer[1]) + b"\x36\x04" + socket.inet_aton(offer[2]) + arch))
    reply = answer(wire, xid)
    kinds = {5: "ack", 6: "nak"}
    print("silence" if reply is None else f"{kinds.get(reply[0], reply[0])} {reply[1]}" if reply[0] == 5 else kinds.get(reply[0], reply[0]))


main()
