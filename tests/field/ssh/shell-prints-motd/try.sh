#!/bin/bash
# The real bash as root's login shell, with what the case prints in its .bashrc.
mkdir "$WORK/home"
cp "$CASE/bashrc" "$WORK/home/.bashrc"
MUSTER_FIELD_HOME=$WORK/home
export MUSTER_FIELD_HOME
. "$SRC/tests/field/ssh/login_shells.sh"
try_shell bash
