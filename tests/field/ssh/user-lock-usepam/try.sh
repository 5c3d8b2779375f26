#!/usr/bin/env bash
# An administrator with a password and a key, on a host whose sshd does without PAM; then muster's step `user` over the real files.
set -euo pipefail
for tool in sshd ssh ssh-keygen useradd; do PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "no $tool: apt-get install openssh-server"; exit 77; }; done
# Files of the machine are replaced in this script's own mount namespace alone.
for folder in etc home root run; do
  mkdir -p "$WORK/$folder.up" "$WORK/$folder.work"
  mount -t tmpfs none "$WORK/$folder.up"; mkdir "$WORK/$folder.up/u" "$WORK/$folder.up/w"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$WORK/$folder.up/u,workdir=$WORK/$folder.up/w" "/$folder"
done
ip link set lo up
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N "" -f "$WORK/key"
useradd -m -s /bin/bash -p "$(openssl passwd -6 made-up)" muster-admin
install -d -m 0700 -o muster-admin -g muster-admin /home/muster-admin/.ssh
install -m 0600 -o muster-admin -g muster-admin "$WORK/key.pub" /home/muster-admin/.ssh/authorized_keys
ssh-keygen -q -t ed25519 -N "" -f "$WORK/host"
logs_in() {  # yes|no: UsePAM
  printf 'Port 2222\nListenAddress 127.0.0.1\nHostKey %s\nUsePAM %s\nPidFile %s\nStrictModes yes\n' "$WORK/host" "$1" "$WORK/sshd.pid" >"$WORK/sshd_config"
  rm -f "$WORK/sshd.pid"
  /usr/sbin/sshd -f "$WORK/sshd_config" -E "$WORK/sshd.log"
  for _ in $(seq 100); do [[ -s $WORK/sshd.pid ]] && break; sleep 0.1; done
  local name
  name=$(ssh -F none -p 2222 -i "$WORK/key" -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
    muster-admin@127.0.0.1 id -un 2>&1) || true
  kill "$(cat "$WORK/sshd.pid")"
  [[ $name == muster-admin ]] || { echo "UsePAM $1: $name"; tail -n 3 "$WORK/sshd.log"; return 1; }
}
logs_in no
step='{"steps":[{"id":"base/account","module":"user","params":{"name":"muster-admin","keys":["'"$(cat "$WORK/key.pub")"'"],"sudo":false,"uid":0}}]}'
"$BUILD/muster-agent" apply <<<"$step" | tail -n 1
echo "the password field: $(getent shadow muster-admin | cut -d: -f2 | cut -c1-4)"
[[ $(getent shadow muster-admin | cut -d: -f2) != '$6'* ]] || { echo "the password still works"; exit 1; }
logs_in no
logs_in yes
