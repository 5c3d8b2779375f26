#!/usr/bin/env python3
"""Serves a folder by HTTP to the network of a lab, and fetches what is not in it yet.

  serve_archive.py FOLDER NAMESPACE ADDRESS PORT

FOLDER/origins.json: {"ubuntu": "http://mirror.example/ubuntu"}: a file below FOLDER/ubuntu that is not there is fetched from that mirror, and
kept. This process stays in its own network, from which it reaches the mirrors; only its port is in the network namespace.
"""
import ctypes
import json
import os
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen


class Archive(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder, origins = Path(), {}

    def translate_path(self, path):
        return os.path.realpath(super().translate_path(path))   # archives of one pool have links to it

    def send_head(self):
        path = Path(self.translate_path(self.path))
        for prefix, origin in self.origins.items():
            if path.exists() or not path.is_relative_to(self.folder / prefix):
                continue
            try:
                source = urlopen(f"{origin}/{quote(str(path.relative_to(self.folder / prefix)))}", timeout=300)
            except OSError as error:
                self.log_error("%s: %s", self.path, error)
                continue
            self.send_response(200)
            for header in ("Content-Type", "Content-Length", "Last-Modified"):
                if source.headers[header]:
                    self.send_header(header, source.headers[header])
            if source.length is None:
                self.send_header("Connection", "close")
            self.end_headers()
            return Fetched(source, path)
        return super().send_head()   # which answers 404 to what is not there


class Fetched:
    """A mirror's file on its way to the client, who waits for no more than 30 s for its beginning; kept once it has been read to its end."""

    def __init__(self, source, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.source, self.path, self.part = source, path, path.with_name(f".{path.name}.{threading.get_ident()}")
        self.copy, self.whole = self.part.open("wb"), False

    def read(self, size):
        data = self.source.read(size)
        self.copy.write(data)
        self.whole = not data and not self.source.length   # what is missing of it; None: it did not say
        return data

    def close(self):
        self.source.close()
        self.copy.close()
        if self.whole:
            self.part.rename(self.path)
        else:
            self.part.unlink()


def server_in(namespace, address, port):
    """A server whose socket was made in this network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(file):
        if libc.setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"setns: {file.name}")

    with open("/proc/self/ns/net", encoding="utf-8") as own, open(f"/run/netns/{namespace}", encoding="utf-8") as other:
        enter(other)
        try:
            return ThreadingHTTPServer((address, port), lambda *request: Archive(*request, directory=str(Archive.folder)))
        finally:
            enter(own)


def main(folder, namespace, address, port):
    Archive.folder = Path(folder).resolve()
    Archive.origins = json.loads((Archive.folder / "origins.json").read_text(encoding="utf-8"))
    server_in(namespace, address, int(port)).serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
