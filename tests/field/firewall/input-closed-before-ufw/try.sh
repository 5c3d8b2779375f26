#!/bin/bash
. "$SRC/tests/field/firewall.sh"
step='{"allow":[{"from":"10.20.0.0/24","port":22}]}'
holds() { agent check ufw "$step" > "$WORK/said" 2>&1 && grep -q already "$WORK/said"; }
differs() { ! holds; }
apply() { agent apply ufw "$step" > "$WORK/said" 2>&1 || { cat "$WORK/said"; return 1; }; }
sed -i 's/^ENABLED=.*/ENABLED=no/' "$etc/ufw.conf"
iptables-restore -n < "$CASE/input.rules"
listen 22 2000
expect "port 22 is open before" is open port 22
expect "the step" apply
expect "port 22 is open" is open port 22
expect "port 2000 is not" differs_from_open 2000
expect "check holds" holds
iptables -F INPUT
iptables -A INPUT -i host -p tcp --dport 22 -j ACCEPT
iptables -A INPUT -p tcp --syn -j DROP
expect "what a site put in its place" apply
expect "port 22 is open by what is declared" is open port 22
expect "that holds" holds
iptables -N guard && iptables -A guard -p tcp --dport 22 -j ACCEPT && iptables -A guard -j DROP && iptables -I INPUT 1 -j guard
expect "a chain that drops the rest is noticed" differs
expect "put right" apply
expect "port 22 is open again" is open port 22
iptables -I INPUT 1 -p tcp --syn --dport 2000 -m connlimit --connlimit-upto 10 -j ACCEPT
expect "an accept with a memory is noticed" differs
expect "it goes" apply
expect "port 2000 is closed" differs_from_open 2000
sed -i 's|^COMMIT|-A FORWARD -i wg0 -j ACCEPT\nCOMMIT|' "$etc/before.rules"
ufw_init force-stop
ufw_init start
for port in 22 23 22; do
  agent apply ufw "{\"allow\":[{\"from\":\"10.20.0.0/24\",\"port\":$port}]}" > "$WORK/said" 2>&1 || cat "$WORK/said"
done
once() { [ "$(rules iptables | grep -c 'FORWARD -i wg0')" = 1 ]; }
expect "a line of before.rules for FORWARD is there once" once
exit $wrong
