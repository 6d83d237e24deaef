/* SPDX-License-Identifier: ISC */
/*
 * `execd ctl`: the operator's side of the control socket. It has no privilege
 * of its own. The mode of the socket's file and the broker decide who may ask.
 */
#include "ctl_client.h"

#include <getopt.h>
#include <sys/un.h>

#include "exit_code.h"
#include "utf8.h"

#define SILENT_MS   15000	 /* after this the broker counts as hanging */
#define ANSWER_MAX  (256u << 20) /* more than all possible sessions need */
#define WAIT_S	    2		 /* each question is in the audit log */
#define SOCKETS_MAX 64		 /* execds that are tried */

static const char usage_text[] =
    "usage: execd ctl [--json] [--socket PATH] COMMAND\n"
    "  list                      the sessions that there are\n"
    "  show ID                   one of them\n"
    "  kill ID --reason TEXT     end it; its client is told who did and why\n"
    "  kill --identity ID | --token NAME --reason TEXT\n"
    "                            end all sessions of an identity or a token\n"
    "  drain [--wait]            open no new session; those there are go on;\n"
    "                            with --wait until the last one has ended\n"
    "  undrain                   open new sessions again\n"
    "  status                    whether execd works\n"
    "  reload                    read the configuration again, and print what\n"
    "                            changed, or what is wrong with it\n"
    "  top                       the sessions that use most, again and again\n"
    "  usage [--since 24h] [--file PATH]\n"
    "                            what each identity has used, by the audit log\n"
    "  explain                   the last refusals: who, when and why\n"
    "  token new NAME --identity ID [--expires 90d]\n"
    "                            make a token, and print it once\n"
    "  token list                the tokens that have names\n"
    "  token revoke NAME [--end] it opens no session any more; with --end its\n"
    "                            sessions are ended\n"
    "  lock IDENTITY [--end]     nobody comes in as it any more; with --end its\n"
    "                            sessions are ended\n"
    "  unlock IDENTITY           lets it in again\n"
    "  ca init | server NAME... | client NAME [--dir DIR] [--days N]\n"
    "                            a small certificate authority, and what it signs\n"
    "ID of a session is at least four characters of a session's id, or session-NUMBER.\n";

int
ctl_usage_error(const char *text, const char *word)
{
	fprintf(
	    stderr, "execd ctl: %s%s\nTry 'execd ctl --help'.\n", text, word);
	return EXIT_USAGE;
}

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "socket", required_argument, NULL, 's' },
	{ "reason", required_argument, NULL, 'r' },
	{ "identity", required_argument, NULL, 'i' },
	{ "token", required_argument, NULL, 't' },
	{ "expires", required_argument, NULL, 'x' },
	{ "end", no_argument, NULL, 'e' },
	{ "wait", no_argument, NULL, 'w' },
	{ "since", required_argument, NULL, 'S' },
	{ "file", required_argument, NULL, 'f' },
	{ "dir", required_argument, NULL, 'd' },
	{ "days", required_argument, NULL, 'D' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void
take_option(struct ctl_options *o, int opt)
{
	const struct {
		int opt;
		const char **text;
	} texts[] = { { 's', &o->socket }, { 'r', &o->reason },
		{ 'i', &o->identity }, { 't', &o->token }, { 'x', &o->expires },
		{ 'S', &o->since }, { 'f', &o->file }, { 'd', &o->dir },
		{ 'D', &o->days } };

	o->json |= opt == 'j';
	o->end |= opt == 'e';
	o->wait |= opt == 'w';
	for (size_t i = 0; i < nitems(texts); i++)
		if (texts[i].opt == opt)
			*texts[i].text = optarg;
}

static int
parse(struct ctl_options *o, int argc, char **argv)
{
	size_t n = 0, most;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage_text, stdout);
			return EXIT_STOPPED;
		}
		if (opt == '?')
			return ctl_usage_error("unknown option", "");
		take_option(o, opt);
	}
	if (optind == argc)
		return ctl_usage_error("a command is missing", "");
	o->command = argv[optind++];
	most = strcmp(o->command, "token") == 0 ? 2
	       : strcmp(o->command, "ca") == 0	? CTL_WORDS_MAX - 1
						: 1;
	while (optind < argc && n < most)
		o->words[n++] = argv[optind++];
	return optind == argc ? -1
			      : ctl_usage_error("unexpected ", argv[optind]);
}

