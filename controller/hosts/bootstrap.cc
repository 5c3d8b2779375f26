#include "controller/hosts/bootstrap.h"

#include "base/shell_text.h"

namespace muster {
namespace {

// Runs as the agent's user. $1: root, sudo or user; $2: what sudo printed; $3: "private" if in its own mount
// namespace. Must not contain a single quote: all of it is one single-quoted word.
constexpr std::string_view kInside = R"sh(
how=$1 why=$2 own=$3 d=
no() { printf "\nMUSTERNO %s %s\n" "$1" "$2"; exit 1; }
trap "[ -z \"\$d\" ] || rm -rf \"\$d\"" EXIT
trap "exit 1" HUP INT TERM PIPE
printf "\nMUSTERUSER\n"
set -- "$XDG_RUNTIME_DIR" /dev/shm /tmp /var/tmp "$HOME"
[ -z "$own" ] || if mount -n -t tmpfs -o mode=0700 muster /dev/shm; then set -- /dev/shm; else own=; fi 2>/dev/null
for p do
  case $p in /*) ;; *) continue ;; esac
  d=$(mktemp -d "$p/.muster.XXXXXX" 2>/dev/null) || { d=; continue; }
  f=$d/muster-agent
  printf "#!/bin/sh\n:\n" >"$f" && chmod 700 "$f" && "$f" && head -c $SIZE /dev/zero >"$f" && break
  rm -rf "$d"
  d=
done 2>/dev/null
[ "$d" ] || no failed "no folder on this host has room for the agent and allows execution (tried $*)"
printf "\nMUSTERGO\n"
head -c $PACKED | gzip -dc >"$f" 2>/dev/null
[ $(wc -c <"$f") = $SIZE ] || no unavailable "the connection ended before the agent was fully transferred"
said=$("$f" version 2>&1 </dev/null) || no failed "muster-agent does not run in $p: $said"
[ "$own" ] && p="private tmpfs" && set -- --mounted /dev/shm || set --
exec "$f" measure --stdin --folder "$d" --place "$p" --how "$how" --why "$why" --node "$node" --session "$session" --nvml "$nvml" "$@"
)sh";

// $1: the above; $2: root or sudo. No single quote here, either.
constexpr std::string_view kRoot = R"sh(
space="unshare --mount --propagation slave"
if $space /bin/sh -c : </dev/null 2>/dev/null; then exec $space /bin/sh -c "$1" muster "$2" "" private; fi
exec /bin/sh -c "$1" muster "$2"
)sh";

// What sudo and, later, the agent write to standard error is kept until they have ended: only a command that
// sudo has started begins with MUSTERROOT. sudo closes all other descriptors.
constexpr std::string_view kOutside = R"sh(
no() { printf '\nMUSTERNO %s %s\n' "$1" "$2"; exit 1; }
m=$(uname -m)
[ "$m" = x86_64 ] || no failed "this host is $m, but muster-agent is built for x86_64"
for t in head gzip mktemp chmod rm wc; do command -v $t >/dev/null || no failed "this host has no $t"; done
if [ "$(id -u)" = 0 ]; then exec /bin/sh -c "$root" muster "$inside" root; fi
if [ "$sudo" ]; then
  printf '\nMUSTERSUDO\n'
  { why=$(sudo -n -u root /bin/sh -c "echo MUSTERROOT >&2$root" muster "$inside" sudo 2>&1 >&3 3>&-); } 3>&1
  ended=$?
  case $why in *MUSTERROOT*) printf '%s\n' "${why##*MUSTERROOT}" >&2; exit $ended ;; esac
  [ "$why" ] || why="sudo ended with status $ended"
fi
exec /bin/sh -c "$inside" muster user "$why"
)sh";

std::string replaced(std::string_view text, std::string_view word, const std::string& with) {
  std::string out(text);
  for (size_t at = 0; (at = out.find(word, at)) != std::string::npos; at += with.size())
    out.replace(at, word.size(), with);
  return out;
}

}  // namespace

std::string bootstrap_first_line() {
  // A terminal echoes this line, too; only the shell prints the words on lines of their own.
  return "exec " + run_next_line("/bin/sh", "echo; [ -t 0 ] && echo MUSTERTTY && exit 1; echo MUSTERSH; ") +
         "\n";
}

std::string bootstrap_script(const BootstrapOptions& options) {
  const std::string size = std::to_string(options.size), packed = std::to_string(options.packed);
  const std::string inside = "umask 077\ncd /\nnode=" + shell_word(options.host) +
                             " nvml=" + shell_word(options.nvml) +
                             " session=" + (options.session.empty() ? "none" : shell_word(options.session)) +
                             replaced(replaced(kInside, "$SIZE", size), "$PACKED", packed);
  // A login shell's own settings do not apply in /bin/sh.
  return as_next_line(
      "umask 077\nLC_ALL=C PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin\nexport LC_ALL PATH\nsudo=" +
      std::string(options.as_user ? "" : "yes") + " why=" + shell_word(options.why_user) +
      "\ninside=" + shell_word(inside) + "\nroot=" + shell_word(std::string(kRoot)) + std::string(kOutside));
}

}  // namespace muster
