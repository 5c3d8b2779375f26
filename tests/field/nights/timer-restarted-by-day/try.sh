#!/bin/bash
# The timer elapses, and seconds later it is restarted. Real systemd, real `muster`, a controller that answers what it gets.
. "$SRC/tests/field/nights/systemd.sh"
[ -x "$BUILD/muster" ] || { echo "needs $BUILD/muster"; exit 77; }
command -v python3 > /dev/null || { echo "needs python3"; exit 77; }
cat > "$WORK/controller" <<END
import http.server, json, os, socketserver
class Unix(socketserver.UnixStreamServer):
    def get_request(self):
        return (self.socket.accept()[0], ("local", 0))
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        late = body.get("late_ms", 0)
        with open("$WORK/calls", "a") as calls:
            calls.write(f"{late}\n")
        fine = late < 2000  # a window of two seconds
        text = json.dumps({"begun": True} if fine else {"code": "denied", "message": "the window is over"}).encode()
        self.send_response(200 if fine else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        pass
Unix("$WORK/sock", Answer).serve_forever()
END
python3 "$WORK/controller" &
printf '#!/bin/sh\nexec %s/muster rollout start --socket %s/sock\n' "$BUILD" "$WORK" > "$WORK/muster"
chmod +x "$WORK/muster"
mkdir "$units/muster-rollout.timer.d"
printf '[Timer]\nOnCalendar=\nOnCalendar=*:*:0/20\nAccuracySec=100ms\n' > "$units/muster-rollout.timer.d/field.conf"
boot
in_systemd systemctl start musterd.service
in_systemd systemctl start muster-rollout.timer
for _ in $(seq 130); do called 1 && break; sleep 0.2; done
expect "the timer elapsed" called 1
expect "and the window was opened in time" [ "$(tail -n 1 "$WORK/calls")" -lt 1000 ]
sleep 5
in_systemd systemctl restart muster-rollout.timer
sleep 2
# Other systemds start nothing, which is right as well.
if called 2; then
  expect "the start by a restart counts from the last time that was due" [ "$(tail -n 1 "$WORK/calls")" -ge 4000 ]
  expect "and is refused" is muster-rollout.service ActiveState failed
fi
exit $wrong
