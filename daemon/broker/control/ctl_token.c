/* SPDX-License-Identifier: ISC */
/*
 * `execd ctl token': makes, lists and revokes the tokens of the directory
 * `tokens' beside the configuration file. The files are the caller's to write:
 * whoever may not is told so by the file system. The broker is asked whether
 * the identity exists, records who did it, and reads the files anew. `lock' and
 * `unlock' do the same with the directory `locked', whose files are empty.
 */
#include "ctl_client.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include "exit_code.h"

#define TOKEN_BYTES 32
#define TEXT_MAX    64 /* of such a token in base64, or a digest in digits */

int
ctl_fail(const char *what, const char *why)
{
	fputs("execd ctl: ", stderr);
	ctl_print_text(stderr, slice_of(what));
	fprintf(stderr, ": %s\n", why);
	return EXIT_FAILED;
}

int
ctl_tell(const char *what, int err)
{
	ctl_fail(what, strerror(-err));
	return err == -EACCES || err == -EPERM ? EXIT_PERMISSION : EXIT_FAILED;
}

static int
tell_of_token(const char *is, const char *name, const char *more)
{
	fprintf(stderr, "execd ctl: there is %s token %s%s\n", is, name, more);
	return EXIT_FAILED;
}

/* --- what execd says ------------------------------------------------------ */

/* Returns -1 and the directory of that name, or an exit code after printing the
 * error. */
static int
find_directory(const struct ctl_options *o, const char *name, char **directory)
{
	struct ctl_options status = { .socket = o->socket,
		.command = "status" };
	_cleanup_free_ char *path = NULL;
	const struct json_value *v;
	struct ctl_answer a;
	int code = ctl_ask(&status, &a);

	if (code >= 0)
		return code;
	v = a.result ? json_get(a.result, "configuration") : NULL;
	if (v != NULL && v->type == JSON_STRING)
		path = xasprintf("%.*s", (int)v->text.len, v->text.ptr);
	ctl_answer_clear(&a);
	if (path != NULL && path[0] == '/')
		*directory = conf_beside(path, name);
	else
		fprintf(stderr,
		    "execd ctl: %s/ is a place beside the configuration "
		    "file, and this execd has %s\n",
		    name, path == NULL ? "none" : "a relative path of it");
	return *directory != NULL ? -1 : EXIT_FAILED;
}

/* Returns whether the token counts now. */
static bool
is_in_force(const struct ctl_options *o, const char *name)
{
	struct ctl_options list = { .socket = o->socket, .command = "tokens" };
	const struct json_value *all, *t = NULL;
	struct ctl_answer a;

	if (ctl_ask(&list, &a) >= 0)
		return false;
	all = a.result ? json_get(a.result, "tokens") : NULL;
	for (t = all ? all->first : NULL; t != NULL; t = t->next)
		if (json_is(json_get(t, "name"), name))
			break;
	ctl_answer_clear(&a);
	return t != NULL;
}

/* Has the files read anew. Returns -1, or an exit code after printing the
 * error. What the log says of other things is not repeated. */
static int
read_anew(const struct ctl_options *o, const char *command,
    const char *identity, struct ctl_answer *a)
{
	struct ctl_options request = { .socket = o->socket,
		.command = command,
		.token = o->words[1],
		.identity = identity,
		.end = o->end };
	int code = ctl_ask(&request, a);

	if (code < 0 && a->error != NULL) {
		code = ctl_print_error(a->error);
		ctl_answer_clear(a);
	}
	return code;
}

/* --- the file ------------------------------------------------------------- */

bool
ctl_read_span(const char *text, int64_t *seconds)
{
	static const struct {
		char unit;
		unsigned seconds;
	} units[] = { { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 },
		{ 'w', 7 * 86400 } };
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	for (size_t i = 0; i < nitems(units); i++)
		if (text[0] >= '1' && text[0] <= '9' && n <= 100000 &&
		    end[0] == units[i].unit && end[1] == '\0') {
			*seconds = (int64_t)(n * units[i].seconds);
			return true;
		}
	return false;
}

