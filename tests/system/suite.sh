#!/bin/bash
# SPDX-License-Identifier: ISC
# The suites of pytest, as root, on control groups version 2 and the kernels of
# users. EXECD_SUITE names files of tests/integration and tests/sandbox; without
# it all are run, which takes hours under emulation.
# state: fresh
# nightly
# seconds: 43200
# tree
. ./lib.bash

cd /srv/execd || exit 1
for name in _execd _execd-broker; do # as scripts/deps
	id $name >/dev/null 2>&1 || useradd --system --no-create-home \
		--home-dir /nonexistent --shell /usr/sbin/nologin $name
done
export EXECD_BUILD=/srv/execd/build-system PYTHONDONTWRITEBYTECODE=1 EXECD_PATIENCE_S=120
[ -n "${EXECD_SUITE:-}" ] || EXECD_SUITE=$(basename -s .py -a tests/integration/test_*.py tests/sandbox/test_*.py)
for name in $EXECD_SUITE; do
	out=$(python3 -m pytest -q -p no:cacheprovider -rf tests/*/"$name".py 2>&1)
	rc=$?
	# 5: none of the file's tests is for this mode
	if [ $rc -eq 0 ] || [ $rc -eq 5 ]; then
		ok "$name: $(tail -n 1 <<<"$out")"
	else
		echo "$out"
		not_ok "$name" "$(tail -n 1 <<<"$out")"
	fi
done
finish
