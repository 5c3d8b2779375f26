# shellcheck shell=bash
# Sourced by a case's try.sh: its wire.json through the driver `ipmi`, Debian's ipmitool and ipmi_sim.
for program in ipmitool ipmi_sim python3; do
  command -v "$program" >/dev/null || { echo "$program is missing"; exit 77; }
done
ip link set lo up
MUSTER_FIELD_CASE=$(basename "$CASE")
export MUSTER_FIELD_CASE
exec "$BUILD/muster_tests" "[.ipmi-wire]"
