#!/bin/bash
umask 077
. "$SRC/tests/field/dhcp.sh"
spec "$CASE/site.yaml"
there curl -s --max-time 20 -o "$WORK/loader" tftp://10.20.0.1/snponly.efi
expect "the loader" "$(cmp "$WORK/loader" /usr/lib/ipxe/snponly.efi && echo same)" same
exit $wrong