/* --- the socket ----------------------------------------------------------- */

struct found {
	char paths[SOCKETS_MAX][CTL_PATH_MAX];
	int fd; /* connected to the first execd that answers */
	size_t n;
	int refused; /* errno of one that could not be asked, or 0 */
	char refused_path[CTL_PATH_MAX];
};

/* Returns a descriptor or -errno. */
static int
connect_to(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)) < 0)
		return -errno;
	return steal_fd(&fd);
}

static void
try_socket(void *arg, const char *path)
{
	struct found *f = arg;
	int fd = connect_to(path);

	if (fd >= 0 && f->n < SOCKETS_MAX) {
		snprintf(f->paths[f->n++], CTL_PATH_MAX, "%s", path);
		if (f->fd < 0)
			f->fd = steal_fd(&fd);
	} else if (fd == -EACCES || fd == -EPERM) {
		f->refused = -fd;
		snprintf(f->refused_path, CTL_PATH_MAX, "%s", path);
	}
	if (fd >= 0)
		close(fd);
}

static void
look_in(struct found *f, const char *directory)
{
	if (ctl_directory_check(directory) == 0)
		ctl_directory_walk(directory, try_socket, f);
}

/* The user's own execd comes before root's, because an ordinary user means his
 * own. */
static void
look_around(struct found *f)
{
	char directory[CTL_DIRECTORY_MAX];

	if (geteuid() != 0 && ctl_directory(directory, false) == 0)
		look_in(f, directory);
	if (f->n == 0)
		look_in(f, CTL_ROOT_DIRECTORY);
}

static int
tell_not_permitted(const char *path, int err)
{
	fprintf(stderr,
	    "execd ctl: %s: %s: only root, the user execd runs as, and members "
	    "of ctl-group may ask (execd.conf(5))\n",
	    path, strerror(err));
	return EXIT_PERMISSION;
}

/* Returns -1 and *fd, or an exit code after printing the error. */
static int
find_socket(const char *path, int *fd)
{
	struct found f = { .fd = -1 };

	if (path != NULL) {
		*fd = connect_to(path);
		if (*fd >= 0)
			return -1;
		if (*fd == -EACCES || *fd == -EPERM)
			return tell_not_permitted(path, -*fd);
		fprintf(stderr, "execd ctl: %s: %s\n", path, strerror(-*fd));
		return EXIT_FAILED;
	}
	look_around(&f);
	*fd = f.fd;
	if (f.n == 1)
		return -1;
	if (f.n == 0 && f.refused != 0)
		return tell_not_permitted(f.refused_path, f.refused);
	if (f.n == 0) {
		fputs("execd ctl: neither an execd of yours nor one of root's "
		      "runs here; --socket names another\n",
		    stderr);
		return EXIT_FAILED;
	}
	fprintf(stderr, "execd ctl: several run here; choose one with "
			"--socket PATH:\n");
	for (size_t i = 0; i < f.n; i++)
		fprintf(stderr, "  %s\n", f.paths[i]);
	close(f.fd);
	return EXIT_FAILED;
}

/* --- question and answer -------------------------------------------------- */

static void
put_request(struct buf *b, const struct ctl_options *o)
{
	struct json_writer w;

	json_writer_init(&w, b);
	json_begin(&w, '{');
	json_key_cstring(&w, "command", o->command);
	if (o->session != NULL)
		json_key_cstring(&w, "session", o->session);
	if (o->reason != NULL)
		json_key_cstring(&w, "reason", o->reason);
	if (o->token != NULL)
		json_key_cstring(&w, "token", o->token);
	if (o->identity != NULL)
		json_key_cstring(&w, "identity", o->identity);
	if (o->end)
		json_key_bool(&w, "end", true);
	json_end(&w, '}');
	buf_puts(b, "\n");
}

/* Returns 0 and the line without its end, or -errno: -ETIMEDOUT or
 * -ECONNRESET. */
static int
hear(int fd, struct buf *answer)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char piece[65536];

	for (;;) {
		int ready = poll(&p, 1, SILENT_MS);
		ssize_t n;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return -ETIMEDOUT;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -ECONNRESET;
		buf_put(answer, piece, (size_t)n);
		if (answer->failed)
			return -EFBIG;
		if (piece[n - 1] == '\n')
			return 0;
	}
}

