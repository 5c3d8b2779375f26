#!/bin/bash
# shellcheck disable=SC2034
user_data="manage_etc_hosts: true" provider=""
. "$SRC/tests/field/cloud-init.sh"
