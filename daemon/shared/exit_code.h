/* SPDX-License-Identifier: ISC */
/*
 * The exit codes of execd (execd(8), doc/design.md section 8). The broker
 * decides, and root's execd ends with that code.
 */
#pragma once

enum exit_code {
	EXIT_STOPPED = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_CONFIG = 3,
	EXIT_PERMISSION = 4,
	EXIT_UNENFORCEABLE = 5,
};
