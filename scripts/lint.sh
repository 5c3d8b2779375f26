#!/usr/bin/env bash
# Looks over every source without building it: format, spelling, words, spec reference, shell scripts.
# scripts/lint.sh [--fix]; --fix formats instead of complaining.
# The format is that of clang-format 14 (Debian 12): another version breaks other lines, so that without it the format is not judged.
# Ends with "N passed, N failed"; exit 0 only when none failed. No file of muster's own is left out but recordings and golden files.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
fix=0
case "${1:-}" in
  "") ;;
  --fix) fix=1 ;;
  *) echo "usage: scripts/lint.sh [--fix]" >&2; exit 2 ;;
esac
passed=0
failed=0
result() {  # result NAME STATUS
  if [[ $2 -eq 0 ]]; then passed=$((passed + 1)); echo "ok    $1"; else failed=$((failed + 1)); echo "FAIL  $1"; fi
}
# A tree without git (a source package) has the same files and nothing else.
files() {  # files SUFFIX...: of the tree, also those not committed yet
  local patterns=() suffix
  for suffix in "$@"; do patterns+=("*$suffix"); done
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- "${patterns[@]}" |
      while IFS= read -r -d '' file; do [[ ! -f $file ]] || printf '%s\0' "$file"; done
  else
    local names=()
    for suffix in "$@"; do names+=(-o -name "*$suffix"); done
    find . \( -name 'build*' -o -name .git \) -prune -o -type f \( -false "${names[@]}" \) -print0
  fi
}

formatter=
for name in clang-format-14 clang-format; do
  [[ -n $formatter ]] || ! $name --version 2>/dev/null | grep -q 'version 14\.' || formatter=$name
done
if [[ -z $formatter ]]; then
  echo "left out: the format, there is no clang-format 14"
elif [[ $fix -eq 1 ]]; then
  files .cc .h .cu | xargs -0 -r "$formatter" -i
  result "formatted" $?
else
  files .cc .h .cu | xargs -0 -r "$formatter" --dry-run -Werror
  result "format" $?
fi

if command -v codespell >/dev/null; then
  files .cc .h .cu .md .sh .yaml .sql .cmake .txt | grep -zv '^\(\./\)\?tests/golden/' | xargs -0 -r codespell --ignore-words=scripts/spelling.txt
  result "spelling" $?
else
  echo "left out: spelling, there is no codespell"
fi

# Words of docs/style.md that a linter can find; scripts/words.py has the list of folders that are not done yet.
if command -v python3 >/dev/null; then
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    python3 scripts/words.py
    result "words" $?
  else
    echo "left out: words, this tree is not a checkout"
  fi
else
  echo "left out: words, there is no python3"
fi

# The keys of the spec on docs/spec.md are those of the schema.
if command -v python3 >/dev/null; then
  scripts/spec_doc.py --check
  result "spec reference" $?
else
  echo "left out: the spec reference, there is no python3"
fi

# Not checked: variables of sourced files (SC2154, SC2034), files to follow (SC1091), what only traps call (SC2317).
if command -v shellcheck >/dev/null; then
  files .sh | xargs -0 -r shellcheck -S warning -e SC2154,SC2034,SC1091,SC2317
  result "shell scripts" $?
else
  echo "left out: shell scripts, there is no shellcheck"
fi
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
