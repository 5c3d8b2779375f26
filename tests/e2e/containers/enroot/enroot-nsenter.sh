#!/bin/sh
# Stand-in for enroot-nsenter: a user and a mount namespace in which the caller keeps its own number, or is root. This is the path that the
# AppArmor profile of a kernel that restricts user namespaces names.
map=--map-current-user
[ "$1" != --root ] || { map=--map-root-user; shift; }
[ "$1" != -- ] || shift
exec unshare --user $map --keep-caps --mount -- "$@"
