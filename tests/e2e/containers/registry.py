"""A registry of container images for a test: registry.py FOLDER ADDRESS. In FOLDER lie cert.pem and key.pem, `program` (a static one, which
is all of its only image), and `log`, which has a line for each request: METHOD PATH STATUS.

On three ports of the address: 8443, HTTPS, with a login (ops:open-sesame), as registry.example; 8097, a proxy by which that name is reached,
and nothing else; 8098, HTTP, without a login, a mirror of the public registry. Everywhere any name and any tag is the one image.
"""
import base64
import gzip
import hashlib
import http.server
import io
import json
import socket
import ssl
import sys
import tarfile
import threading
from pathlib import Path

LOGIN = "Basic " + base64.b64encode(b"ops:open-sesame").decode()
TYPE = "application/vnd.docker.distribution.manifest.v2+json"
folder, address = Path(sys.argv[1]), sys.argv[2]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def image():
    """The manifest, and all three by their digests."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        entry = tar.gettarinfo(folder / "program", "hello")
        entry.uid = entry.gid = 0
        entry.mode = 0o755
        with open(folder / "program", "rb") as program:
            tar.addfile(entry, program)
    packed = gzip.compress(layer.getvalue())
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/hello"]},
                         "rootfs": {"type": "layers", "diff_ids": [digest(layer.getvalue())]}}).encode()
    about = [{"mediaType": kind, "size": len(data), "digest": digest(data)} for kind, data in (
        ("application/vnd.docker.container.image.v1+json", config),
        ("application/vnd.docker.image.rootfs.diff.tar.gzip", packed))]
    manifest = json.dumps({"schemaVersion": 2, "mediaType": TYPE, "config": about[0], "layers": about[1:]}).encode()
    return manifest, {digest(data): data for data in (manifest, config, packed)}


MANIFEST, BLOBS = image()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, form, *values):
        pass

    def note(self, status):
        with open(folder / "log", "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {status}\n")

    def answer(self, status, data=b"", kind="application/octet-stream", **headers):
        self.note(status)
        self.send_response(status)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class Mirror(Handler):
    login = None

    def do_GET(self):
        if self.login and self.headers.get("Authorization") != self.login:
            self.answer(401, WWW_Authenticate='Basic realm="registry.example"')
            return
        part, name = (["", ""] + self.path.split("?")[0].split("/"))[-2:]
        if self.path == "/v2/":
            self.answer(200, b"{}", "application/json")
        elif part == "manifests" and (":" not in name or name in BLOBS):
            self.answer(200, MANIFEST, TYPE, Docker_Content_Digest=digest(MANIFEST))
        elif part == "blobs" and name in BLOBS:
            self.answer(200, BLOBS[name], Docker_Content_Digest=name)
        else:
            self.answer(404)

    do_HEAD = do_GET


class Registry(Mirror):
    login = LOGIN


class Proxy(Handler):
    def do_CONNECT(self):
        if self.path != "registry.example:443":
            self.answer(403)
            return
        self.note(200)
        self.send_response(200)
        self.end_headers()
        with socket.create_connection((address, 8443)) as far:
            back = threading.Thread(target=pass_on, args=(far, self.connection), daemon=True)
            back.start()
            pass_on(self.connection, far)
            back.join()
        self.close_connection = True


def pass_on(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(handler, port):
    server = http.server.ThreadingHTTPServer((address, port), handler)
    server.daemon_threads = True
    if handler is Registry:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


for one, at in ((Registry, 8443), (Proxy, 8097), (Mirror, 8098)):
    serve(one, at)
threading.Event().wait()
