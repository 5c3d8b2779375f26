#!/bin/bash
. "$SRC/tests/field/storage/alert-rules.sh"
