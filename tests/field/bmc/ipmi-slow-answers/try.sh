#!/bin/bash
# The real ipmitool and ipmi_sim, with the wire of wire.json between them.
. "$SRC/tests/field/bmc/on_wire.sh"
