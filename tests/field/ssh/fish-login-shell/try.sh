#!/bin/bash
# The real shells, those that are installed; fish has to be.
command -v fish >/dev/null || { echo "fish is missing"; exit 77; }
. "$SRC/tests/field/ssh/login_shells.sh"
for shell in fish tcsh csh zsh dash ksh rbash; do
  command -v "$shell" >/dev/null || continue
  try_shell "$shell"
done
