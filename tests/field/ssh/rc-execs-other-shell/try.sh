#!/bin/bash
# Real shells in place of bash: those that are installed; fish has to be.
. "$SRC/tests/field/ssh/reached.sh"
needs fish
for shell in "zsh" "zsh -l" "tcsh" "dash" "ksh"; do
  command -v "${shell%% *}" > /dev/null || continue
  echo "exec $shell" > "$home/.bashrc"
  serves
  looks
  expect "$shell in ~/.bashrc is no hindrance" host_is '.verdict == "looked_at" and .how == "sudo"'
done
for line in "exec fish" "fish"; do
  echo "$line" > "$home/.bashrc"
  serves
  looks
  expect "\`$line\` in ~/.bashrc is the reason" host_is '.verdict == "not_reached" and (.reason | test("bashrc"))'
  expect "it is not tried again" tried 1
done
rm "$home/.bashrc"
for shell in fish tcsh zsh; do
  command -v "$shell" > /dev/null || continue
  in_root usermod -s "$(command -v "$shell")" ops
  serves
  looks
  expect "$shell as the login shell is no hindrance" host_is '.verdict == "looked_at" and .how == "sudo"'
done
exit $wrong
