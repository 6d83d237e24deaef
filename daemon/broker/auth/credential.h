/* SPDX-License-Identifier: ISC */
/*
 * Who a client is: the credential that it presented, against what the
 * operator wrote down. Decided here and nowhere else (doc/protocol.md section
 * 1.5, doc/design.md section 2).
 */
#ifndef CREDENTIAL_H
#define CREDENTIAL_H

#include <sys/socket.h>

#include "conf.h"
#include "control.h"
#include "jwt.h"

struct credential_finding {
	struct identity *who;  /* GRANTED: the configuration's; else NULL */
	const char *how;       /* GRANTED: by what, for the record */
	struct jwt_answer jwt; /* of a signed token; else empty */
};

/*
 * peer: of LISTENER_UNIX, what the kernel says of it, else NULL. A bearer
 * token decides alone; without one the client's certificate, then its user,
 * then the listener's word about clients that present nothing. Fills in
 * *found.
 */
enum verdict credential_verify(const struct conf *c, const struct listener *l,
    const struct control_authenticate *presented, const struct ucred *peer,
    int64_t now_s, struct credential_finding *found);

#endif
