#!/bin/bash
# Real PAM: a host that boots, an account that has expired, one that pam_access does not admit.
. "$SRC/tests/field/ssh/reached.sh"
serves
echo '"System is booting up. Come back later. See pam_nologin(8)."' > "$root/run/nologin"
looks
expect "pam_nologin's words are the reason" host_is '.verdict == "not_reached" and (.reason | test("System is booting up"))'
expect "it is tried again" tried 3
rm "$root/run/nologin"

in_root usermod -e 1970-01-02 ops
serves
looks
expect "the account is the reason" host_is '.verdict == "not_reached" and (.reason | test("expired"))'
expect "it is not tried again" tried 1
in_root usermod -e '' ops

echo '-:ops:ALL' >> "$root/etc/security/access.conf"
sed -i '1i account required pam_access.so' "$root/etc/pam.d/sshd"
serves
looks
expect "the banner is not the reason" host_is '.verdict == "not_reached" and (.reason | test("PAM")) and (.reason | test("Authorized") | not)'
expect "it is not tried again, either" tried 1
exit $wrong
