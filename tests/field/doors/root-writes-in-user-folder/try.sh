#!/bin/bash
# Playbook mpi, applied again and again while its account swaps ~/.ssh for a link.
. "$SRC/tests/field/root.sh"
[ -x /usr/bin/perl ] || { echo "needs /usr/bin/perl"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "needs x86_64 (the number of renameat2)"; exit 77; }
rm -rf "$root/home/mpi" "$root/root/.ssh"
mkdir -p "$root/home" "$root/etc/apt/apt.conf.d" "$root/root/.ssh"
chmod 700 "$root/root/.ssh"
echo ROOTS > "$root/root/.ssh/id_ed25519"
cp "$CASE/race.pl" "$root/run/race.pl"
steps='{"steps":[
{"id":"mpi/account","module":"user","params":{"name":"mpi","uid":920,"keys":["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W x"]}},
{"id":"mpi/private key","module":"file","params":{"path":"/home/mpi/.ssh/id_ed25519","mode":"0600","owner":"mpi","group":"mpi","content":"KEY\n"}},
{"id":"mpi/ssh settings","module":"file","params":{"path":"/home/mpi/.ssh/config","mode":"0600","owner":"mpi","group":"mpi","content":"Host *\n"}}]}'
apply() { echo "$steps" | in_root muster-agent apply > "$WORK/said" 2>&1; }
apply || { cat "$WORK/said"; echo "not so: the steps are carried out without a race"; exit 1; }
owned() { find "$root/etc" "$root/root" -uid 920; }
race() { # TARGET RUNS
  rm -rf "$root/home/mpi/.evil"
  chroot "$root" /usr/bin/perl /run/race.pl 920 /home/mpi "$1" &
  local racer=$! n
  for ((n = 0; n < $2; n++)); do
    apply
    [ -z "$(owned)" ] || break
  done
  kill "$racer"
  wait "$racer" 2> /dev/null
  # Whatever stood there last, the home has its folder again.
  [ ! -L "$root/home/mpi/.ssh" ] || { rm "$root/home/mpi/.ssh"; mv "$root/home/mpi/.evil" "$root/home/mpi/.ssh"; }
}
race /etc/apt/apt.conf.d 40
expect "no file of root's folders belongs to the account ($(owned | tr '\n' ' '))" [ -z "$(owned)" ]
race /root/.ssh 40
expect "no file of root's belongs to the account ($(owned | tr '\n' ' '))" [ -z "$(owned)" ]
expect "root's own key is still root's" grep -qx ROOTS "$root/root/.ssh/id_ed25519"
expect "nothing was written there" [ "$(cd "$root/root/.ssh" && ls | sort | tr '\n' ' ')" = "id_ed25519 " ]
# Afterwards, without the race, all is as it should be.
expect "the steps are carried out" apply
expect "the key is the account's" [ "$(stat -c '%u %a' "$root/home/mpi/.ssh/id_ed25519")" = "920 600" ]
exit $wrong
