/* SPDX-License-Identifier: ISC */
/*
 * The commands execctl info, doctor, completion and ssh-config.
 */
#include "base.h"
#include "cmd.h"

/* --- JSON as it came ---------------------------------------------------- */

static void
print_value(const struct json_value *v)
{
	struct json_text t;

	json_text_init(&t, 64u << 20);
	json_copy(&t.w, v);
	printf("%.*s\n", (int)t.buf.len, (const char *)t.buf.data);
	buf_clear(&t.buf);
}

/* --- info --------------------------------------------------------------- */

static void
print_member(const struct json_value *info, const char *label, const char *key)
{
	char text[4096];

	value_string(json_get(info, key), text, sizeof(text));
	if (text[0] != '\0')
		printf("%-14s%s\n", label, text);
}

static void
print_capabilities(const struct json_value *all)
{
	size_t column = 0;

	fputs("capabilities  ", stdout);
	for (const struct json_value *v = execd_json_first(all); v;
	     v = v->next) {
		if (!execd_json_bool(v, false))
			continue;
		if (column > 0 && column + v->key.len > 60) {
			fputs("\n              ", stdout);
			column = 0;
		}
		column += v->key.len + 1;
		printf("%.*s ", (int)v->key.len, v->key.ptr);
	}
	puts("");
}

int
cmd_info(struct execctl *ctl)
{
	const struct json_value *info;
	char shell[4096];
	int code = execctl_connect(ctl, NULL, false);

	if (code != 0)
		return code;
	info = execd_client_info(ctl->client);
	if (info == NULL)
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "the server does not describe itself");
	if (ctl->json) {
		print_value(info);
		return 0;
	}
	printf("%-14s%s\n", "url", ctl->environment.url);
	print_member(info, "version", "serverVersion");
	print_member(info, "protocol", "executorVersion");
	print_member(info, "system", "platformOs");
	value_string(
	    json_get(json_get(info, "shell"), "path"), shell, sizeof(shell));
	printf("%-14s%s\n", "shell", shell);
	print_member(info, "home", "userHomeDir");
	print_member(info, "directory", "cwd");
	print_member(info, "temporary", "tempDir");
	print_capabilities(json_get(info, "capabilities"));
	return 0;
}

/* --- doctor ------------------------------------------------------------- */

static void
checked(
    const struct execctl *ctl, bool ok, const char *what, const char *detail)
{
	struct json_text t;

	if (!ctl->json) {
		printf("%-5s %-28s %s\n", ok ? "ok" : "FAIL", what, detail);
		return;
	}
	object_begin(&t);
	json_key_cstring(&t.w, "check", what);
	json_key_bool(&t.w, "ok", ok);
	json_key_cstring(&t.w, "detail", detail);
	object_print(&t);
}

struct trial {
	int code; /* -1: not finished */
	char *error;
};

static void
finished(void *arg, const struct execd_exit *how)
{
	struct trial *t = arg;

	t->code = how->code;
}

static void
not_started(void *arg, int code, const char *message)
{
	struct trial *t = arg;

	t->code = EXIT_CTL_REFUSED;
	t->error = xstrdup(message);
}

/* Tells whether a command runs with this sandbox. */
static int
try_command(struct execctl *ctl, const char *what, const char *sandbox)
{
	static const char *const argv[] = { "/bin/sh", "-c", "exit 7", NULL };
	const struct execd_process_events events = { .exited = finished,
		.failed = not_started };
	struct execd_start start = {
		.argv = argv, .cwd = "/", .sandbox = sandbox
	};
	struct trial t = { .code = -1 };
	_cleanup_free_ char *detail = NULL;
	struct execd_process *p;

	if (execd_process_start(ctl->client, &start, &events, &t, &p) < 0)
		return EXIT_CTL_REFUSED;
	while (t.code < 0)
		loop_once(ctl);
	execd_process_free(p);
	detail = t.error ? t.error
			 : xasprintf("exit status %d%s", t.code,
			       t.code == 7 ? "" : ", 7 was expected");
	checked(ctl, t.code == 7, what, detail);
	return t.code == 7 ? 0 : EXIT_CTL_REFUSED;
}

static int
try_sandbox(struct execctl *ctl)
{
	struct buf sandbox;
	int code;

	buf_init(&sandbox, 65536);
	sandbox_profile_write(&sandbox, "read-only", "/", false);
	buf_put_u8(&sandbox, '\0');
	code = try_command(
	    ctl, "run in a read-only sandbox", (const char *)sandbox.data);
	buf_clear(&sandbox);
	return code;
}

static int
try_file(struct execctl *ctl)
{
	_cleanup_free_ char *home = remote_path(ctl, "");
	struct reply r;
	int code;

	call_path(ctl, "fs/getMetadata", home, &r);
	code = r.code == 0 ? 0 : EXIT_CTL_REFUSED;
	checked(ctl, code == 0, "look at the home directory",
	    r.code == 0 ? home : r.message);
	reply_clear(&r);
	return code;
}

int
cmd_doctor(struct execctl *ctl)
{
	const char *token;
	int code, worst;

	code = execctl_connect(ctl, NULL, false);
	checked(ctl, ctl->environment.url != NULL, "a server is named",
	    ctl->environment.url ? ctl->environment.url : "no");
	if (ctl->environment.url == NULL || ctl->client == NULL)
		return code;
	token = ctl->environment.token ? "with a token" : "without a token";
	checked(ctl, code == 0, "connect and initialize",
	    code == 0 ? token : execd_client_error(ctl->client));
	if (code != 0)
		return code;
	worst = try_command(ctl, "run a command", NULL);
	code = try_sandbox(ctl);
	worst = worst ? worst : code;
	code = try_file(ctl);
	return worst ? worst : code;
}

/* --- completion and ssh-config ------------------------------------------- */

int
cmd_completion(struct execctl *ctl)
{
	const struct parsed *p = ctl->parsed;

	/* The scripts call this. */
	if (p->narguments == 2 && strcmp(p->arguments[0], "paths") == 0)
		return complete_paths(ctl, p->arguments[1]);
	if (p->narguments == 1 && help_completion(p->arguments[0]))
		return 0;
	return execctl_fail(ctl, EXIT_CTL_USAGE,
	    "completion: `%s' is not bash, zsh or fish",
	    p->arguments[p->narguments - 1]);
}

/* The program of that name beside this one, which is installed with it. */
int
cmd_ssh_config(struct execctl *ctl)
{
	const char *name = ctl->parsed->arguments[0];
	char path[PATH_MAX] = "";
	ssize_t n =
	    readlink("/proc/self/exe", path, sizeof(path) - sizeof("-ssh"));

	if (n > 0) {
		strcpy(path + n, "-ssh");
		execl(path, path, "--config", name, NULL);
	}
	execlp("execctl-ssh", "execctl-ssh", "--config", name, NULL);
	return execctl_fail(
	    ctl, EXIT_CTL_USAGE, "execctl-ssh: %s", strerror(errno));
}