static int
ask(int fd, const struct ctl_options *o, struct buf *answer)
{
	struct buf request;
	int err = 0;

	buf_init(&request, CTL_REQUEST_MAX);
	put_request(&request, o);
	if (request.failed)
		err = -E2BIG;
	else
		/* A client that is refused still has an answer to read. */
		send(fd, request.data, request.len, MSG_NOSIGNAL);
	buf_clear(&request);
	return err < 0 ? err : hear(fd, answer);
}

int
ctl_ask_status(char path[CTL_PATH_MAX], struct buf *answer)
{
	static const struct ctl_options status = { .command = "status" };
	struct found f = { .fd = -1 };
	_cleanup_close_ int fd = -1;

	look_around(&f);
	fd = f.fd;
	snprintf(
	    path, CTL_PATH_MAX, "%s", f.n > 0 ? f.paths[0] : f.refused_path);
	if (f.n == 0)
		return f.refused != 0 ? -f.refused : -ENOENT;
	return f.n > 1 ? -ENOTUNIQ : ask(fd, &status, answer);
}

static int
tell_no_answer(int err)
{
	const char *why =
	    err == -ETIMEDOUT ? "the broker does not answer"
	    : err == -E2BIG   ? "the request is too long"
	    : err == -EFBIG   ? "the answer is too long"
			    : "the broker ended before it answered: ask again; "
			      "what was asked may have been done";

	fprintf(stderr, "execd ctl: %s\n", why);
	return err == -E2BIG ? EXIT_USAGE : EXIT_FAILED;
}

/* --- output for people ---------------------------------------------------- */

void
ctl_print_text(FILE *to, struct slice text)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	utf8_escape(&b, text.ptr, text.len);
	fwrite(b.data, 1, b.len, to);
	buf_clear(&b);
}

struct slice
ctl_text_of(const struct json_value *object, const char *key)
{
	const struct json_value *v = json_get(object, key);

	return v != NULL && (v->type == JSON_STRING || v->type == JSON_NUMBER)
		   ? v->text
		   : SLICE("-");
}

uint64_t
ctl_number_of(const struct json_value *object, const char *key, bool *known)
{
	const struct json_value *v = json_get(object, key);
	uint64_t n = 0;

	*known = v != NULL && json_to_u64(v, &n) == 0;
	return n;
}

void
ctl_print_age(const struct json_value *s, const char *key)
{
	bool known;
	uint64_t seconds = ctl_number_of(s, key, &known) / 1000;
	char text[32] = "-";

	if (known && seconds < 60)
		snprintf(text, sizeof(text), "%us", (unsigned)seconds);
	else if (known && seconds < 3600)
		snprintf(text, sizeof(text), "%um%02us",
		    (unsigned)(seconds / 60), (unsigned)(seconds % 60));
	else if (known)
		snprintf(text, sizeof(text), "%lluh%02um",
		    (unsigned long long)seconds / 3600,
		    (unsigned)(seconds / 60 % 60));
	printf(" %9s", text);
}

static void
print_time(const struct json_value *o, const char *key, const char *none)
{
	char text[CONF_TIME_CHARS];
	bool known;
	int64_t at = (int64_t)(ctl_number_of(o, key, &known) / 1000);

	ctl_show_time(text, known ? at : 0, none);
	printf("%-20s ", text);
}

void
ctl_print_cpu(const struct json_value *s)
{
	bool known;
	uint64_t ms = ctl_number_of(s, "cpuMs", &known);

	if (known)
		printf(" %8.2fs", (double)ms / 1000);
	else
		printf(" %9s", "-");
}

void
ctl_print_memory(const struct json_value *s)
{
	bool known;
	uint64_t bytes = ctl_number_of(s, "memoryBytes", &known);

	if (known)
		printf(" %7.1fM", (double)bytes / (1 << 20));
	else
		printf(" %8s", "-");
}

void
ctl_print_column(struct slice text, size_t width)
{
	if (text.len == 0)
		text = SLICE("-");
	ctl_print_text(stdout, text);
	for (size_t n = text.len; n < width; n++)
		putchar(' ');
	putchar(' ');
}

