/* SPDX-License-Identifier: ISC */
/*
 * What the operator wants, in one form wherever it was said: execd.conf(5) or
 * the command line. Read by the broker alone. A configuration is never
 * changed: a reload makes another one, and what it says is compared.
 */
#ifndef CONF_H
#define CONF_H

#include "audit_log.h"
#include "broker_listener.h"
#include "conf_value.h"
#include "identity.h"
#include "jwks.h"
#include "sandbox_rules.h"

struct options;

#define CONF_DEFAULT_PATH "/etc/execd/execd.conf"

/* [limits] */
struct limits {
	uint32_t detached_ttl_ms;
	uint32_t closed_ttl_ms;
	uint32_t kill_grace_ms;
	uint32_t drain_timeout_ms;
	uint32_t ping_interval_ms;
	uint32_t pong_deadline_ms;
	uint32_t pre_auth_deadline_ms;
	uint32_t max_connections;
	uint32_t max_per_source; /* 0: none */
	uint32_t max_unauthenticated;
	uint32_t max_sessions;
	uint64_t max_frame_bytes;
	uint64_t max_message_bytes;
	uint64_t retention_bytes; /* of a process */
	uint32_t penalty_auth_ms, penalty_deadline_ms, penalty_protocol_ms;
	uint32_t penalty_crash_ms;
	uint32_t penalty_threshold_ms, penalty_max_ms;
	struct nets exempt;
};

/* [signed-tokens]: how a JWT is checked (doc/protocol.md section 1.5). */
struct token_rules {
	char *secret_file; /* of HS256; NULL: none */
	char *jwks_file;   /* of all other algorithms; NULL: none */
	char *issuer, *audience;
	char *subject_claim;
	uint32_t skew_s;
	uint8_t *secret; /* the first file's content */
	size_t secret_len;
	struct jwks jwks; /* the second file's keys */
	uint8_t jwks_digest[32];
};

/* [control]: who may use `execd ctl`, and where. */
struct control_rules {
	char *socket; /* a path, or "none"; NULL: the default, ctl_path.h */
	char *group;  /* its members may; NULL: only root and ourselves */
	gid_t gid;    /* of it */
	struct listener *listener; /* as opened, owned; or NULL */
};

struct conf {
	char *path; /* NULL: from the command line */
	struct limits limits;
	struct control_rules control;
	struct token_rules tokens;
	struct audit_rules audit;
	struct sandbox_rules sandbox;
	struct listener *listeners[CONTROL_LISTENERS_MAX];
	size_t nlisteners;
	struct identity **identities;
	size_t nidentities;
	size_t identities_cap;
};

struct conf_key {
	const char *keyword;
	const struct conf_type *type;
	size_t offset; /* in the section's object */
};

/*
 * A section of the file. A new one is a table of keys, these functions, and a
 * row in conf.c; -T, the reload's comparison and the strictness of the
 * reader come with it. Objects of a named section begin with their name.
 */
struct conf_section {
	const char *name;
	bool named; /* [name NAME], any number of them */
	const struct conf_key *keys;
	size_t nkeys;
	/* A new object of that name (or the one there is); NULL with why. */
	void *(*add)(struct conf *c, const char *name, char *why);
	/* Its i-th object that is in use, or NULL. */
	void *(*object)(const struct conf *c, size_t i);
	/* All keys are there: do they fit? 0, or -errno with why. */
	int (*check)(struct conf *c, void *object, char *why);
};

/* NULL-terminated. */
extern const struct conf_section *const conf_sections[];
extern const struct conf_section conf_limits;
extern const struct conf_section conf_listener;
extern const struct conf_section conf_identity;
extern const struct conf_section conf_tokens;
extern const struct conf_section conf_audit;
extern const struct conf_section conf_sandbox;
extern const struct conf_section conf_control;

/* A configuration of defaults; every section's object that is there once. */
struct conf *conf_new(void);
void conf_free(struct conf *c);

/* Is it one of this configuration, or only of an older one? */
bool conf_has_identity(const struct conf *c, const struct identity *identity);

/* What a session of the identity is told: the defaults, [sandbox], then the
 * identity's own. */
void conf_sandbox_limits(
    const struct conf *c, const struct identity *id, struct sandbox_limits *l);

/* Sets what [sandbox] leaves to the defaults to what they are. */
void conf_fill_sandbox(struct conf *c);

/* From a file, or from the flags, then the limits of the flags. NULL, with
 * *code an enum exit_code, after logging what is wrong and where. */
struct conf *conf_load(const struct options *o, int *code);

/* Takes what the flags say of listeners and identities. 0, or an enum
 * exit_code after printing what is wrong. */
int conf_from_flags(struct conf *c, const struct options *o);

/* Sets a key of a section's object. 0, or -EINVAL with why. */
int conf_set(const struct conf_section *s, void *object, const char *keyword,
    const char *value, char *why);

/* Takes the file's values. 0, or -EINVAL after logging. */
int conf_read(struct conf *c, const char *path);

/* The effective values, as a file that says the same. */
void conf_print(const struct conf *c, struct buf *b);

/* Logs what is permitted but should be known, of listeners that are open. */
void conf_warn(const struct conf *c);

/* Logs for each identity what its clients may do at most, and who said so. */
void conf_tell_ceilings(const struct conf *c);

/* Logs which proxies are believed where their clients are. */
void conf_tell_proxies(const struct conf *c);

/* Logs every value that differs; a secret's only that it does. Returns how
 * many. */
unsigned conf_log_changes(const struct conf *from, const struct conf *to);

/* Is there a [signed-tokens]? */
bool conf_has_signed_tokens(const struct conf *c);

struct identity *conf_find_identity(const struct conf *c, const char *name);

#endif
