#!/usr/bin/env bash
# Prints the alert rules of playbook `monitoring` as Prometheus reads them: for the package, for promtool, for a Prometheus of the site's own.
set -euo pipefail
awk '/^ *groups:$/ { indent = match($0, /g/) - 1; inside = 1 }
     inside && /[^ ]/ { match($0, /[^ ]/); if (RSTART <= indent) exit }
     inside { print substr($0, indent + 1) }' "$(dirname "$0")/../playbooks/monitoring.yaml"