void
ctl_print_right(struct slice text, size_t width)
{
	putchar(' ');
	for (size_t n = text.len; n < width; n++)
		putchar(' ');
	ctl_print_text(stdout, text);
}

static void
print_column(const struct json_value *s, const char *key, size_t width)
{
	ctl_print_column(ctl_text_of(s, key), width);
}

static void
print_list(const struct json_value *result)
{
	const struct json_value *sessions = json_get(result, "sessions");

	printf("%-8s %-6s %-12s %-8s %-8s %9s %9s %4s %9s %8s  %s\n", "ID",
	    "NUMBER", "IDENTITY", "TOKEN", "STATE", "AGE", "KEPT", "CMDS",
	    "CPU", "MEMORY", "PEER");
	for (const struct json_value *s = sessions ? sessions->first : NULL;
	     s != NULL; s = s->next) {
		const struct json_value *answers = json_get(s, "answers");

		print_column(s, "id", 8);
		print_column(s, "number", 6);
		print_column(s, "identity", 12);
		print_column(s, "token", 8);
		print_column(s, "state", 8);
		ctl_print_age(s, "ageMs");
		ctl_print_age(s, "keepMs");
		ctl_print_right(ctl_text_of(s, "commands"), 4);
		ctl_print_cpu(s);
		ctl_print_memory(s);
		fputs("  ", stdout);
		ctl_print_text(stdout, ctl_text_of(s, "peer"));
		if (answers != NULL && !answers->boolean)
			fputs("  its runner does not answer", stdout);
		putchar('\n');
	}
}

static void
print_tokens(const struct json_value *result)
{
	const struct json_value *tokens = json_get(result, "tokens");

	printf(
	    "%-20s %-12s %-20s %s\n", "NAME", "IDENTITY", "CREATED", "EXPIRES");
	for (const struct json_value *t = tokens ? tokens->first : NULL;
	     t != NULL; t = t->next) {
		const struct json_value *expired = json_get(t, "expired");

		print_column(t, "name", 20);
		print_column(t, "identity", 12);
		print_time(t, "createdMs", "-");
		print_time(t, "expiresMs", "never");
		puts(expired != NULL && expired->boolean ? "expired" : "");
	}
}

static void
print_refusals(const struct json_value *result)
{
	const struct json_value *all = json_get(result, "refusals");

	printf("%-24s %-12s %-12s %-12s %-30s %s\n", "TIME", "LISTENER",
	    "IDENTITY", "TOKEN", "PEER", "WHY");
	for (const struct json_value *r = all ? all->first : NULL; r != NULL;
	     r = r->next) {
		print_column(r, "time", 24);
		print_column(r, "listener", 12);
		print_column(r, "identity", 12);
		print_column(r, "token", 12);
		print_column(r, "peer", 30);
		ctl_print_text(stdout, ctl_text_of(r, "reason"));
		putchar('\n');
	}
}

static void
print_value(const struct json_value *v)
{
	const char *between = "";

	switch (v->type) {
	case JSON_ARRAY:
	case JSON_OBJECT:
		if (v->first == NULL)
			putchar('-');
		for (const struct json_value *i = v->first; i != NULL;
		     i = i->next) {
			fputs(between, stdout);
			ctl_print_text(stdout, i->key);
			if (v->type == JSON_OBJECT)
				putchar(' ');
			print_value(i);
			between = ", ";
		}
		return;
	case JSON_BOOL:
		fputs(v->boolean ? "yes" : "no", stdout);
		return;
	case JSON_NULL:
		putchar('-');
		return;
	default:
		ctl_print_text(stdout, v->text);
	}
}

/* Prints line by line. */
static void
print_lines(FILE *to, struct slice text)
{
	while (text.len > 0) {
		const char *end = memchr(text.ptr, '\n', text.len);
		size_t n = end ? (size_t)(end - text.ptr) : text.len;

		ctl_print_text(to, (struct slice){ text.ptr, n });
		putc('\n', to);
		n += end != NULL;
		text = (struct slice){ text.ptr + n, text.len - n };
	}
}

static void
print_running(const struct json_value *all)
{
	printf("running:\n%8s %9s  %-20s %s\n", "PID", "AGE", "PROCESS",
	    "COMMAND");
	for (const struct json_value *c = all->first; c != NULL; c = c->next) {
		const struct json_value *cut = json_get(c, "commandCut");

		ctl_print_right(ctl_text_of(c, "pid"), 7);
		ctl_print_age(c, "ageMs");
		fputs("  ", stdout);
		print_column(c, "process", 20);
		ctl_print_text(stdout, ctl_text_of(c, "command"));
		puts(cut != NULL && cut->boolean ? " [...]" : "");
	}
}

