#!/usr/bin/env bash
# Shows how far a build is: reads ninja's output, whose status lines begin as $(scripts/progress.sh --status) says (NINJA_STATUS).
# At a terminal one line that changes, else a line every few seconds: "412 of 595, about 6 min left". All else that ninja and the compilers
# print is passed on as it is. What is left is what it took so far, per step; ninja counts only steps that are not done yet.
set -uo pipefail
if [[ ${1:-} == --status ]]; then echo "muster-progress %f %t %e "; exit 0; fi
trap '' INT   # what an interrupted ninja prints is still shown
every=5       # seconds between two lines
first=10      # seconds before anything is said about the time that is left
terminal=0
if [[ -t 1 && ${TERM:-dumb} != dumb ]]; then terminal=1; fi
status='^muster-progress ([0-9]+) ([0-9]+) ([0-9]+)[0-9.]* '
last=0 finished=0 total=0 elapsed=0 pending=0

text() {
  local left=$((elapsed * (total - finished) / (finished > 0 ? finished : 1)))
  if [[ $finished -eq $total ]]; then echo "$finished of $total after $((elapsed / 60)) min $((elapsed % 60)) s"
  elif [[ $elapsed -lt $first ]]; then echo "$finished of $total"
  elif [[ $left -lt 60 ]]; then echo "$finished of $total, under 1 min left"
  else echo "$finished of $total, about $(((left + 30) / 60)) min left"; fi
}
show() {
  [[ $finished -gt 0 ]] || return 0
  if [[ $terminal -eq 1 ]]; then printf '\r\033[K%s' "$(text)"; pending=1
  elif [[ $((elapsed - last)) -ge $every || ( $finished -eq $total && $last -gt 0 ) ]]; then last=$elapsed; text; fi
}
while IFS= read -r line || [[ -n $line ]]; do
  if [[ $line =~ $status ]]; then
    finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    [[ ${BASH_REMATCH[3]} -ge $elapsed ]] || last=0   # ninja has read its files again and counts from the start
    elapsed=${BASH_REMATCH[3]}
    show
    continue
  fi
  [[ $pending -eq 0 ]] || printf '\r\033[K'
  pending=0
  printf '%s\n' "$line"
done
[[ $pending -eq 0 ]] || echo
exit 0
