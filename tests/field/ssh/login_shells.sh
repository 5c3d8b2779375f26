# shellcheck shell=bash
# Sourced by a case's try.sh: commands over a real sshd, with a real program as root's login shell.
[ -x /usr/sbin/sshd ] || { echo "sshd is missing"; exit 77; }
set -e
ip link set lo up

# try_shell PROGRAM: the account is changed in this mount namespace only.
try_shell() {
  awk -F: -v OFS=: -v shell="$(command -v "$1")" -v home="${MUSTER_FIELD_HOME:-}" \
    '$1 == "root" { $7 = shell; if (home != "") $6 = home } { print }' /etc/passwd >"$WORK/passwd"
  mount --bind "$WORK/passwd" /etc/passwd
  echo "== $1"
  "$BUILD/muster_tests" "[.login-shell]"
  umount /etc/passwd
}
