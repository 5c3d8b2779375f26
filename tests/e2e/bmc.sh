#!/usr/bin/env bash
# the emulated BMC satisfies third-party clients: python3-sushy and redfishtool, every profile, a FAKE machine behind it
# stands on: base cli/lab_verb* host lab lab/* sys
set -euo pipefail
cd "$(dirname "$0")/../.."
muster=${MUSTER_BUILD:-build}/muster
[[ -z ${MUSTER_E2E_ACCELERATOR:-} ]] || echo none >"$MUSTER_E2E_ACCELERATOR"   # no machine is started
work=$(mktemp -d /var/tmp/muster-e2e.XXXXXX)
server=""
stop_server() {
  [[ -z $server ]] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  server=""
}
trap 'status=$?; stop_server; rm -rf "$work"; exit $status' EXIT
trap 'exit 130' INT TERM
die() { echo "FAILED: $*" >&2; exit 1; }
# requests lets these override "do not verify": the certificate is the BMC's own.
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY REQUESTS_CA_BUNDLE CURL_CA_BUNDLE

serve() {  # serve PROFILE: a BMC on a free port of 127.0.0.1, its port in $port
  : >"$work/out"   # here: the job below empties it later than the loop may read it, and then that is the last server's port
  $muster lab serve --fake-machine --profile "$1" --port 0 --password lab-secret >"$work/out" 2>"$work/err" &
  server=$!
  for _ in $(seq 100); do
    port=$(sed -n 's/^listening \([0-9]*\).*/\1/p' "$work/out")
    [[ -z $port ]] || return 0
    kill -0 $server 2>/dev/null || die "the BMC did not start: $(cat "$work/err")"
    sleep 0.1
  done
  die "the BMC does not listen"
}

sushy_client() {  # sushy_client PROFILE AUTH
  /usr/bin/python3 - "$port" "$1" "$2" <<'PY'
import sys, time, warnings
warnings.filterwarnings("ignore")
import sushy
port, profile, how = sys.argv[1:]
user, password = "admin", "lab-secret"
auth = (sushy.auth.BasicAuth if how == "basic" else sushy.auth.SessionAuth)(user, password)
root = sushy.Sushy(f"https://127.0.0.1:{port}/redfish/v1", auth=auth, verify=False)
# The member that can be reset. A baseboard beside it has no actions at all, and is 503 while the host is off, as on the real machine.
paths = [m["@odata.id"] for m in root._conn.get("/redfish/v1/Systems").json()["Members"]]
assert len(paths) == (2 if profile in ("dgx-h100", "gb200") else 1), paths

def can_be_reset(path):
    try:
        return "Actions" in root._conn._op("GET", path, server_side_retries=0).json()   # else it asks for half a minute
    except sushy.exceptions.ServerSideError as e:
        assert e.status_code == 503 and path.endswith("HGX_Baseboard_0"), (e.status_code, path)
        return False

systems = [p for p in paths if can_be_reset(p)]
assert len(systems) == 1, systems
system = root.get_system(systems[0])

def settled(state):
    for _ in range(100):
        system.refresh(force=True)
        if system.power_state == state:
            return
        time.sleep(0.1)
    raise SystemExit(f"power state stays {system.power_state}, expected {state}")

def boot_enabled():
    at = system
    settings = system.json.get("@Redfish.Settings", {}).get("SettingsObject", {}).get("@odata.id")
    at = root._conn.get(settings).json() if settings else (system.refresh(force=True), system.json)[1]
    return at["Boot"]["BootSourceOverrideEnabled"], at["Boot"]["BootSourceOverrideTarget"]

assert system.power_state == sushy.PowerState.OFF
system.set_system_boot_options(target=sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE,
                               mode=None if profile in ("hpe", "gb200") else sushy.BootSourceOverrideMode.UEFI)
assert boot_enabled() in (("Once", "Pxe"), ("Once", "UefiBootNext")), boot_enabled()
system.reset_system(sushy.ResetType.ON)
settled(sushy.PowerState.ON)
for _ in range(50):
    if boot_enabled()[0] == "Disabled":
        break
    time.sleep(0.1)
assert boot_enabled() == ("Disabled", "None"), boot_enabled()
system.reset_system(sushy.ResetType.FORCE_RESTART)
settled(sushy.PowerState.ON)
system.reset_system(sushy.ResetType.FORCE_OFF)
settled(sushy.PowerState.OFF)
try:
    system.reset_system(sushy.ResetType.FORCE_RESTART)
    raise SystemExit("a restart of a machine that is off was accepted")
except sushy.exceptions.HTTPError as e:
    assert e.status_code == 409, e.status_code
assert root.get_manager_collection().get_members()[0].firmware_version
assert root.get_chassis_collection().get_members()[0].serial_number == "FAKE0001"
nics = system.ethernet_interfaces.get_members()
assert nics[0].mac_address == "52:54:00:20:00:01"
print(f"  ok: sushy, {profile}, {how} authentication: discover, boot once, on, restart, off, refusals, inventory")
PY
}

redfishtool_client() {  # redfishtool_client PROFILE AUTH
  local id enabled state
  rf() { redfishtool -r "127.0.0.1:$port" -u admin -p lab-secret -S Always -A "$auth" "$@"; }
  local auth=$2
  id=$(rf Systems list | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["Members"][0]["Id"])')
  power() { rf -P PowerState Systems -I "$id" get | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["PowerState"])'; }
  wait_power() { for _ in $(seq 60); do [[ $(power) == "$1" ]] && return 0; sleep 0.2; done; die "power stays $(power), expected $1"; }
  wait_power Off
  rf Systems -I "$id" setBootOverride Once Pxe >/dev/null
  enabled=$(rf -P Boot Systems -I "$id" get | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["Boot"]["BootSourceOverrideEnabled"])')
  [[ $enabled == Once ]] || die "redfishtool reads back $enabled"
  rf -N Systems -I "$id" reset On >/dev/null
  wait_power On
  for _ in $(seq 50); do
    enabled=$(rf -P Boot Systems -I "$id" get | /usr/bin/python3 -c 'import json,sys; print(json.load(sys.stdin)["Boot"]["BootSourceOverrideEnabled"])')
    [[ $enabled != Disabled ]] || break
    sleep 0.2
  done
  [[ $enabled == Disabled ]] || die "Once was not spent by the boot: $enabled"
  rf -N Systems -I "$id" reset ForceRestart >/dev/null
  rf -N Systems -I "$id" reset ForceOff >/dev/null
  wait_power Off
  if rf Systems -I "$id" reset Bogus >/dev/null 2>&1; then die "redfishtool was allowed a reset type that does not exist"; fi
  if redfishtool -r "127.0.0.1:$port" -u admin -p wrong -S Always -A "$auth" Systems list >/dev/null 2>&1; then die "a wrong password was accepted"; fi
  echo "  ok: redfishtool, $1, $2 authentication: boot once, on, restart, off, refusals"
}

for profile in generic dgx-h100 supermicro dell hpe gb200; do
  for auth in basic session; do
    serve $profile
    sushy_client $profile $auth
    stop_server
  done
done
for profile in generic supermicro; do    # it cannot write a settings object, which the dgx-h100 profile demands
  for auth in Basic Session; do
    serve $profile
    redfishtool_client $profile $auth
    stop_server
  done
done
