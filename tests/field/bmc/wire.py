"""A wire on 127.0.0.1, between ipmitool and a BMC, that loses, delays and alters what it carries.

wire.py PORT BMC_PORT RULES prints a line when it carries. RULES is a JSON object:
packet           "open request", "open answer", "RAKP 1" ... "RAKP 4": which packets are meant
do               "lose", or "status XX": the BMC says no, with this status (IPMI 2.0, table 13-15)
suite            only of sessions that ask for this cipher suite
skip, times      how many of them are carried as they are first, and how many are meant then
delay_s          each answer comes so much later
"""

import json
import queue
import select
import socket
import sys
import threading
import time

KINDS = {0x10: "open request", 0x11: "open answer", 0x12: "RAKP 1", 0x13: "RAKP 2", 0x14: "RAKP 3", 0x15: "RAKP 4"}
SUITES = {(1, 1, 1): 3, (3, 4, 1): 17}  # authentication, integrity, confidentiality
BODY = 16  # RMCP header, authentication type, payload type, ids, length


def kind_of(packet):
    rmcp_plus = len(packet) > BODY and packet[4] == 0x06
    return KINDS.get(packet[5] & 0x3F) if rmcp_plus else None


def suite_of(request):
    body = request[BODY:]
    return SUITES.get((body[12] & 0x3F, body[20] & 0x3F, body[28] & 0x3F)) if len(body) >= 32 else None


def refused(packet, status):
    """The same answer with a status: what follows the console's id is left out then."""
    body = packet[BODY:BODY + 1] + bytes([status]) + packet[BODY + 2:BODY + 8]
    return packet[:BODY - 2] + len(body).to_bytes(2, "little") + body


class Wire:
    def __init__(self, rules):
        self.rules, self.seen, self.suite = rules, 0, None

    def carry(self, packet):
        """What arrives of a packet; None when nothing does."""
        kind = kind_of(packet)
        if kind == "open request":
            self.suite = suite_of(packet)
        if kind is None or kind != self.rules.get("packet") or self.rules.get("suite", self.suite) != self.suite:
            return packet
        self.seen += 1
        skip = self.rules.get("skip", 0)
        if not skip < self.seen <= skip + self.rules.get("times", sys.maxsize):
            return packet
        what = self.rules["do"]
        return None if what == "lose" else refused(packet, int(what.split()[1], 16))


def main():
    port, bmc_port, rules = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    wire, delay = Wire(rules), rules.get("delay_s", 0)
    front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    front.bind(("127.0.0.1", port))
    by_client, clients = {}, {}  # a socket to the BMC for each of ipmitool's, and back
    answers = queue.Queue()

    def deliver():
        while True:
            at, packet, to = answers.get()
            time.sleep(max(0, at - time.monotonic()))
            front.sendto(packet, to)

    threading.Thread(target=deliver, daemon=True).start()
    print("carries", flush=True)
    while True:
        for one in select.select([front, *clients], [], [])[0]:
            packet, sender = one.recvfrom(4096)
            carried = wire.carry(packet)
            if one is not front:
                if carried:
                    answers.put((time.monotonic() + delay, carried, clients[one]))
                continue
            if sender not in by_client:
                back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                back.connect(("127.0.0.1", bmc_port))
                by_client[sender], clients[back] = back, sender
            if carried:
                by_client[sender].send(carried)


main()
