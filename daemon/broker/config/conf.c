/* SPDX-License-Identifier: ISC */
#include "conf.h"

#include "broker_options.h"
#include "exit_code.h"
#include "nearest.h"
#include "secret.h"
#include "spawn_client.h"

/* All sections of execd.conf(5), in the order in which -T shows them. */
const struct conf_section *const conf_sections[] = {
	&conf_listener,
	&conf_identity,
	&conf_token,
	&conf_tokens,
	&conf_audit,
	&conf_sandbox,
	&conf_control,
	&conf_limits,
	NULL,
};

struct conf *
conf_new(void)
{
	struct conf *c = xcalloc(1, sizeof(*c));

	conf_set_defaults(&conf_limits, &c->limits);
	conf_set_defaults(&conf_tokens, &c->tokens);
	c->limits.max_kept_sessions = SANDBOX_UNSET_COUNT;
	group_limits_init(&c->limits.all);
	group_limits_init(&c->limits.command);
	sandbox_rules_init(&c->sandbox);
	audit_rules_init(&c->audit);
	return c;
}

void *
conf_object(const struct conf_section *s, const struct conf *c, size_t i)
{
	if (s->object != NULL)
		return s->object(c, i);
	return i == 0 && (s->says == NULL || s->says(c))
		   ? (char *)(uintptr_t)c + s->offset
		   : NULL;
}

void
conf_clear(const struct conf_section *s, void *object)
{
	for (size_t i = 0; i < s->nkeys; i++)
		if (s->keys[i].type->clear != NULL)
			s->keys[i].type->clear(
			    (char *)object + s->keys[i].offset);
}

bool
conf_has_identity(const struct conf *c, const struct identity *identity)
{
	for (size_t i = 0; i < c->nidentities; i++)
		if (c->identities[i] == identity)
			return true;
	return false;
}

void
conf_free(struct conf *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->nlisteners; i++)
		listener_free(c->listeners[i]);
	for (size_t i = 0; i < c->nidentities; i++)
		identity_unref(c->identities[i]);
	conf_tokens_clear(c);
	conf_clear(&conf_tokens, &c->tokens);
	conf_clear(&conf_audit, &c->audit);
	conf_clear(&conf_sandbox, &c->sandbox);
	conf_clear(&conf_control, &c->control);
	if (c->control.listener != NULL)
		listener_free(c->control.listener);
	audit_rules_close(&c->audit);
	secret_free(c->tokens.secret, c->tokens.secret_len);
	jwks_clear(&c->tokens.jwks);
	free(c->identities);
	free(c->places);
	strings_clear(&c->parts);
	free(c->path);
	free(c);
}

/* --- places in the file ------------------------------------------------- */

struct conf_place {
	const struct conf_section *section;
	const void *object;
	const struct conf_key *key; /* NULL: the section's title */
	const char *path;
	unsigned line;
};

void
conf_note(struct conf *c, const struct conf_section *s, const void *object,
    const struct conf_key *key, const char *path, unsigned line)
{
	c->places =
	    xreallocarray(c->places, c->nplaces + 1, sizeof(*c->places));
	c->places[c->nplaces++] =
	    (struct conf_place){ s, object, key, path, line };
}

/* A sentence about several sections begins with "[identity ci] user", or with
 * "[identity ci]": where that is, or NULL. */
static const struct conf_place *
find_key(const struct conf *c, const char *why)
{
	char name[CONF_WHY_MAX];
	const struct conf_place *found = NULL;
	size_t best = 0, n;

	for (size_t i = 0; i < c->nplaces; i++) {
		const struct conf_place *p = &c->places[i];

		n = (size_t)snprintf(name, sizeof(name), "[%s%s%s]%s%s",
		    p->section->name, p->section->add ? " " : "",
		    p->section->add ? *(char *const *)p->object : "",
		    p->key ? " " : "", p->key ? p->key->keyword : "");
		if (n <= best || strncmp(why, name, n) != 0 ||
		    (p->key != NULL && strchr(": ", why[n]) == NULL))
			continue;
		best = n;
		found = p;
	}
	return found;
}

/* Makes "execd.conf:7: " or what else the sentence begins with. */
static const char *
find_place(const struct conf *c, const char *why, char place[CONF_WHY_MAX])
{
	const struct conf_place *p = find_key(c, why);

	if (p != NULL)
		snprintf(place, CONF_WHY_MAX, "%.400s:%u", p->path, p->line);
	else
		snprintf(place, CONF_WHY_MAX, "%.400s",
		    c->path ? c->path : "command line");
	return place;
}