static void
print_result(const struct ctl_options *o, const struct json_value *result)
{
	if (strcmp(o->command, "list") == 0)
		print_list(result);
	else if (strcmp(o->command, "tokens") == 0)
		print_tokens(result);
	else if (strcmp(o->command, "explain") == 0)
		print_refusals(result);
	else if (strcmp(o->command, "reload") == 0)
		print_lines(stdout, ctl_text_of(result, "log"));
	else
		for (const struct json_value *v = result->first; v != NULL;
		     v = v->next) {
			if (slice_equal(v->key, SLICE("running")) &&
			    v->type == JSON_ARRAY) {
				print_running(v);
				continue;
			}
			ctl_print_text(stdout, v->key);
			fputs(": ", stdout);
			print_value(v);
			putchar('\n');
		}
}

static int
code_of(const struct json_value *error)
{
	const struct json_value *code = json_get(error, "code");

	if (code == NULL)
		return EXIT_FAILED;
	if (json_is(code, "badRequest"))
		return EXIT_USAGE;
	if (json_is(code, "configuration"))
		return EXIT_CONFIG;
	return json_is(code, "notPermitted") ? EXIT_PERMISSION : EXIT_FAILED;
}

int
ctl_print_error(const struct json_value *error)
{
	struct slice message = ctl_text_of(error, "message");

	if (memchr(message.ptr, '\n', message.len) == NULL)
		fputs("execd ctl: ", stderr);
	print_lines(stderr, message);
	return code_of(error);
}

void
ctl_print_log(const struct json_value *result)
{
	print_lines(stderr, ctl_text_of(result, "log"));
}

/* --- questions ------------------------------------------------------------ */

void
ctl_answer_clear(struct ctl_answer *a)
{
	json_clear(&a->doc);
	buf_clear(&a->line);
}

int
ctl_ask(const struct ctl_options *o, struct ctl_answer *a)
{
	_cleanup_close_ int fd = -1;
	int code = find_socket(o->socket, &fd), err;

	if (code >= 0)
		return code;
	*a = (struct ctl_answer){ .result = NULL };
	buf_init(&a->line, ANSWER_MAX);
	err = ask(fd, o, &a->line);
	if (err < 0) {
		buf_clear(&a->line);
		return tell_no_answer(err);
	}
	err = json_parse(&a->doc, (const char *)a->line.data, a->line.len);
	if (err == 0) {
		a->result = json_get(a->doc.root, "result");
		a->error = json_get(a->doc.root, "error");
	}
	if (a->result != NULL || a->error != NULL)
		return -1;
	fprintf(stderr, "execd ctl: no answer of execd's: %s\n",
	    err < 0 ? a->doc.error : "neither a result nor an error");
	ctl_answer_clear(a);
	return EXIT_FAILED;
}

int
ctl_ask_and_print(const struct ctl_options *o)
{
	struct ctl_answer a;
	int code = ctl_ask(o, &a);

	if (code >= 0)
		return code;
	code = EXIT_STOPPED;
	if (o->json)
		fwrite(a.line.data, 1, a.line.len, stdout);
	else if (a.result != NULL)
		print_result(o, a.result);
	if (a.error != NULL)
		code = o->json ? code_of(a.error) : ctl_print_error(a.error);
	ctl_answer_clear(&a);
	return fflush(stdout) == 0 ? code : EXIT_FAILED;
}

/* One that ends by itself meanwhile is no failure. */
static int
kill_one(const struct ctl_options *o, struct slice number)
{
	char session[64];
	struct ctl_options one = { .socket = o->socket,
		.command = "kill",
		.session = session,
		.reason = o->reason };
	struct ctl_answer a;
	int code;

	snprintf(session, sizeof(session), "session-%.*s", (int)number.len,
	    number.ptr);
	code = ctl_ask(&one, &a);
	if (code >= 0)
		return code;
	code = EXIT_STOPPED;
	if (a.error != NULL &&
	    !json_is(json_get(a.error, "code"), "noSuchSession") &&
	    !json_is(json_get(a.error, "code"), "endingAlready"))
		code = ctl_print_error(a.error);
	else if (a.error == NULL)
		printf("%s: ending\n", session);
	ctl_answer_clear(&a);
	return code;
}

