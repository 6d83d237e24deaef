/* SPDX-License-Identifier: ISC */
/*
 * Which policies a restricted token of Windows can express. Such a token makes
 * writing depend on capability SIDs, which the parent has put into the ACLs of
 * what may be written. It restricts no reading and no network. Plain C; it
 * changes nothing.
 */
#pragma once

#include <stdbool.h>

#include "frames.h"

struct token_policy {
	/* Writing needs one of cap_sids. false: no sandbox was asked for. */
	bool write_restricted;
};

/*
 * Decides what the token of a command has to enforce. network_is_blocked means
 * that whoever started the runner says: this account has no network. The
 * function returns 0. If a token enforces less than the message asks for, it
 * returns -EACCES with the reason in error[ARGS_ERROR_MAX].
 */
int token_policy_decide(struct token_policy *p, const struct frames_spawn *s,
    bool network_is_blocked, char *error);