void
conf_warn_at(const struct conf *c, const char *fmt, ...)
{
	char why[CONF_WHY_MAX], place[CONF_WHY_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	log_warn(0, "%s: %s", find_place(c, why, place), why);
}

/* --- consistency -------------------------------------------------------- */

/* Tells the error, if it is one. Returns how many it are. */
static unsigned
tell(const struct conf *c, int err, const char *why)
{
	char place[CONF_WHY_MAX];

	if (err == 0)
		return 0;
	log_error(0, "%s: %s", find_place(c, why, place), why);
	return 1;
}

/* Tells that the name of an identity is none. */
static unsigned
tell_unknown(const struct conf *c, const struct listener *l,
    const char *keyword, const char *name)
{
	struct nearest meant = { .given = name };
	char why[CONF_WHY_MAX];

	for (size_t i = 0; i < c->nidentities; i++)
		nearest_try(&meant, c->identities[i]->name);
	return tell(c,
	    conf_refuse(why,
		"[listener %s] %s: there is no [identity %.100s]%s%s", l->name,
		keyword, name, meant.name ? ": did you mean " : "",
		meant.name ? meant.name : ""),
	    why);
}

static unsigned
check_names(const struct conf *c, const struct listener *l,
    const struct strings *names, const char *keyword)
{
	unsigned n = 0;

	for (size_t i = 0; i < names->count; i++)
		if (conf_find_identity(c, names->items[i]) == NULL)
			n += tell_unknown(c, l, keyword, names->items[i]);
	return n;
}

static bool
share_digest(const struct digests *a, const struct digests *b)
{
	for (size_t i = 0; i < a->count; i++)
		for (size_t j = 0; j < b->count; j++)
			if (memcmp(a->items[i], b->items[j], 32) == 0)
				return true;
	return false;
}

static bool
share_string(const struct strings *a, const struct strings *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (strings_has(b, a->items[i]))
			return true;
	return false;
}

/* A credential must name exactly one identity. */
static int
check_credentials(const struct identity *a, const struct identity *b, char *why)
{
	const char *key =
	    share_digest(&a->tokens, &b->tokens) ? "token-sha256"
	    : share_digest(&a->certificates, &b->certificates)
		? "certificate-sha256"
	    : share_string(&a->certificate_subjects, &b->certificate_subjects)
		? "certificate-subject"
	    : share_string(&a->subjects, &b->subjects)	   ? "token-subject"
	    : share_string(&a->peer_users, &b->peer_users) ? "peer-user"
							   : NULL;

	return key ? conf_refuse(why,
			 "[identity %s] %s: [identity %s] has the same one",
			 b->name, key, a->name)
		   : 0;
}

/* Who runs commands here may connect from one of them, and would then be
 * somebody else. Root can be anybody anyway, and `nobody` is what the kernel
 * shows for users without a number here. */
static int
check_peer_user(
    const struct conf *c, const struct identity *id, size_t user, char *why)
{
	const char *name = id->peer_users.items[user];
	uid_t uid = id->peer_uids[user];

	if (uid == 0 || uid == 65534)
		return conf_refuse(why,
		    "[identity %.100s] peer-user: %.100s is nobody whom a "
		    "listener with auth = peer-user lets in",
		    id->name, name);
	for (size_t i = 0; i < c->nidentities; i++)
		if (c->identities[i]->uid == uid && id->uid != uid)
			return conf_refuse(why,
			    "[identity %.100s] peer-user: %.100s runs the "
			    "commands of [identity %.100s], which would come "
			    "in by the listener with auth = peer-user",
			    id->name, name, c->identities[i]->name);
	return 0;
}

static int
check_peer_users(const struct conf *c, const struct listener *l, char *why)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < c->nidentities; i++) {
		const struct identity *id = c->identities[i];

		if (l->identities.count > 0 &&
		    !identity_is_named(id, &l->identities) &&
		    !identity_is_named(id, &l->operators))
			continue;
		for (size_t j = 0; j < id->peer_users.count && err == 0; j++)
			err = check_peer_user(c, id, j, why);
		n += id->peer_users.count;
	}
	return err == 0 && n == 0
		   ? conf_refuse(why,
			 "[listener %s] auth = peer-user: no identity has a "
			 "peer-user",
			 l->name)
		   : err;
}

