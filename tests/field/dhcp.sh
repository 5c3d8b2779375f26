#!/bin/bash
# For DHCP cases: a controller on one end of a wire, machines on the other. Sourced by their try.sh, which tests/field/run.sh
# runs in namespaces of their own. Afterwards `spec FILE` makes a spec the controller's and waits until its dnsmasq runs
# with it; `machine MAC [discover | request ADDRESS]` prints what became of a machine's request (tests/field/dhcp_client.py).
for program in dnsmasq curl nsenter python3; do
  command -v "$program" > /dev/null || { echo "needs $program"; exit 77; }
done
[ -e /usr/lib/ipxe/snponly.efi ] || { echo "needs the package ipxe"; exit 77; }
[ -x "$BUILD/musterd" ] || { echo "needs $BUILD/musterd"; exit 77; }
ip link set lo up
ip link add ctrl type veth peer name port
unshare --net sleep infinity &
other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link set port netns "$other"
ip link set ctrl up
ip addr add 10.20.0.1/24 dev ctrl
there() { nsenter --net="/proc/$other/ns/net" "$@"; }
there ip link set port up
there ip addr add 10.20.0.199/24 dev port
# dhcp_folder() of controller/boot/service/dhcp_service.h
run=/run/muster-dhcp/$(printf %s "$(realpath -m "$WORK/state")" | sha256sum | cut -c1-12)
trap 'rm -rf "$run"' EXIT
"$BUILD/musterd" --state "$WORK/state" --socket "$WORK/sock" --listen 10.20.0.1 --playbooks "$SRC/playbooks" --images "$SRC/images" \
  > "$WORK/musterd.log" 2>&1 &
until [ -S "$WORK/sock" ]; do sleep 0.05; done

spec() {
  rm -f "$run/dnsmasq.log"
  curl -sf --unix-socket "$WORK/sock" -X PUT --data-binary "@$1" http://localhost/v1/spec > /dev/null || { echo "no spec"; exit 1; }
  until grep -qs started "$run/dnsmasq.log"; do sleep 0.05; done
}
machine() { there python3 "$SRC/tests/field/dhcp_client.py" port "$@"; }
wrong=0
expect() { # WHAT GOT WANTED
  [ "$2" = "$3" ] || { echo "$1: $2, not $3"; wrong=1; }
}
