/* SPDX-License-Identifier: ISC */
#include "launch_text.h"

#include <ctype.h>

#include "frames.h"

/* --- the command line --------------------------------------------------- */

#define AT(member) offsetof(struct launch_options, member)

static const struct option {
	const char *name;
	enum { FLAG, TEXT, LIST, NUMBER } kind;
	size_t at;
} options[] = {
	{ "--help", FLAG, AT(help) },
	{ "--version", FLAG, AT(version) },
	{ "--inner", FLAG, AT(inner) },
	{ "--frames", FLAG, AT(frames) },
	{ "--network-is-blocked", FLAG, AT(network_is_blocked) },
	{ "--sandbox-user", FLAG, AT(sandbox_user) },
	{ "--user", TEXT, AT(user) },
	{ "--password-env", TEXT, AT(password_env) },
	{ "--runner", TEXT, AT(runner) },
	{ "--desktop", TEXT, AT(desktop) },
	{ "--cwd", TEXT, AT(cwd) },
	{ "--policy", TEXT, AT(policy) },
	{ "--cap-sid", LIST, AT(sids) },
	{ "--timeout-ms", NUMBER, AT(timeout_ms) },
	{ "--start-timeout-ms", NUMBER, AT(start_timeout_ms) },
};

static bool
set_number(uint64_t *to, const char *text)
{
	char *end;

	errno = 0;
	*to = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 &&
	       *to > 0 && *to <= INT32_MAX;
}

/* Returns false if there is no value, or it is out of range. */
static bool
set(const struct option *option, void *to, const char *text)
{
	struct launch_list *list = to;

	if (option->kind == FLAG)
		return *(bool *)to = true;
	if (text == NULL || *text == '\0')
		return false;
	if (option->kind == NUMBER)
		return set_number(to, text);
	if (option->kind == TEXT)
		*(const char **)to = text;
	else if (list->count < LAUNCH_LIST_MAX)
		list->items[list->count++] = text;
	else
		return false;
	return true;
}

/* Who starts it has another directory than the launcher. */
static bool
is_program(const char *path)
{
	return path != NULL && isalpha((unsigned char)path[0]) &&
	       path[1] == ':' && (path[2] == '\\' || path[2] == '/') &&
	       strchr(path, '"') == NULL;
}

/* Returns what is wrong, or NULL. What would have no effect is wrong, too. */
static const char *
find_fault(const struct launch_options *o)
{
	if (o->help || o->version)
		return NULL;
	if (!is_program(o->runner))
		return "--runner: expected an absolute path";
	if ((o->user == NULL) != (o->password_env == NULL))
		return "--user and --password-env: one of them is missing";
	if (!o->frames && (o->cwd == NULL || *o->command == NULL))
		return "--cwd and a command behind --: one of them is missing";
	if (o->frames && (o->cwd != NULL || o->policy != NULL ||
			     o->timeout_ms > 0 || *o->command != NULL))
		return "--frames: the frames say what is run, where and how";
	return NULL;
}

int
launch_parse(struct launch_options *o, const char *const *argv, char *error)
{
	const char *fault;

	*o = (struct launch_options){ .start_timeout_ms = 30000 };
	for (argv++; *argv != NULL && strcmp(*argv, "--") != 0; argv++) {
		const char *name = *argv;
		size_t i = 0;

		while (
		    i < nitems(options) && strcmp(options[i].name, name) != 0)
			i++;
		argv += i < nitems(options) && options[i].kind != FLAG;
		if (i < nitems(options) &&
		    set(&options[i], (char *)o + options[i].at, *argv))
			continue;
		snprintf(error, LAUNCH_ERROR_MAX, "%.200s: %s", name,
		    i < nitems(options) ? "a value is missing or out of range"
					: "not known");
		return -EINVAL;
	}
	o->command = *argv != NULL ? argv + 1 : argv;
	fault = find_fault(o);
	snprintf(error, LAUNCH_ERROR_MAX, "%s", fault != NULL ? fault : "");
	return fault != NULL ? -EINVAL : 0;
}