static unsigned
check_listener(const struct conf *c, const struct listener *l)
{
	const char *name = l->allow_unauthenticated;
	const struct identity *id = name ? conf_find_identity(c, name) : NULL;
	char why[CONF_WHY_MAX];
	unsigned n = check_names(c, l, &l->identities, "identities") +
		     check_names(c, l, &l->operators, "operators");

	if (name != NULL && (id == NULL || id->peer_group != NULL))
		n += tell(c,
		    conf_refuse(why,
			"[listener %s] allow-unauthenticated: %s [identity "
			"%.100s]",
			l->name,
			id == NULL ? "there is no" : "several users are", name),
		    why);
	if (l->keys.peer_user)
		n += tell(c, check_peer_users(c, l, why), why);
	return n;
}

static int
check_address(const struct listener *a, const struct listener *b, char *why)
{
	if (strcmp(a->address, b->address) != 0 ||
	    strstr(a->address, ":0") != NULL)
		return 0;
	return conf_refuse(why,
	    "[listener %s] address: [listener %s] has the same one", a->name,
	    b->name);
}

static int
check_subjects(const struct conf *c, const struct identity *id, char *why)
{
	if (id->subjects.count == 0 || conf_has_signed_tokens(c))
		return 0;
	return conf_refuse(why,
	    "[identity %s] token-subject: needs [signed-tokens]", id->name);
}

/* Checks what involves several sections. Returns how many errors it told. */
static unsigned
check_whole(struct conf *c)
{
	char why[CONF_WHY_MAX];
	unsigned n = 0;

	if (c->nlisteners == 0)
		n += tell(
		    c, conf_refuse(why, "there is no [listener NAME]"), why);
	if (c->nidentities == 0)
		n += tell(
		    c, conf_refuse(why, "there is no [identity NAME]"), why);
	for (size_t i = 0; i < c->nlisteners; i++) {
		n += check_listener(c, c->listeners[i]);
		for (size_t j = 0; j < i; j++)
			n += tell(c,
			    check_address(
				c->listeners[i], c->listeners[j], why),
			    why);
	}
	for (size_t i = 0; i < c->nidentities; i++) {
		n += tell(c, check_subjects(c, c->identities[i], why), why);
		for (size_t j = 0; j < i; j++)
			n += tell(c,
			    check_credentials(
				c->identities[j], c->identities[i], why),
			    why);
	}
	for (size_t i = 0; i < c->nnamed; i++)
		n += tell(c, conf_token_check(c, c->named[i], why), why);
	return n;
}

/* Replaces what nobody set. The commands of an identity have what [limits]
 * gives everybody's. */
static void
fill_group_limits(struct conf *c)
{
	const struct group_limits none = { 0 }, host = group_limits_of_host();

	group_limits_fill(&c->limits.all, &host);
	group_limits_fill(&c->limits.command, &none);
	for (size_t i = 0; i < c->nidentities; i++) {
		struct identity_limits *l = &c->identities[i]->limits;

		group_limits_fill(&l->together, &none);
		l->command_own = group_limits_set(&l->command);
		group_limits_fill(&l->command, &c->limits.command);
	}
}

int
conf_check_groups(const struct conf *c)
{
	const struct group_limits host = group_limits_of_host();
	struct group_limits all = c->limits.all;
	char section[64 + sizeof("[identity ]")];
	int err;

	/* What nobody asked for holds where it can. */
	if (all.memory_bytes == host.memory_bytes)
		all.memory_bytes = 0;
	if (all.tasks == host.tasks)
		all.tasks = 0;
	err = group_limits_check("[limits]", &all);
	for (size_t i = 0; i < c->nidentities; i++) {
		const struct identity *id = c->identities[i];

		snprintf(
		    section, sizeof(section), "[identity %.64s]", id->name);
		if (group_limits_check(section, &id->limits.together) < 0)
			err = -EOPNOTSUPP;
	}
	return err;
}

/* Checks the range of a number, which shows its bound like any value. */
static int
check_range(
    const struct conf_key *key, const void *at, const char *text, char *why)
{
	uint64_t n = conf_number(key->type, at);
	uint64_t bound = n < key->min ? key->min : key->max;
	uint32_t small = (uint32_t)bound;
	struct buf b;

	if (n >= key->min && (key->max == 0 || n <= key->max))
		return 0;
	buf_init(&b, CONF_WHY_MAX);
	key->type->show(key->type, &b,
	    key->type->size == sizeof(bound) ? (void *)&bound : &small);
	conf_refuse(why, "`%.100s` is %s than %.*s", text,
	    n < key->min ? "less" : "more", (int)b.len - 1, (char *)b.data);
	buf_clear(&b);
	return -EINVAL;
}

