#!/usr/bin/env bash
# Tries the alert rules of playbook `monitoring` (rules_test.yml), by promtool of Debian's package prometheus.
# Exit 0: all fire and stay silent as they should; 77: there is no promtool, nothing was tried.
set -euo pipefail
cd "$(dirname "$0")"
command -v promtool >/dev/null || { echo "no promtool: scripts/deps.sh test installs it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
../../scripts/alert-rules.sh >"$work/rules.yml"
promtool check rules "$work/rules.yml" >"$work/check.log" || { cat "$work/check.log"; exit 1; }
# What the annotations say is for people, and promtool would compare it.
sed -i 's/, annotations: {[^{}]*}//' "$work/rules.yml"
cp rules_test.yml "$work/"
cd "$work"
promtool test rules rules_test.yml
