# shellcheck shell=bash
# Sourced by a case's try.sh: a host with real sshd, PAM, sudo and shells, in the root of tests/field/root.sh, and a command on this side
# that looks at it. `ops` logs in with a key and may use sudo without a password.
. "$SRC/tests/field/root.sh"
needs sshd ssh ssh-keygen sudo jq useradd
[ -x "$BUILD/muster" ] || { echo "needs $BUILD/muster"; exit 77; }
ssh-keygen -q -t ed25519 -N '' -f "$WORK/key"
in_root useradd -m -s /bin/bash ops
in_root usermod -p '*' ops
home=$root/home/ops
mkdir -p "$home/.ssh" "$root/run/sshd" "$root/etc/sudoers.d"
chmod 700 "$home/.ssh"
cp "$WORK/key.pub" "$home/.ssh/authorized_keys"
in_root chown -R ops: /home/ops
echo 'ops ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/ops"
chmod 0440 "$root/etc/sudoers.d/ops"
in_root ssh-keygen -A > /dev/null
echo 'Example Site. Authorized use only.' > "$root/etc/issue.net"
cat > "$WORK/ssh_config" << CONFIG
Host host
  HostName 127.0.0.1
  Port 2222
  User ops
  IdentityFile $WORK/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
CONFIG
echo host > "$WORK/hosts.txt"   # without an address: lists take none of loopback, and a look needs none

serves() { # OPTION...: sshd starts with these options; an earlier one ends
  if [ -s "$root/run/field.pid" ]; then kill "$(cat "$root/run/field.pid")"; fi
  while [ -e "$root/run/field.pid" ]; do sleep 0.05; done
  rm -f "$root/run/field.log"
  in_root /usr/sbin/sshd -p 2222 -E /run/field.log -o PidFile=/run/field.pid -o LogLevel=VERBOSE -o UsePAM=yes -o AddressFamily=inet \
    -o ListenAddress=127.0.0.1 -o Banner=/etc/issue.net "$@"
  until [ -s "$root/run/field.pid" ]; do sleep 0.05; done
}
looks() { # muster looks at the host
  XDG_STATE_HOME=$WORK/state "$BUILD/muster" accept --hosts "$WORK/hosts.txt" --ssh-config "$WORK/ssh_config" --drift-only --json \
    > "$WORK/said.json" 2> "$WORK/errors" < /dev/null
  [ -s "$WORK/said.json" ] || cat "$WORK/errors"
}
host_is() { # EXPRESSION of jq about the host
  jq -e ".hosts[0] | $1" "$WORK/said.json" > /dev/null || { jq -c .hosts "$WORK/said.json"; return 1; }
}
connections() { grep -c '^Connection from' "$root/run/field.log"; }
tried() { [ "$(connections)" = "$1" ]; }
none_of() { ! in_root pgrep -f "$1" > /dev/null; }