int
conf_set_key(
    const struct conf_key *key, void *object, const char *value, char *why)
{
	void *at = (char *)object + key->offset;
	int err = key->type->parse(key->type, at, value, why);

	return err < 0 || (key->min == 0 && key->max == 0)
		   ? err
		   : check_range(key, at, value, why);
}

void
conf_set_defaults(const struct conf_section *s, void *object)
{
	char why[CONF_WHY_MAX];

	for (size_t i = 0; i < s->nkeys; i++)
		if (s->keys[i].initial != NULL &&
		    conf_set_key(&s->keys[i], object, s->keys[i].initial, why) <
			0)
			log_fatal("default of %s: %s", s->keys[i].keyword, why);
}

const struct conf_key *
conf_find_key(const struct conf_section *s, const char *keyword)
{
	for (size_t i = 0; i < s->nkeys; i++)
		if (strcmp(s->keys[i].keyword, keyword) == 0)
			return &s->keys[i];
	return NULL;
}

int
conf_set(const struct conf_section *s, void *object, const char *keyword,
    const char *value, char *why)
{
	const struct conf_key *key = conf_find_key(s, keyword);

	return key != NULL ? conf_set_key(key, object, value, why)
			   : conf_refuse(why, "unknown key `%.100s`", keyword);
}

/* --- locks --------------------------------------------------------------- */

bool
conf_is_locked(const struct conf *c, const struct identity *id)
{
	const struct identity *of =
	    id->of != NULL ? conf_find_identity(c, id->of) : NULL;

	return id->locked || (of != NULL && of->locked);
}

int
conf_find_lock(const struct conf *c, const struct identity *id)
{
	_cleanup_free_ char *directory = NULL, *path = NULL;

	if (c->path == NULL)
		return -ENOENT;
	directory = conf_beside(c->path, "locked");
	path = xasprintf("%s/%s", directory, id->name);
	return access(path, F_OK) == 0 ? 0 : -errno;
}

static void
read_locks(struct conf *c)
{
	for (size_t i = 0; i < c->nidentities; i++) {
		struct identity *id = c->identities[i];
		int err = conf_find_lock(c, id);

		id->locked = err == 0;
		if (id->locked)
			log_warn(0,
			    "[identity %s] is locked: nobody comes in "
			    "as it before `execd ctl unlock %s`",
			    id->name, id->name);
		else if (err != -ENOENT && i == 0)
			log_error(err,
			    "locked/ beside %s: who is locked is not known, "
			    "and nobody is",
			    c->path);
	}
}

/* Root without --user reads execd.conf. */
static const char *
file_to_read(const struct options *o)
{
	if (o->config_file != NULL)
		return o->config_file;
	if (spawn_is_root() && !options_describe_service(o) &&
	    (access(CONF_DEFAULT_PATH, F_OK) == 0 || errno != ENOENT))
		return CONF_DEFAULT_PATH;
	return NULL;
}

static int
load(struct conf *c, const struct options *o)
{
	const char *path = file_to_read(o);
	char why[CONF_WHY_MAX];
	unsigned n;
	int code = 0;

	if (path != NULL) {
		c->path = xstrdup(path);
		code = conf_read_all(c) < 0 ? EXIT_CONFIG : 0;
	} else {
		code = conf_from_flags(c, o);
	}
	if (code != 0)
		return code;
	if (o->ctl_socket != NULL)
		conf_set(&conf_control, &c->control, "ctl-socket",
		    o->ctl_socket, why);
	for (size_t i = 0; i < o->nlimits; i++)
		conf_set(&conf_limits, &c->limits, o->limits[i].keyword,
		    o->limits[i].value, why);
	n = tell(c, conf_limits.check(c, &c->limits, why), why);
	n += tell(c, conf_add_members(c, why), why);
	n += check_whole(c);
	if (n > 0)
		return EXIT_CONFIG;
	if (path != NULL) {
		conf_tokens_read(c, path);
		read_locks(c);
	}
	return 0;
}

struct conf *
conf_load(const struct options *o, int *code)
{
	struct conf *c = conf_new();

	*code = load(c, o);
	if (*code != 0) {
		conf_free(c);
		return NULL;
	}
	fill_group_limits(c);
	/* As large as the host's own. */
	if (c->sandbox.shm_bytes == SANDBOX_UNSET_BYTES)
		c->sandbox.shm_bytes = group_limits_host_memory() >> 21 << 20;
	return c;
}
