#!/usr/bin/env bash
# ufw, iptables and ip6tables of Debian, and muster's step over what an administrator left there. systemd is a stub: its timer takes a change back
# only where nobody confirms it.
set -euo pipefail
for tool in iptables ip6tables; do command -v $tool >/dev/null || { echo "no $tool: apt-get install iptables"; exit 77; }; done
[[ -e /lib/ufw/ufw-init && -d /usr/share/ufw/iptables ]] || { echo "no ufw: apt-get install ufw"; exit 77; }
mount -t tmpfs none "$WORK"
mkdir -p "$WORK"/{u,w,bin}
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$WORK/u,workdir=$WORK/w" /etc
printf '#!/bin/sh\nexit 0\n' >"$WORK/bin/systemd-run"
printf '#!/bin/sh\ncase "$1" in is-active) echo inactive; exit 3;; esac\nexit 0\n' >"$WORK/bin/systemctl"
chmod +x "$WORK"/bin/*
export PATH=$WORK/bin:$PATH
ip link set lo up
mkdir -p /etc/ufw /etc/systemd/system/multi-user.target.wants
touch /etc/systemd/system/multi-user.target.wants/ufw.service
for f in before before6 after after6 user user6; do cp "/usr/share/ufw/iptables/$f.rules" /etc/ufw/; done
cp /usr/share/ufw/ufw.conf /etc/ufw/ufw.conf
sed -i 's/^ENABLED=.*/ENABLED=yes/' /etc/ufw/ufw.conf
sed -i 's|^### RULES ###|&\n-A ufw-user-input -p tcp --dport 5900 -j ACCEPT|' /etc/ufw/user.rules
sed -i 's|^### RULES ###|&\n-A ufw6-user-input -p tcp --dport 5900 -j ACCEPT|' /etc/ufw/user6.rules
sed -i 's|^COMMIT|-A ufw-before-input -p tcp --dport 3389 -j ACCEPT\nCOMMIT|' /etc/ufw/before.rules
printf '*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -s 10.8.0.0/24 -j MASQUERADE\nCOMMIT\n' >>/etc/ufw/before.rules
sh /lib/ufw/ufw-init start
step='{"steps":[{"id":"fw/rules","module":"ufw","params":{"allow":[{"from":"10.0.0.0/8","port":22}]}}]}'
holds() { "$BUILD/muster-agent" check <<<"$step" >"$WORK/checked" 2>&1; }
wrong() { if holds; then echo "$1: not seen"; cat "$WORK/checked"; exit 1; fi; }
right() {
  "$BUILD/muster-agent" apply <<<"$step" >"$WORK/said" 2>&1 || { echo "$1: not applied"; cat "$WORK/said"; iptables -S; exit 1; }
  holds || { echo "$1: not put right"; cat "$WORK/checked"; iptables -S; ip6tables -S INPUT; exit 1; }
}
wrong "leftovers"
right "leftovers"
if iptables -S | grep -E '5900|3389' || ip6tables -S | grep 5900; then echo "still open"; exit 1; fi
[[ $(iptables -t nat -S POSTROUTING | grep -c MASQUERADE) == 1 ]] || { echo "NAT of the site is not as it was"; iptables -t nat -S; exit 1; }
for tool in iptables ip6tables; do
  $tool -I INPUT 1 -j ACCEPT; wrong "$tool: an accept before all"; right "$tool: an accept before all"
  $tool -F INPUT; wrong "$tool: no jumps"; right "$tool: no jumps"
done
iptables -A ufw-before-input -p tcp --dport 8443 -j ACCEPT
wrong "a rule that no file has"; right "a rule that no file has"
echo "rules of both families are as declared"
