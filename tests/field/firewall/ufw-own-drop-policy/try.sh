#!/bin/bash
# A host with rules of its own and no ufw in the kernel: the change is taken back, because the controller cannot be reached.
. "$SRC/tests/field/firewall.sh"
printf 'ENABLED=no\nLOGLEVEL=off\n' > "$etc/ufw.conf"
rm "$root/etc/systemd/system/multi-user.target.wants/ufw.service"
own() { # PROGRAM
  "$1" -P INPUT DROP
  "$1" -A INPUT -i lo -j ACCEPT
  "$1" -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
  "$1" -A INPUT -p tcp --dport 22 -m comment --comment "by hand" -j ACCEPT
}
own iptables
own ip6tables
before=$(rules iptables; rules ip6tables)
files=$(cat "$etc"/*.rules "$etc/ufw.conf" "$root/etc/default/ufw" | sha256sum)
fails() { ! agent apply ufw '{"allow":[],"controller":"https://10.20.0.77:7443"}' > "$WORK/said" 2>&1; }
expect "without its controller the change fails" fails
expect "the kernel's rules are as they were" test "$(rules iptables; rules ip6tables)" = "$before"
expect "ufw's files are as they were" test "$(cat "$etc"/*.rules "$etc/ufw.conf" "$root/etc/default/ufw" | sha256sum)" = "$files"
expect "ufw does not start at a boot" grep -q '^disable ufw.service$' "$root/run/systemctl.calls"
# With its controller: what was there by hand goes, too.
there ip addr add 10.20.0.88/24 dev port
there python3 -c '
import socket
server = socket.create_server(("10.20.0.88", 7443))
open("serving", "w").close()
while True:
    server.accept()[0].close()
' &
until [ -e serving ]; do sleep 0.05; done
expect "with it the change is made" agent apply ufw '{"allow":[],"controller":"https://10.20.0.88:7443"}' > /dev/null
expect "and port 22 is closed" not_in 22
expect "and it is not taken back later" test ! -e "$root/var/lib/muster/rollback/ufw.json"
exit $wrong
