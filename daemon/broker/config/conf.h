/* SPDX-License-Identifier: ISC */
/*
 * The configuration, in one form whether it came from execd.conf(5) or from the
 * command line. Only the broker reads it. A configuration is never changed: a
 * reload makes a new one and compares it with the old one.
 */
#pragma once

#include "audit_log.h"
#include "broker_listener.h"
#include "identity.h"
#include "jwks.h"

struct options;

#define CONF_DEFAULT_PATH "/etc/execd/execd.conf"

/* [limits] of the broker: a row (keyword, type, member, default, range) is all
 * that is between the file and the use, as in frontend_keys.def. */
#define BROKER_LIMITS(ROW)                                                     \
	ROW("detached-ttl", duration, detached_ttl_ms, "150s")                 \
	ROW("closed-ttl", duration, closed_ttl_ms, "80s")                      \
	ROW("kill-grace", duration, kill_grace_ms, "1s")                       \
	ROW("drain-timeout", duration, drain_timeout_ms, "0s")                 \
	ROW("drain-notice", duration, drain_notice_ms, "0s")                   \
	ROW("exit-when-idle", optional_duration, exit_when_idle_ms, "none")    \
	ROW("max-sessions", count, max_sessions, "10000")                      \
	/* of each process; one answer holds all of it, in base64 */           \
	ROW("retention", bytes, retention_bytes, "1M", .max = 256u << 20)

struct limits {
	struct frontend_limits frontend;
	/* What all sessions together have, of memory and tasks, and what each
	 * command has whose identity says nothing. */
	struct group_limits all, command;
	/* How many sessions may be kept. SANDBOX_UNSET_COUNT means a quarter
	 * of max_sessions, and 0 means none. */
	uint32_t max_kept_sessions;
#define LIMIT_MEMBER(keyword, type, member, ...) VALUE_##type member;
	BROKER_LIMITS(LIMIT_MEMBER)
#undef LIMIT_MEMBER
};

/* [signed-tokens]: how a JWT is checked (doc/protocol.md section 1.5). */
struct token_rules {
	char *secret_file; /* for HS256; NULL: none */
	char *jwks_file;   /* for all other algorithms; NULL: none */
	char *issuer, *audience;
	char *subject_claim;
	uint32_t skew_s;
	bool resume_after_expiry; /* of the session that it had */
	uint8_t *secret;	  /* content of secret_file */
	size_t secret_len;
	struct jwks jwks; /* keys of jwks_file */
	uint8_t jwks_digest[32];
};

/* [control]: who may use `execd ctl`, and where. */
struct control_rules {
	char *socket; /* a path, or "none"; NULL: the default (ctl_socket.h) */
	/* its members may use it; NULL: only root and the own user */
	char *group;
	gid_t gid;		   /* the id of the group */
	struct listener *listener; /* the open listener, owned; or NULL */
};

/* [token NAME]: a bearer token that has a name. */
struct named_token {
	char *name;
	char *identity;
	struct digests digests; /* one */
	/* Seconds since 1970. 0: it never expires; it does not say when. */
	int64_t expires_s, created_s;
	bool revoked; /* meanwhile; the reload that forgets it is on its way */
};

struct conf {
	char *path; /* of the file; NULL: from the command line */
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
	size_t
	    nmembers; /* the last ones are members of groups, and unwritten */
	struct named_token **named; /* owned, as each of them */
	size_t nnamed;
	struct conf_place *places; /* where in the files */
	size_t nplaces;
	bool has_parts;		/* conf.d is there */
	struct strings parts;	/* the files in it */
	unsigned sections_seen; /* those that may occur only once */
};

struct conf_key {
	const char *keyword;
	const struct conf_type *type;
	size_t offset;	     /* of the field in the section's object */
	const char *initial; /* its default, as in the file; NULL: none here */
	uint64_t min, max;   /* the range of a number; max 0: no limit */
};

#define CONF_KEYS_MAX 96 /* of one section */

/*
 * A section of the file. A new section needs a table of keys and a row in
 * conf.c. The reader, -T and the comparison at a reload work from them. A
 * section [name NAME] may occur several times, and its objects begin with their
 * name.
 */
struct conf_section {
	const char *name;
	const struct conf_key *keys;
	size_t nkeys;
	/* Of a section that occurs once: its object in struct conf, and whether
	 * it is there; NULL: always. */
	size_t offset;
	bool (*says)(const struct conf *c);
	/* Of a section with names: makes the object of that name, or returns
	 * NULL with why; and returns the i-th object, or NULL. */
	void *(*add)(struct conf *c, const char *name, char *why);
	void *(*object)(const struct conf *c, size_t i);
	/* Called after the last key: checks whether the keys fit together.
	 * Returns 0, or -errno with why. */
	int (*check)(struct conf *c, void *object, char *why);
};

/* Ends with NULL. */
extern const struct conf_section *const conf_sections[];
extern const struct conf_section conf_limits;
extern const struct conf_section conf_listener;
extern const struct conf_section conf_identity;
extern const struct conf_section conf_token;
extern const struct conf_section conf_tokens;
extern const struct conf_section conf_audit;
extern const struct conf_section conf_sandbox;
extern const struct conf_section conf_control;