/* --- frames ------------------------------------------------------------- */

static struct json_writer
begin_frame(struct buf *out, const char *type)
{
	struct json_writer w;

	buf_put_u32(out, 0);
	json_writer_init(&w, out);
	json_begin(&w, '{');
	json_key_u64(&w, "version", FRAMES_NEW);
	json_key_cstring(&w, "type", type);
	json_key_begin(&w, "payload", '{');
	return w;
}

static void
end_frame(struct json_writer *w)
{
	json_end(w, '}');
	json_end(w, '}');
	frames_set_length(w->buf);
}

static void
put_strings(
    struct json_writer *w, const char *key, const char *const *list, size_t n)
{
	json_key_begin(w, key, '[');
	for (size_t i = 0; i < n && list[i] != NULL; i++)
		json_cstring(w, list[i]);
	json_end(w, ']');
}

/* The variables of Windows that begin with '=' are directories of drives. */
static void
put_environment(struct json_writer *w, const char *const *list)
{
	json_key_begin(w, "env", '{');
	for (; *list != NULL; list++) {
		const char *value = strchr(*list, '=');

		if (value == NULL || value == *list)
			continue;
		json_slice_key(
		    w, (struct slice){ *list, (size_t)(value - *list) });
		json_cstring(w, value + 1);
	}
	json_end(w, '}');
}

/* Everything is read, and at most the working directory is written. */
#define READS_ALL                                                              \
	"{\"type\":\"managed\",\"network\":\"restricted\",\"file_system\":"    \
	"{\"type\":\"restricted\",\"entries\":[{\"access\":\"read\",\"path\":" \
	"{\"type\":\"special\",\"value\":{\"kind\":\"root\"}}}"
#define WRITES ",{\"access\":\"write\",\"path\":{\"type\":\"path\",\"path\":"

static void
put_policy(struct json_writer *w, const struct launch_options *o)
{
	const char *policy = o->policy != NULL ? o->policy : "read-only";
	bool writes = !strcmp(policy, "workspace-write");

	json_key(w, "permission_profile");
	if (!writes && strcmp(policy, "read-only") != 0) {
		json_raw(w, policy, strlen(policy));
		return;
	}
	buf_puts(w->buf, READS_ALL);
	if (writes) {
		buf_puts(w->buf, WRITES);
		json_cstring(w, o->cwd);
		buf_puts(w->buf, "}}");
	}
	buf_puts(w->buf, "]}}");
	w->comma = true;
}

void
launch_put_spawn(struct buf *out, const struct launch_options *o,
    const char *const *environment)
{
	struct json_writer w = begin_frame(out, "spawn_request");

	put_strings(&w, "command", o->command, SIZE_MAX);
	json_key_cstring(&w, "cwd", o->cwd);
	put_environment(&w, environment);
	put_policy(&w, o);
	put_strings(&w, "workspace_roots", &o->cwd, 1);
	put_strings(&w, "cap_sids", o->sids.items, o->sids.count);
	json_key_cstring(&w, "private_desktop_name", o->desktop);
	if (o->timeout_ms > 0)
		json_key_u64(&w, "timeout_ms", o->timeout_ms);
	json_key_bool(&w, "stdin_open", true);
	end_frame(&w);
}

void
launch_put_input(struct buf *out, const void *data, size_t n)
{
	struct json_writer w =
	    begin_frame(out, n > 0 ? "stdin" : "close_stdin");

	if (n > 0) {
		json_key_base64(&w, "data_b64", data, n);
	}
	end_frame(&w);
}

/* --- DACLs -------------------------------------------------------------- */

/* "P": nothing is inherited that would permit more. "OW" is who made it. */
void
launch_put_dacl(
    struct buf *out, const char *rights, const struct launch_list *sids)
{
	buf_printf(out, "D:P(A;;%s;;;OW)", rights);
	for (size_t i = 0; i < sids->count; i++)
		buf_printf(out, "(A;;%s;;;%s)", rights, sids->items[i]);
}
