#!/bin/bash
. "$SRC/tests/field/firewall.sh"
step='{"allow":[{"from":"10.20.0.0/24","port":22}]}'
ufw_init start
ufw_init force-stop
printf 'ENABLED=no\nLOGLEVEL=off\n' > "$etc/ufw.conf"
listen 22 5900
expect "everything is open before" is open port 5900 fd00:20::31
expect "the step" agent apply ufw "$step" > /dev/null
expect "port 22 is open" is open port 22
expect "port 5900 is silent" is silent port 5900
expect "and by IPv6" is silent port 5900 fd00:20::31
expect "it holds" agent check ufw "$step" > /dev/null
exit $wrong
