#!/bin/bash
# shellcheck disable=SC2034
user_data="" provider="manage_etc_hosts: true"
. "$SRC/tests/field/cloud-init.sh"
