#!/bin/bash
# Real sshd with `script` in ForceCommand, as session recorders do it.
. "$SRC/tests/field/ssh/reached.sh"
needs script
serves -o 'ForceCommand=script -qec "$SSH_ORIGINAL_COMMAND" /dev/null'
looks
expect "the terminal is the reason" host_is '.verdict == "not_reached" and (.reason | test("terminal"))'
expect "it is not tried again" tried 1
expect "the reason is text" host_is '.reason | test("[^ -~]") | not'
exit $wrong
