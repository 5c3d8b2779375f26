#!/bin/bash
. "$SRC/tests/field/firewall.sh"
step='{"allow":[{"from":"10.20.0.0/24","port":22}]}'
holds() { agent check ufw "$step" > "$WORK/said" 2>&1 && grep -q already "$WORK/said"; }
differs() { ! holds; }
apply() { agent apply ufw "$step" > "$WORK/said" 2>&1 || { cat "$WORK/said"; return 1; }; }

# What an administrator left: allowed ports of both families, accepts in ufw's other files, in INPUT, in a chain of their own.
sed -i 's|^### RULES ###|&\n-A ufw-user-input -p tcp --dport 5900 -j ACCEPT|' "$etc/user.rules"
sed -i 's|^### RULES ###|&\n-A ufw6-user-input -p tcp --dport 5900 -j ACCEPT|' "$etc/user6.rules"
sed -i 's|^COMMIT|-A ufw-before-input -p tcp --dport 3389 -j ACCEPT\nCOMMIT|' "$etc/before.rules"
sed -i 's|^COMMIT|-A ufw6-before-input -p tcp --dport 3389 -j ACCEPT\nCOMMIT|' "$etc/before6.rules"
sed -i 's|^COMMIT|-A ufw-after-input -p tcp --dport 3390 -j ACCEPT\nCOMMIT|' "$etc/after.rules"
ufw_init start
iptables -I INPUT 1 -p tcp --dport 6000 -m comment --comment "for the time being" -j ACCEPT
ip6tables -I INPUT 1 -p tcp --dport 6000 -j ACCEPT
iptables -N site && iptables -A site -p tcp --dport 6001 -j ACCEPT && iptables -I INPUT 2 -j site
iptables -N banned && iptables -A banned -s 192.0.2.7 -j REJECT && iptables -I INPUT 1 -j banned
listen 22 3389 5900 6000 6001
for n in 3389 5900 6000; do
  expect "port $n is open before" is open port $n
done
# A session that is under way, as the controller has one; by a port that new connections do not get in by afterwards.
mkfifo "$WORK/to" "$WORK/from"
there python3 -c '
import socket, sys
s = socket.create_connection(("10.20.0.31", 5900), 5)
s.settimeout(20)
print("up", flush=True)
for line in sys.stdin:
    s.sendall(line.encode())
    print(s.recv(100).decode().strip(), flush=True)
' < "$WORK/to" > "$WORK/from" &
exec 8> "$WORK/to" 9< "$WORK/from"
read -r -u 9 said
session() { echo still >&8 && read -r -t 20 -u 9 said && [ "$said" = still ]; }

expect "check differs" differs
expect "the step" apply
expect "the session goes on" session
for n in 5900 3389 3390 6000 6001; do
  expect "nothing lets port $n in" not_in $n
  expect "port $n is silent" is silent port $n
done
expect "nor by IPv6" is silent port 5900 fd00:20::31
expect "port 22 is open" is open port 22
expect "port 22 is silent by IPv6" is silent port 22 fd00:20::31
expect "what refuses others is still there" iptables -C banned -s 192.0.2.7 -j REJECT
expect "and packets come to it" iptables -C INPUT -j banned
expect "check holds" holds
ufw_shows() { in_root ufw status | grep -q '^22/tcp .*10.20.0.0/24'; }
expect "ufw itself shows what is declared" ufw_shows

tamper() { # COMMAND...: is noticed, and put right
  "$@"
  expect "noticed: $*" differs
  expect "put right: $*" apply
  expect "and holds: $*" holds
  expect "port 22 is open after: $*" is open port 22
  expect "the session goes on after: $*" session
}
tamper iptables -I INPUT 1 -j ACCEPT
tamper ip6tables -I INPUT 1 -j ACCEPT
tamper iptables -F INPUT
tamper ip6tables -F INPUT
tamper iptables -P INPUT ACCEPT
tamper ip6tables -P INPUT ACCEPT
tamper iptables -D ufw-before-input -j ufw-user-input
tamper iptables -F ufw-before-input
tamper iptables -A ufw-before-input -p tcp --dport 3389 -j ACCEPT
tamper ip6tables -A ufw6-user-input -p tcp --dport 5900 -j ACCEPT
tamper iptables -A ufw-user-input -p tcp --dport 5900 -j ACCEPT
tamper sed -i 's|^COMMIT|-A ufw-before-input -p tcp --dport 3389 -j ACCEPT\nCOMMIT|' "$etc/before.rules"
tamper sed -i 's|^COMMIT|-A ufw6-before-input -i host -j ACCEPT\nCOMMIT|' "$etc/before6.rules"

# A boot: what the files say is what holds.
{ echo '*filter'; echo COMMIT; } | iptables-restore
{ echo '*filter'; echo COMMIT; } | ip6tables-restore
iptables -P INPUT ACCEPT
ip6tables -P INPUT ACCEPT
ufw_init start
expect "after a boot it holds" holds
exit $wrong
