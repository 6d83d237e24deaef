/* SPDX-License-Identifier: ISC */
/*
 * Which policies a restricted token of Windows can express. Such a token makes
 * writing depend on capability SIDs, which the parent has put into the ACLs of
 * what may be written. It restricts no reading and no network. Plain C; it
 * changes nothing.
 */
#ifndef TOKEN_POLICY_H
#define TOKEN_POLICY_H

#include <stdbool.h>

#include "frames.h"

struct token_policy {
	/* Writing needs one of cap_sids. false: no sandbox was asked for. */
	bool write_restricted;
};

/*
 * Decides. network_is_blocked: who started the runner says that its account has
 * no network. Returns 0, or -EACCES with the reason in error[ARGS_ERROR_MAX] if
 * a token enforces less than what is asked.
 */
int token_policy_decide(struct token_policy *p, const struct frames_spawn *s,
    bool network_is_blocked, char *error);

#endif