static int
kill_each(const struct ctl_options *o)
{
	struct ctl_options list = { .socket = o->socket, .command = "list" };
	const char *key = o->token != NULL ? "token" : "identity";
	const char *whose = o->token != NULL ? o->token : o->identity;
	const struct json_value *all, *s;
	struct ctl_answer a;
	size_t n = 0;
	int code = ctl_ask(&list, &a);

	if (code >= 0)
		return code;
	code = EXIT_STOPPED;
	all = a.result != NULL ? json_get(a.result, "sessions") : NULL;
	for (s = all ? all->first : NULL; s != NULL; s = s->next)
		if (json_is(json_get(s, key), whose)) {
			int failed = kill_one(o, ctl_text_of(s, "number"));

			code = failed != EXIT_STOPPED ? failed : code;
			n++;
		}
	ctl_answer_clear(&a);
	if (n > 0)
		return code;
	fprintf(stderr, "execd ctl: no session has the %s %s\n", key, whose);
	return EXIT_FAILED;
}

/* Returns how many sessions there are, or -1 if there is nothing to wait for:
 * somebody has undone the drain. */
static int64_t
count_drained(const struct json_value *status)
{
	static const char *const keys[] = { "attached", "detached", "ending" };
	const struct json_value *s = json_get(status, "sessions");
	uint64_t n = 0;
	bool known;

	if (json_is(json_get(status, "state"), "serving"))
		return -1;
	for (size_t i = 0; s != NULL && i < nitems(keys); i++)
		n += ctl_number_of(s, keys[i], &known);
	return (int64_t)n;
}

static int
drain_and_wait(const struct ctl_options *o)
{
	struct ctl_options status = { .socket = o->socket,
		.command = "status" };
	int code = ctl_ask_and_print(o);
	struct ctl_answer a;
	int64_t left = 1;

	while (code == EXIT_STOPPED && left > 0) {
		int asked = ctl_ask(&status, &a);

		if (asked >= 0)
			return asked;
		left = a.result ? count_drained(a.result) : -1;
		ctl_answer_clear(&a);
		if (left > 0)
			sleep(WAIT_S);
	}
	if (left >= 0)
		return code;
	fputs("execd ctl: the drain was undone\n", stderr);
	return EXIT_FAILED;
}

/* --- the program ---------------------------------------------------------- */

static int
kill_several(const struct ctl_options *o)
{
	if (o->words[0] != NULL || (o->identity != NULL) == (o->token != NULL))
		return ctl_usage_error("kill: one of a session, --identity and "
				       "--token",
		    "");
	return o->reason != NULL
		   ? kill_each(o)
		   : ctl_usage_error("kill: --reason is needed", "");
}

int
ctl_main(int argc, char **argv)
{
	struct ctl_options o = { .json = false };
	int code = parse(&o, argc - 1, argv + 1);

	if (code >= 0)
		return code;
	if ((o.since != NULL || o.file != NULL) &&
	    strcmp(o.command, "usage") != 0)
		return ctl_usage_error("--since and --file are for usage", "");
	if ((o.dir != NULL || o.days != NULL) && strcmp(o.command, "ca") != 0)
		return ctl_usage_error("--dir and --days are for ca", "");
	if (strcmp(o.command, "token") == 0)
		return ctl_token(&o);
	if (strcmp(o.command, "ca") == 0)
		return ctl_ca(&o);
	if (strcmp(o.command, "usage") == 0)
		return ctl_usage(&o);
	if (strcmp(o.command, "top") == 0)
		return ctl_top(&o);
	if (strcmp(o.command, "lock") == 0 || strcmp(o.command, "unlock") == 0)
		return ctl_lock(&o);
	if (strcmp(o.command, "kill") == 0 &&
	    (o.identity != NULL || o.token != NULL))
		return kill_several(&o);
	if (o.wait && strcmp(o.command, "drain") != 0)
		return ctl_usage_error("--wait is for drain", "");
	o.session = o.words[0];
	if (o.wait)
		return drain_and_wait(&o);
	return ctl_ask_and_print(&o);
}
