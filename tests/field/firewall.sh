#!/bin/bash
# Real ufw and iptables, in a root and a network that are thrown away: a host with ufw's own files on one end of a wire,
# others on the other. Sourced by try.sh. `there COMMAND...` runs something at the other end; `rules TABLE` prints a family's
# filter table, `port N` whether a connection to the host's port is made, from there.
. "$SRC/tests/field/root.sh"
needs iptables ip6tables iptables-restore ufw nsenter unshare python3
[ -d /usr/share/ufw/iptables ] || { echo "needs the package ufw"; exit 77; }
iptables -S > /dev/null 2>&1 && ip6tables -S > /dev/null 2>&1 || { echo "needs a kernel with iptables"; exit 77; }
unshare --net sleep infinity &
other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
there() { nsenter --net="/proc/$other/ns/net" "$@"; }
ip link add host type veth peer name port
ip link set port netns "$other"
ip link set host up
ip addr add 10.20.0.31/24 dev host
ip -6 addr add fd00:20::31/64 dev host nodad
there ip link set port up
there ip link set lo up
there ip addr add 10.20.0.1/24 dev port
there ip -6 addr add fd00:20::1/64 dev port nodad

etc=$root/etc/ufw
rm -rf "$etc/user.rules" "$etc/user6.rules"
mkdir -p "$etc"
cp /usr/share/ufw/iptables/*.rules "$etc/"
printf 'ENABLED=yes\nLOGLEVEL=off\n' > "$etc/ufw.conf"
sed -e 's/^IPV6=.*/IPV6=yes/' -e 's/^DEFAULT_INPUT_POLICY=.*/DEFAULT_INPUT_POLICY="DROP"/' /etc/default/ufw > "$root/etc/default/ufw"
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf /lib/systemd/system/ufw.service "$root/etc/systemd/system/multi-user.target.wants/ufw.service"
# A systemd that has nothing to do: no unit is active, and no timer fires.
cat > "$root/usr/local/sbin/systemctl" << 'SYSTEMCTL'
#!/bin/sh
echo "$@" >> /run/systemctl.calls
case $1 in is-active) echo inactive; exit 3 ;; esac
exit 0
SYSTEMCTL
printf '#!/bin/sh\nexit 0\n' > "$root/usr/local/sbin/systemd-run"
chmod +x "$root"/usr/local/sbin/system*

ufw_init() { in_root /lib/ufw/ufw-init "$1" > "$WORK/ufw-init.log" 2>&1; }
rules() { "$1-save" -t filter | sed -e '/^#/d' -e 's/ \[[0-9:]*\]$//'; }
lets_in() { # PORT: an accept of it in either family
  { iptables-save && ip6tables-save; } | grep -q -- "--dport $1 -j ACCEPT"
}
not_in() { ! lets_in "$1"; }
listen() { # PORT...: something that answers what it is sent
  python3 -c '
import selectors, socket, sys
each = selectors.DefaultSelector()
for port in sys.argv[1:]:
    server = socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
    each.register(server, selectors.EVENT_READ, True)
open("listening", "w").close()
while True:
    for key, _ in each.select():
        if key.data:
            each.register(key.fileobj.accept()[0], selectors.EVENT_READ, False)
            continue
        data = key.fileobj.recv(100)
        if not data:
            each.unregister(key.fileobj)
        else:
            key.fileobj.sendall(data)
' "$@" &
  until [ -e listening ]; do sleep 0.05; done
}
port() { # N [ADDRESS]: open, refused or silent
  there python3 -c '
import socket, sys
try:
    socket.create_connection((sys.argv[2], int(sys.argv[1])), 2).close()
    print("open")
except TimeoutError:
    print("silent")
except OSError:
    print("refused")
' "$1" "${2:-10.20.0.31}"
}
differs_from_open() { [ "$(port "$1")" != open ]; }
is() { [ "$("${@:2}")" = "$1" ]; }
