/* SPDX-License-Identifier: ISC */
/*
 * The command execctl environments: the file of named servers, and what is
 * known of a server before it is trusted.
 */
#include "base.h"
#include "cmd.h"
#include "url.h"

const struct option_row environments_options[] = {
	{ "default", 0, NULL, "add: make it the default" },
	{ "accept-key", 0, NULL,
	    "add: take the server's key without a question" },
	{ 0 },
};

struct listing {
	struct execctl *ctl;
	const char *name; /* that is looked for, or NULL */
	bool found, has_default;
	size_t n;
};

static void
look(void *arg, const struct execd_environment *e, bool is_default)
{
	struct listing *l = arg;

	l->n++;
	l->has_default |= is_default;
	l->found |= l->name != NULL && strcmp(e->name, l->name) == 0;
}

static void
print_environment(void *arg, const struct execd_environment *e, bool is_default)
{
	struct listing *l = arg;
	struct json_text t;

	l->n++;
	if (!l->ctl->json) {
		printf(
		    "%s %-16s %s\n", is_default ? "*" : " ", e->name, e->url);
		return;
	}
	object_begin(&t);
	json_key_cstring(&t.w, "name", e->name);
	json_key_cstring(&t.w, "url", e->url);
	json_key_bool(&t.w, "default", is_default);
	object_print(&t);
}