/* Returns the i-th object of the section, or NULL. */
void *conf_object(const struct conf_section *s, const struct conf *c, size_t i);

/* Makes a configuration of defaults, with the object of every section that is
 * not named. */
struct conf *conf_new(void);
void conf_free(struct conf *c);

/* Tells whether the identity is part of this configuration and not only of an
 * older one. */
bool conf_has_identity(const struct conf *c, const struct identity *identity);

/* Fills in the sandbox limits of the identity's sessions: the defaults,
 * replaced by [sandbox], replaced by the identity's own keys. */
void conf_sandbox_limits(
    const struct conf *c, const struct identity *id, struct sandbox_limits *l);

/* Checks whether this host can enforce what is set of limits of groups. Returns
 * 0, or -EOPNOTSUPP after it has logged which of them it cannot. */
int conf_check_groups(const struct conf *c);

/* Replaces what [sandbox] leaves open by the defaults. */
void conf_fill_sandbox(struct conf *c);

/* Makes the configuration from a file or from flags, and adds the flags'
 * limits. Returns NULL after logging the error with its place, and sets *code
 * to an enum exit_code. */
struct conf *conf_load(const struct options *o, int *code);

/* Makes the listeners and the identity that the flags describe. Returns 0, or
 * an enum exit_code after printing the error. */
int conf_from_flags(struct conf *c, const struct options *o);

/* Returns NULL if there is none. */
const struct conf_key *conf_find_key(
    const struct conf_section *s, const char *keyword);

/* Sets the field of a key, or adds to a list. Returns 0, or -EINVAL with why.
 */
int conf_set_key(
    const struct conf_key *key, void *object, const char *value, char *why);

/* Remembers the line of a key, or with NULL that of the section. The path must
 * live as long as the configuration. */
void conf_note(struct conf *c, const struct conf_section *s, const void *object,
    const struct conf_key *key, const char *path, unsigned line);

/* Warns with the line of the key or section that the sentence begins with:
 * "[identity ci] user". */
void conf_warn_at(const struct conf *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the keys of the object that have a default. */
void conf_set_defaults(const struct conf_section *s, void *object);
/* Frees what the keys own. */
void conf_clear(const struct conf_section *s, void *object);

/* Sets a key of a section's object. Returns 0, or -EINVAL with why. */
int conf_set(const struct conf_section *s, void *object, const char *keyword,
    const char *value, char *why);

/* Reads the values from the file. Returns 0, or -EINVAL after logging. */
int conf_read(struct conf *c, const char *path);

/* Likewise from c->path, and then from the files of conf.d beside it. */
int conf_read_all(struct conf *c);

/* Likewise of a file in which nothing may be but [token NAME]. */
int conf_read_token(struct conf *c, const char *path, const char *name);

/* Whether it may be the name of a section's object. */
bool conf_is_name(const char *name);

/*
 * Named tokens (conf_token.c). conf_tokens_read() adds those that are in files
 * of their own beside the file at `path'. What is wrong with one of them is
 * logged, and it is left out.
 */
void conf_tokens_read(struct conf *c, const char *path);
void conf_tokens_clear(struct conf *c);
struct named_token *conf_find_token(const struct conf *c, const char *name);

/* Checks that its identity exists, and that no identity and no token before it
 * has its digest. Returns 0, or -EINVAL with why[CONF_WHY_MAX]. */
int conf_token_check(
    const struct conf *c, const struct named_token *t, char *why);

/* A time as execd.conf(5) has it, 2027-01-31T12:00:00Z, in seconds since 1970.
 * Reading returns false if the text is none. */
#define CONF_TIME_CHARS 32
bool conf_read_time(const char *text, int64_t *at);
void conf_write_time(char text[CONF_TIME_CHARS], int64_t at);

/* Tells whether the operator has locked it, or the section that it is a member
 * of. */
bool conf_is_locked(const struct conf *c, const struct identity *id);

/* Looks for the file of the identity's name that `execd ctl lock' makes beside
 * the configuration. Returns 0, -ENOENT, or another -errno if that cannot be
 * seen. */
int conf_find_lock(const struct conf *c, const struct identity *id);

/* The directory of that name beside the file. The caller frees it. */
char *conf_beside(const char *path, const char *name);

/* Writes the effective values as a configuration file. */
void conf_print(const struct conf *c, struct buf *b);

/* Warns of values of open listeners that are permitted but dangerous. */
void conf_warn(const struct conf *c);

/* Logs for each identity what its clients may do, and which key says so, and
 * its path map. */
void conf_tell_ceilings(const struct conf *c);

/* Logs the trusted proxies of each listener. */
void conf_tell_proxies(const struct conf *c);

/* Logs every value that differs. Of a secret it logs only that it differs.
 * Returns the number of differences. */
unsigned conf_log_changes(const struct conf *from, const struct conf *to);

/* Tells whether there is a section [signed-tokens]. */
bool conf_has_signed_tokens(const struct conf *c);

struct identity *conf_find_identity(const struct conf *c, const char *name);

/* Adds an identity for each member of each peer-group. Returns 0, or -EINVAL
 * with why[CONF_WHY_MAX]. */
int conf_add_members(struct conf *c, char *why);

/* Writes the value of a key as the file has it, without its name. */
void conf_show_key(
    struct buf *text, const struct conf_key *key, const void *object);
