/* SPDX-License-Identifier: ISC */
/*
 * Decides who a client is: compares the credential that it showed with what the
 * operator wrote down. This is decided only here (doc/protocol.md section 1.5,
 * doc/design.md section 2).
 */
#pragma once

#include "base.h"
#include "conf.h"
#include "jwt.h"
#include "table.h"

struct broker;

struct credential_finding {
	/* if granted or RESUME, an identity of the configuration; else NULL */
	struct identity *who;
	/* likewise, the kind of credential, for the audit log */
	const char *how;
	/* the name of the user, if the kernel's word on it decided; else NULL
	 */
	const char *user;
	/* of the bearer token that was shown, also if it has expired; else NULL
	 */
	const char *token;
	/* the identity that this listener does not let in, or that is locked;
	 * else NULL */
	const char *barred;
	/* of a signed token, or whose it is of a named one; else empty */
	struct jwt_answer jwt;
};

/*
 * peer is the user that the kernel says the client is, or NULL if it is not
 * known. On a listener with `auth = peer-user` the user alone decides. On the
 * others a bearer token alone decides. If there is none, the client's
 * certificate decides, then its user, then what the listener says of clients
 * without a credential.
 * If the client operates, which is to read /metrics, l->operators are let in,
 * else l->identities. VERDICT_RESUME is for a token that has only expired:
 * whether it has a session here is the caller's to find out. Fills in *found.
 */
enum verdict credential_verify(const struct conf *c, const struct listener *l,
    const struct control_authenticate *presented, const uid_t *peer,
    int64_t now_s, bool operates, struct credential_finding *found);

/* The verdict on a token for which VERDICT_RESUME is no way either. */
enum verdict credential_expired(const struct credential_finding *found);

/* Tells whether a session goes on whose client had this token: it has not
 * expired, or may still resume the identity's session. */
bool credential_stands(const struct conf *c, const struct identity *id,
    const struct control_token *t, int64_t now_s);

/* Records a verdict and what was found. l is NULL if the listener was closed
 * meanwhile. `path` is what the client wants to read. It is NULL if the client
 * wants a session. */
void credential_audit(struct broker *m, const struct control_authenticate *a,
    const struct listener *l, enum verdict v,
    const struct credential_finding *found, const char *path);

/* Records a refusal in TLS, which the front-end reports. */
void credential_audit_refused(struct broker *m, const struct control_refused *r,
    const struct listener *l);

/*
 * Grants. A grant says who authenticated on a connection of the front-end. It
 * is random and dies with its connection. OPEN and RESUME take a grant, and
 * never a user.
 */

struct frontend;
struct session;

struct grant {
	struct table_node node; /* frontend.grants */
	uint32_t conn;
	uint32_t listener; /* control_listener.id */
	uint8_t token[CONTROL_GRANT_BYTES];
	char peer[CONTROL_PEER_MAX];
	/* address of the trusted proxy in between, or "" */
	char proxy[CONTROL_PEER_MAX];
	struct identity *identity; /* a reference */
	/* the signed token that was shown, owned; NULL: something else was, or
	 * the session has it now */
	struct control_token *bearer;
	bool resume_only; /* RESUME of a session of that token, nothing else */
	struct session *session; /* NULL: there is none, or it ended */
	/* that another connection has, and which may be given to this one */
	struct session *wanted;
	/* OPEN waits for account_check(): the runner's end of the session
	 * channel, owned; else -1 */
	int channel_fd;
	TAILQ_ENTRY(grant) link; /* of those that wait so */
	bool watching;		 /* the connection only watches that session */
	bool ended; /* the session ended while the connection had it */
	enum channel_end end; /* how it ended */
	char reason[256];     /* why it ended */
};

/* Returns NULL if the connection has no grant. */
struct grant *grant_find(struct frontend *f, uint32_t conn);

/* Makes a grant for the connection that showed this credential. The front-end
 * owns it. */
struct grant *grant_new(struct frontend *f,
    const struct control_authenticate *presented,
    const struct credential_finding *found);
void grant_free(struct frontend *f, struct grant *g);

/* Returns the grant for a request that starts or resumes a session. Returns
 * NULL if the token is not the connection's, or if it has a session already. */
struct grant *grant_take(
    struct frontend *f, uint32_t conn, const uint8_t *token);

/* Tells whether CLOSE was asked for already. */
bool grant_is_closing(const struct grant *g);
