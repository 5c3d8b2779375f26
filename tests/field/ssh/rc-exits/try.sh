#!/bin/bash
# Real bash, which reads ~/.bashrc for commands of sshd.
. "$SRC/tests/field/ssh/reached.sh"
serves
cp "$CASE/bashrc" "$home/.bashrc"
looks
expect "the start-up file is the reason" host_is '.verdict == "not_reached" and (.reason | test("bashrc"))'
expect "it is not tried again" tried 1
exit $wrong