static int
list_environments(struct execctl *ctl)
{
	struct listing l = { .ctl = ctl };
	_cleanup_free_ char *error = NULL;

	if (execd_environment_each(print_environment, &l, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	if (l.n == 0 && !ctl->quiet)
		execctl_say(
		    "there are no environments yet; 'execctl environments "
		    "add NAME URL' makes one");
	return 0;
}

static char *
unconst(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* The file of environments has absolute names, because execctl may later run in
 * another directory. Returns the name, which the caller frees; NULL: none is
 * given. */
static char *
absolute(const struct execctl *ctl, const char *name)
{
	const char *file = option(ctl->parsed, name);
	_cleanup_free_ char *here = NULL;

	if (file == NULL || file[0] == '/')
		return file != NULL ? xstrdup(file) : NULL;
	here = getcwd(NULL, 0);
	return xasprintf("%s/%s", here != NULL ? here : "", file);
}

/* Asks as ssh(1) does. Returns 0, or the exit status after a message. */
static int
ask_for_key(struct execctl *ctl, const struct execd_environment *e)
{
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;

	execctl_say("No authority that is known here has signed the "
		    "certificate of %s.",
	    e->url);
	execctl_say("The fingerprint of its key is %s.", e->server_key);
	if (option(ctl->parsed, "accept-key") != NULL)
		return 0;
	if (!isatty(STDIN_FILENO))
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "%s was not added: there is no terminal to ask at; "
		    "--accept-key takes the key, --ca names an authority",
		    e->name);
	fputs("Is this the right key (yes, no, or the fingerprint)? ", stderr);
	if (getline(&line, &cap, stdin) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		if (strcmp(line, "yes") == 0 ||
		    strcmp(line, e->server_key) == 0)
			return 0;
	}
	return execctl_fail(ctl, EXIT_CTL_USAGE, "%s was not added", e->name);
}

/* Takes the key of a wss: server for which no authority vouches. Any other
 * server is added unseen, as one that is not there yet. */
static int
take_key(struct execctl *ctl, struct execd_environment *e)
{
	_cleanup_free_ char *error = NULL;
	uint64_t timeout_ms = 0;
	struct execd_options o = { .url = e->url,
		.certificate_file = e->certificate_file,
		.key_file = e->key_file };
	int err, code = take_duration(
		     ctl, "connect-timeout", INT32_MAX, &timeout_ms);

	if (code != 0)
		return code;
	o.connect_timeout_ms = (unsigned int)timeout_ms;
	err = execd_server_key(&o, &e->server_key, &error);
	if (err == -ENOKEY)
		return ask_for_key(ctl, e);
	free(e->server_key);
	e->server_key = NULL;
	if (err < 0)
		execctl_say("%s; %s is added all the same, and no key is "
			    "expected of it",
		    error, e->name);
	return 0;
}

/* Says which server is meant if a command names none. */
static void
say_default(struct execctl *ctl, const char *name)
{
	_cleanup_free_ char *error = NULL;
	struct listing l = { .ctl = ctl };

	if (ctl->quiet || execd_environment_each(look, &l, &error) < 0 ||
	    l.has_default)
		return;
	if (l.n == 1)
		execctl_say(
		    "%s is the only environment, so it is the default", name);
	else if (l.n == 2)
		execctl_say("there are two environments now, and no default; "
			    "a line `default = NAME' before them says which");
}

static int
add_environment(struct execctl *ctl, const char *name, const char *url)
{
	const struct parsed *p = ctl->parsed;
	_cleanup_free_ char *token = absolute(ctl, "token-file"),
			    *ca = absolute(ctl, "ca"),
			    *certificate = absolute(ctl, "certificate"),
			    *key = absolute(ctl, "key"), *error = NULL;
	struct execd_environment e = { .name = unconst(name),
		.url = unconst(url),
		.ca_file = ca,
		.certificate_file = certificate,
		.key_file = key };
	struct listing l = { .ctl = ctl, .name = name };
	struct endpoint endpoint;
	const char *why;
	int code = 0;

	if (strpbrk(url, "\n\r;") != NULL ||
	    endpoint_parse(&endpoint, url, &why) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "URL `%s': %s", url,
		    strpbrk(url, "\n\r;") ? "`;' or the end of a line inside"
					  : why);
	if (execd_environment_each(look, &l, &error) == 0 && !l.found &&
	    ca == NULL && endpoint.kind == ENDPOINT_WSS)
		code = take_key(ctl, &e);
	endpoint_clear(&endpoint);
	if (code == 0 && error == NULL &&
	    execd_environment_add(
		&e, token, option(p, "default") != NULL, &error) == 0)
		say_default(ctl, name);
	free(e.server_key);
	return error != NULL ? execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error)
			     : code;
}

static int
remove_environment(struct execctl *ctl, const char *name)
{
	_cleanup_free_ char *error = NULL;

	if (execd_environment_remove(name, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	return 0;
}

static int
rename_environment(struct execctl *ctl, const char *name, const char *new_name)
{
	_cleanup_free_ char *error = NULL;

	if (execd_environment_rename(name, new_name, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	return 0;
}

/* They say who vouches for the server: to programs, and to people. */
static const char *const trusted_by[][2] = {
	{ "key", "by its key" },
	{ "authority", "by an authority" },
	{ "nobody", "without a check of who it is" },
};

static int
test_environment(struct execctl *ctl, const char *name)
{
	_cleanup_free_ char *error = NULL;
	const struct json_value *info;
	const char *const *trusted;
	char version[256], system[64];
	struct json_text t;
	int code;

	if (execd_environment_find(name, &ctl->environment, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	code = execctl_connect(ctl, NULL, false);
	if (code != 0)
		return code;
	info = execd_client_info(ctl->client);
	value_string(json_get(info, "serverVersion"), version, sizeof(version));
	value_string(json_get(info, "platformOs"), system, sizeof(system));
	trusted =
	    trusted_by[execd_client_server_key(ctl->client)		   ? 0
		       : strncasecmp(ctl->environment.url, "wss:", 4) == 0 ? 1
									   : 2];
	if (!ctl->json) {
		printf("%s: %s answers: %s on %s, trusted %s\n", name,
		    ctl->environment.url, version[0] ? version : "a server",
		    system[0] ? system : "?", trusted[1]);
		return 0;
	}
	object_begin(&t);
	json_key_cstring(&t.w, "name", name);
	json_key_cstring(&t.w, "url", ctl->environment.url);
	json_key_cstring(&t.w, "version", version);
	json_key_cstring(&t.w, "system", system);
	json_key_cstring(&t.w, "trustedBy", trusted[0]);
	object_print(&t);
	return 0;
}

static const struct {
	const char *name;
	int narguments;
	int (*one)(struct execctl *ctl, const char *name);
	int (*two)(struct execctl *ctl, const char *name, const char *more);
} actions[] = {
	{ "add", 3, .two = add_environment },
	{ "remove", 2, .one = remove_environment },
	{ "rename", 3, .two = rename_environment },
	{ "test", 2, .one = test_environment },
};

int
cmd_environments(struct execctl *ctl)
{
	const struct parsed *p = ctl->parsed;
	char **a = p->arguments;

	if (p->narguments == 0 ||
	    (p->narguments == 1 && strcmp(a[0], "list") == 0))
		return list_environments(ctl);
	for (size_t i = 0; i < nitems(actions); i++)
		if (strcmp(a[0], actions[i].name) == 0 &&
		    p->narguments == actions[i].narguments)
			return actions[i].one ? actions[i].one(ctl, a[1])
					      : actions[i].two(ctl, a[1], a[2]);
	return execctl_fail(ctl, EXIT_CTL_USAGE,
	    "environments: list, add NAME URL, remove NAME, rename NAME NEW, "
	    "or test NAME%s",
	    strcmp(a[0], "rm") == 0 ? "; is `remove' meant?" : "");
}