/* 0: never. Returns false after printing the error. */
static bool
parse_expiry(const char *text, int64_t now, int64_t *at)
{
	int64_t span;

	*at = 0;
	if (text == NULL || (conf_read_time(text, at) && *at > now))
		return true;
	if (ctl_read_span(text, &span)) {
		*at = now + span;
		return true;
	}
	fprintf(stderr,
	    "execd ctl: --expires %s: neither a time to come, as "
	    "2027-01-31T12:00:00Z, nor a number with m, h, d or w, as 90d\n",
	    text);
	return false;
}

void
ctl_show_time(char text[CONF_TIME_CHARS], int64_t at, const char *none)
{
	if (at == 0)
		snprintf(text, CONF_TIME_CHARS, "%s", none);
	else
		conf_write_time(text, at);
}

/* Makes a token of random bytes, for a header and a command line: base64 of
 * RFC 4648 section 5 without its padding. */
static void
make_token(char token[TEXT_MAX], char digest[2 * 32 + 1])
{
	uint8_t bytes[TOKEN_BYTES], sum[32];
	int n;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		log_fatal("getrandom: no random bytes");
	n = EVP_EncodeBlock((uint8_t *)token, bytes, sizeof(bytes));
	while (n > 0 && token[n - 1] == '=')
		token[--n] = '\0';
	for (char *p = token; *p != '\0'; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	EVP_Digest(token, (size_t)n, sum, NULL, EVP_sha256(), NULL);
	for (size_t i = 0; i < sizeof(sum); i++)
		snprintf(digest + 2 * i, 3, "%02x", sum[i]);
}

int
ctl_write_file(
    const char *directory, const char *path, const char *text, mode_t mode)
{
	_cleanup_free_ char *before =
	    xasprintf("%s/.new.%d", directory, (int)getpid());
	_cleanup_close_ int fd = -1;
	int err;

	/* The broker, another user, looks into it, whatever the umask is. */
	if (mkdir(directory, 0755) < 0 ? errno != EEXIST
				       : chmod(directory, 0755) < 0)
		return -errno;
	fd = open(before, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write_whole(AT_FDCWD, before, text);
	if (err == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		err = -errno;
	if (err == 0 && link(before, path) < 0)
		err = -errno;
	unlink(before);
	return err;
}

/* --- the commands --------------------------------------------------------- */

static int
print_token(const struct ctl_options *o, const char *token, const char *until)
{
	struct json_writer w;
	struct buf b;

	if (!o->json) {
		fprintf(stderr,
		    "%s, identity %s, expires: %s. It is shown only now:\n",
		    o->words[1], o->identity, until);
		puts(token);
		return fflush(stdout) == 0 ? EXIT_STOPPED : EXIT_FAILED;
	}
	buf_init(&b, SIZE_MAX);
	json_writer_init(&w, &b);
	json_begin(&w, '{');
	json_key_begin(&w, "result", '{');
	json_key_cstring(&w, "name", o->words[1]);
	json_key_cstring(&w, "identity", o->identity);
	json_key_cstring(&w, "expires", until);
	json_key_cstring(&w, "token", token);
	json_end(&w, '}');
	json_end(&w, '}');
	buf_puts(&b, "\n");
	fwrite(b.data, 1, b.len, stdout);
	buf_clear(&b);
	return fflush(stdout) == 0 ? EXIT_STOPPED : EXIT_FAILED;
}

/* Whoever does not hear the token has none: then its file goes again. */
static int
make_one(const struct ctl_options *o, const char *directory, int64_t at)
{
	const char *name = o->words[1];
	_cleanup_free_ char *path = xasprintf("%s/%s", directory, name);
	_cleanup_free_ char *text = NULL;
	char token[TEXT_MAX], digest[TEXT_MAX + 1], until[CONF_TIME_CHARS];
	char now[CONF_TIME_CHARS];
	struct ctl_answer a;
	int code, err;

	make_token(token, digest);
	ctl_show_time(until, at, "never");
	ctl_show_time(now, time(NULL), "");
	text = xasprintf("[token %s]\nidentity = %s\nsha256 = %s\n"
			 "created = %s\n%s%s%s",
	    name, o->identity, digest, now, at ? "expires = " : "",
	    at ? until : "", at ? "\n" : "");
	err = ctl_write_file(directory, path, text, 0600);
	if (err == -EEXIST)
		return tell_of_token("a", name, " already");
	if (err < 0)
		return ctl_tell(path, err);
	code = read_anew(o, "token-new", o->identity, &a);
	if (code < 0 && !is_in_force(o, name)) {
		ctl_print_log(a.result);
		code = EXIT_CONFIG;
	}
	if (code < 0)
		ctl_answer_clear(&a);
	if (code >= 0) {
		unlink(path);
		return code;
	}
	return print_token(o, token, until);
}

static int
token_new(const struct ctl_options *o)
{
	_cleanup_free_ char *directory = NULL;
	int64_t at;
	int code;

	if (o->identity == NULL)
		return ctl_usage_error("token new needs --identity", "");
	if (!parse_expiry(o->expires, time(NULL), &at))
		return EXIT_USAGE;
	code = find_directory(o, "tokens", &directory);
	return code >= 0 ? code : make_one(o, directory, at);
}

static int
token_revoke(const struct ctl_options *o)
{
	_cleanup_free_ char *directory = NULL, *path = NULL;
	struct ctl_answer a;
	int code = find_directory(o, "tokens", &directory);

	if (code >= 0)
		return code;
	path = xasprintf("%s/%s", directory, o->words[1]);
	if (unlink(path) < 0)
		return errno == ENOENT
			   ? tell_of_token("no", o->words[1],
				 "; `execd ctl kill --token` ends the sessions "
				 "of one that there was")
			   : ctl_tell(path, -errno);
	code = read_anew(o, "token-revoke", NULL, &a);
	if (code >= 0)
		return code;
	ctl_answer_clear(&a);
	return EXIT_STOPPED;
}

static int
token_list(const struct ctl_options *o)
{
	struct ctl_options list = *o;

	list.command = "tokens";
	return ctl_ask_and_print(&list);
}

int
ctl_token(const struct ctl_options *o)
{
	const char *what = o->words[0], *name = o->words[1];

	if (what != NULL && strcmp(what, "list") == 0 && name == NULL)
		return token_list(o);
	if (what == NULL ||
	    (strcmp(what, "new") != 0 && strcmp(what, "revoke") != 0))
		return ctl_usage_error("token: say new, list or revoke", "");
	if (name == NULL || !conf_is_name(name) || name[0] == '.' ||
	    strlen(name) + strlen("token ") > CTL_NAME_CHARS)
		return ctl_usage_error(
		    "token: a name of letters, digits, dots, underscores and "
		    "hyphens is needed: ",
		    name != NULL ? name : "");
	return strcmp(what, "new") == 0 ? token_new(o) : token_revoke(o);
}

/* --- lock, unlock --------------------------------------------------------- */

/* The file comes before the question, so that no broker misses it. */
static int
change_lock(const struct ctl_options *o, const char *directory, bool lock)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", directory, o->identity);
	int err = lock ? ctl_write_file(directory, path, "", 0600) : 0;
	int code;

	if (!lock && unlink(path) < 0)
		err = -errno;
	if (err == -EEXIST || err == -ENOENT) {
		fprintf(stderr, "execd ctl: %s is %s already\n", o->identity,
		    lock ? "locked" : "unlocked");
		return EXIT_FAILED;
	}
	if (err < 0)
		return ctl_tell(path, err);
	code = ctl_ask_and_print(o);
	/* A name that is none leaves no file. */
	if (lock && code != EXIT_STOPPED)
		unlink(path);
	return code;
}

int
ctl_lock(const struct ctl_options *given)
{
	struct ctl_options o = *given;
	_cleanup_free_ char *directory = NULL;
	int code;

	o.identity = o.words[0];
	if (o.identity == NULL || !conf_is_name(o.identity) ||
	    o.identity[0] == '.' || strlen(o.identity) > CTL_NAME_CHARS)
		return ctl_usage_error("the name of an identity is needed", "");
	code = find_directory(&o, "locked", &directory);
	return code >= 0
		   ? code
		   : change_lock(&o, directory, strcmp(o.command, "lock") == 0);
}
