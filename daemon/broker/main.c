/* SPDX-License-Identifier: ISC */
/*
 * execd-broker. Root's execd starts it and passes its arguments on (execd(8)).
 * Everything that can fail because of the operator fails here, before the first
 * client.
 */
#include <pwd.h>

#include <openssl/evp.h>

#include "base.h"
#include "broker_health.h"
#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "config.h"
#include "crypto_memory.h"
#include "ctl_socket.h"
#include "descriptors.h"
#include "dispose.h"
#include "doctor_programs.h"
#include "drop.h"
#include "exit_code.h"
#include "frontend_child.h"
#include "log_output.h"
#include "programs.h"
#include "seqpacket.h"
#include "session_registry.h"
#include "signals.h"
#include "spawn_client.h"
#include "systemd.h"
#include "task.h"

#if EXECD_SANITIZED
/* The leak checker attaches to its own process, which the filter forbids. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static int
find_frontend_user(const struct broker *m, struct control_seal *seal)
{
	const struct passwd *pw;

	if (!m->root)
		return 0;
	pw = getpwnam(EXECD_USER);
	if (pw == NULL || pw->pw_uid == 0) {
		fputs("execd: the network front-end needs a user of its own, "
		      "and there is no `" EXECD_USER "`; create it with\n"
		      "  useradd --system --no-create-home --home-dir "
		      "/nonexistent --shell /usr/sbin/nologin " EXECD_USER "\n",
		    stderr);
		return EXIT_CONFIG;
	}
	seal->uid = pw->pw_uid;
	seal->gid = pw->pw_gid;
	return 0;
}

/* Whoever can connect runs commands as the session's user. The operator must
 * permit this explicitly, unless only the same user of this machine can
 * connect. A configuration file is explicit. */
static int
check_authentication(const struct broker *m)
{
	for (size_t i = 0; i < m->conf->nlisteners; i++) {
		const struct listener *l = m->conf->listeners[i];

		if (l->allow_unauthenticated == NULL || m->conf->path != NULL ||
		    m->options->allow_unauthenticated ||
		    l->kind == LISTENER_STDIO || (l->loopback && !m->root))
			continue;
		fprintf(stderr,
		    "execd: %s: whoever connects there would run "
		    "commands as %s; say --allow-unauthenticated if that is "
		    "meant\n",
		    l->url, l->allow_unauthenticated);
		return EXIT_USAGE;
	}
	return 0;
}

static int
open_listeners(struct broker *m)
{
	int code = 0;

	for (size_t i = 0; i < m->conf->nlisteners && code == 0; i++) {
		struct listener *l = m->conf->listeners[i];

		code = listener_open(l);
		m->stdio |= l->kind == LISTENER_STDIO;
	}
	m->replaceable = !m->stdio && !m->options->exit_on_stdin_close;
	return code != 0 ? code : ctl_open(m->conf);
}

/* The one client is whom it serves, one that goes, and one that watches. */
#define STDIO_PLACES 3

/* The log goes where the client's user reads: to a terminal, by way of ssh.
 * What goes well is not worth a line there. */
static void
prepare_stdio(struct broker *m)
{
	struct limits *l = &m->conf->limits;
	bool stdio = false;

	for (size_t i = 0; i < m->conf->nlisteners; i++)
		stdio |= m->conf->listeners[i]->scheme == ADDRESS_STDIO;
	if (!stdio)
		return;
	if (l->max_sessions > STDIO_PLACES)
		l->max_sessions = STDIO_PLACES;
	if (l->frontend.max_connections > STDIO_PLACES)
		l->frontend.max_connections = STDIO_PLACES;
	if (!m->options->debug)
		log_set_level(LOG_LEVEL_WARN);
}

static int
load_configuration(struct broker *m)
{
	struct buf text;
	int code;

	m->conf = conf_load(m->options, &code);
	if (m->conf == NULL)
		return code;
	prepare_stdio(m);
	if (!m->options->print)
		return code;
	conf_fill_sandbox(m->conf);
	m->conf->limits.max_kept_sessions = session_keep_places(m);
	buf_init(&text, SIZE_MAX);
	conf_print(m->conf, &text);
	fwrite(text.data, 1, text.len, stdout);
	buf_clear(&text);
	return 0;
}

static void
raise_descriptors(const struct broker *m)
{
	uint32_t sessions = m->conf->limits.max_sessions;
	uint64_t wanted = session_limit_wanted(sessions);
	uint64_t have = descriptors_raise(wanted);

	if (have < wanted)
		log_warn(0,
		    "%llu descriptors are allowed, %llu would be needed for "
		    "%u sessions",
		    (unsigned long long)have, (unsigned long long)wanted,
		    sessions);
}

/* With stdio, the client is on descriptors 0 and 1. From here on, only the
 * front-end has copies of them. */
static int
detach_stdio(const struct broker *m)
{
	_cleanup_close_ int null = -1;

	if (!m->stdio)
		return 0;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0) {
		fprintf(stderr, "execd: /dev/null: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return 0;
}

/* A number that is the same for every run on this machine. It is a hash,
 * because machine-id(5) says that the machine id itself must not be shown. */
static void
make_provider_id(struct broker *m)
{
	char text[256] = "execd provider ";
	size_t at = strlen(text);
	unsigned char digest[32];
	_cleanup_close_ int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text + at, 64) <= 0)
		gethostname(text + at, 64);
	EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
	at =
	    (size_t)snprintf(m->provider_id, sizeof(m->provider_id), "sha256:");
	for (size_t i = 0; i < sizeof(digest); i++)
		at += (size_t)snprintf(m->provider_id + at,
		    sizeof(m->provider_id) - at, "%02x", digest[i]);
}

/* Reads the words after `execd doctor`. Returns 0 or EXIT_USAGE. */
static int
parse_doctor(int argc, char **argv, const char **user, struct path_map *map)
{
	char why[PATH_MAP_WHY_MAX];
	int i;

	for (i = 2; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--user") == 0) {
			*user = argv[i + 1];
		} else if (strcmp(argv[i], "--path-map") != 0) {
			break;
		} else if (path_map_add(map, argv[i + 1], why) < 0) {
			fprintf(stderr, "execd: --path-map: %s\n", why);
			return EXIT_USAGE;
		}
	}
	if (i == argc)
		return 0;
	fprintf(
	    stderr, "usage: execd doctor [--user NAME] [--path-map MAP]...\n");
	return EXIT_USAGE;
}

/* Runs `execd doctor [--user NAME] [--path-map MAP]...`. */
static int
run_doctor(int argc, char **argv)
{
	struct path_map map = { .count = 0 };
	const char *user = NULL;
	struct programs programs;
	char missing[PATH_MAX];
	int err;

	if (parse_doctor(argc, argv, &user, &map) != 0)
		return EXIT_USAGE;
	log_init("execd", LOG_LEVEL_INFO);
	err = programs_open(&programs, missing);
	if (err == 0) /* root's alone */
		err = task_init(missing);
	if (err < 0) {
		fprintf(stderr, "execd: %s: %s\n", missing, strerror(-err));
		return EXIT_FAILED;
	}
	err = doctor_run(&programs, user, &map);
	path_map_clear(&map);
	return err;
}

/* Finds root's execd: it started us, or it has a socket. */
static int
find_root(const struct broker *m)
{
	const char *path = m->options->sessions;
	bool started = spawn_find();
	int err;

	if (started != (path == NULL)) {
		fputs(started ? "execd: --sessions is an option of "
				"execd-broker\n"
			      : "execd-broker: execd starts this program; "
				"systemd passes --sessions PATH\n",
		    stderr);
		return EXIT_USAGE;
	}
	err = started ? 0 : spawn_connect(path);
	if (err == 0)
		return 0;
	fprintf(stderr, "execd: --sessions %s: %s\n", path, strerror(-err));
	return EXIT_FAILED;
}

/* Reads the current configuration, to find out what changes. Returns NULL if it
 * cannot be read any more. Its errors were logged when it was new. */
static struct conf *
load_past(const struct broker *m)
{
	enum log_level level = log_get_level();
	struct conf *past;
	int code;

	log_set_level(LOG_LEVEL_NOTHING);
	spawn_past(true);
	past = conf_load(m->options, &code);
	spawn_past(false);
	log_set_level(level);
	return past;
}

static void
log_changes(const struct conf *past, const struct conf *now)
{
	if (past == NULL)
		log_info("reload: what changed is not known");
	else if (conf_log_changes(past, now) == 0)
		/* Nobody knows the names of files that are gone. */
		log_info("reload: nothing changed%s",
		    now->has_parts ? " in the files that there are" : "");
}

/* With --sessions, the sessions have a service of their own, which goes on. */
static int
check_idle(const struct broker *m)
{
	if (m->options->sessions == NULL ||
	    m->conf->limits.exit_when_idle_ms == 0)
		return 0;
	fputs("execd: exit-when-idle is for an execd that is one job, and not "
	      "for --sessions\n",
	    stderr);
	return EXIT_CONFIG;
}

/* Finds every error of the configuration before root seals the list. */
static int
make_list(struct broker *m, struct control_seal *seal)
{
	int code;

	if ((code = load_configuration(m)) != 0 ||
	    (code = find_frontend_user(m, seal)) != 0)
		return code;
	if ((code = check_idle(m)) != 0)
		return code;
	if (m->options->check)
		return 0;
	if (conf_check_groups(m->conf) < 0)
		return EXIT_UNENFORCEABLE;
	seal->all_memory_max_bytes = m->conf->limits.all.memory_bytes;
	seal->all_tasks_max = m->conf->limits.all.tasks;
	if ((code = open_listeners(m)) != 0)
		return code;
	return check_authentication(m);
}

/* Another broker serves until the list is sealed, and goes on if this broker
 * fails. */
static int
list_or_refuse(struct broker *m, struct control_seal *seal)
{
	int code = make_list(m, seal);

	if (code == 0 && m->conf->path != NULL)
		return 0;
	if (code == 0)
		log_info("reload: there is no configuration file");
	else
		log_error(0, "reload: refused, the configuration stays as it "
			     "was");
	return code != 0 ? code : EXIT_CONFIG;
}

/* What the log says of the reload, for whoever asked for it. */
static struct buf told;

static void
keep_told(const char *line, size_t len)
{
	buf_put(&told, line, len);
}

static void
tell_reloaded(int code)
{
	if (told.failed) {
		told.failed = false;
		told.limit = SIZE_MAX;
		buf_puts(&told, "and more: see the log\n");
	}
	buf_put_u8(&told, '\0');
	spawn_tell_reloaded(code, (const char *)told.data);
	buf_clear(&told);
}

/* systemd looks for the unit of who wrote a message when it reads it. What a
 * process wrote that has ended is lost, and a unit that said that it reloads
 * and never that it is ready is `reloading' for ever. So a broker that refuses
 * says neither; this one stays, and says READY=1 when it serves. */
static void
tell_systemd(void)
{
	notify("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now_ms() * 1000);
}

static int
take_over(struct broker *m, struct control_seal *seal)
{
	struct conf *past = load_past(m);
	int code;

	buf_init(&told, CTL_TOLD_MAX);
	log_copy_to(keep_told, false);
	code = list_or_refuse(m, seal);
	/* Who asked hears of it before the list is sealed, and the log when
	 * this broker serves. */
	log_copy_to(keep_told, true);
	if (code == 0)
		log_changes(past, m->conf);
	log_copy_to(NULL, false);
	tell_reloaded(code);
	if (code == 0) {
		tell_systemd();
		spawn_seal(m->conf->identities, m->conf->nidentities, seal);
		log_changes(past, m->conf);
	}
	conf_free(past);
	return code;
}

/* Everything from the first message to root until there may be clients. */
static int
begin(struct broker *m)
{
	struct control_seal seal = { .debug = m->options->debug };
	int code =
	    spawn_begin(m->options->check ? BEGIN_CHECK : keeper_flags());

	if (code != 0)
		return code;
	/* The log of a running server may have no reader. A broker that waited
	 * for one would keep the next broker from serving. */
	if (spawn_has_served())
		log_never_block();
	m->root = spawn_is_root();
	if (spawn_is_reload() && !m->options->check) {
		code = take_over(m, &seal);
	} else {
		code = make_list(m, &seal);
		if (code == 0)
			spawn_seal(
			    m->conf->identities, m->conf->nidentities, &seal);
	}
	/* Whoever reads standard output got the URLs from an earlier broker. */
	m->announced = spawn_has_served() &&
		       (m->options->sessions == NULL || spawn_is_reload());
	return code != 0 ? code : detach_stdio(m);
}

static int
serve(struct broker *m)
{
	int code;

	drain_init(m);
	session_adopt_all(m);
	ctl_serve(m);
	code = broker_run(m);
	ctl_leave();
	log_info("stopped");
	return code;
}

/* Log lines that nobody read. The next broker logs their number. */
static void
leave_lost_lines(void)
{
	if (!log_flush())
		spawn_keeps()->lost_lines = log_take_undelivered();
}

static void
take_lost_lines(void)
{
	log_add_lost(spawn_keeps()->lost_lines);
	broker.counts.log_lost = spawn_keeps()->lost_lines;
	spawn_keeps()->lost_lines = 0;
}

static int
prepare(struct broker *m)
{
	int err;

	/* Errors until now were printed for the user who started execd. */
	log_never_block();
	take_lost_lines();
	conf_warn(m->conf);
	conf_tell_proxies(m->conf);
	if (!spawn_is_reload())
		conf_tell_ceilings(m->conf);
	if (!spawn_has_served()) {
		group_limits_log(m->root);
		if (m->root)
			doctor_programs_warn();
	}
	raise_descriptors(m);
	make_provider_id(m);
	watch_init(m->root);
	if (spawn_watch() < 0)
		return EXIT_FAILED;
	/* The filter is loaded before the broker hears a client, a runner or an
	 * operator. */
	err = broker_policy_load();
	if (err < 0)
		log_error(err, "confining the broker");
	return err < 0 ? EXIT_FAILED : 0;
}

/*
 * Root's execd executes this program as root. So no process of the broker's
 * user can look into it: a program that root executes is not readable for that
 * user, and from here on the process is hidden (drop.h).
 */
static void
become_broker(void)
{
	const char *user = getenv(BROKER_USER_VARIABLE);

	if (geteuid() == 0 && getenv(SPAWN_CHANNEL_VARIABLE) != NULL) {
		drop_to_given(user != NULL ? user : "");
		/* The drop cleared this. If root's execd ended meanwhile, it
		 * has closed the channel. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	unsetenv(BROKER_USER_VARIABLE);
}

int
main(int argc, char **argv)
{
	static struct options options;
	static struct frontend frontend;
	static struct helpers helpers;
	static struct registry sessions;
	struct broker *m = &broker;
	int code;

	drop_visibility();
	become_broker();
	if (argc == 4 && strcmp(argv[1], "--account") == 0)
		return account_main(argv[2], argv[3]);
	/* A program that is executed by descriptor is named after the
	 * descriptor. */
	prctl(PR_SET_NAME, "execd-broker");
	crypto_memory_init_secret();
	if (argc > 1 && strcmp(argv[1], "doctor") == 0)
		return run_doctor(argc, argv);
	if (argc > 1 && strcmp(argv[1], "ctl") == 0)
		return ctl_main(argc, argv);
	code = options_parse(&options, argc, argv);
	if (code >= 0)
		return code;
	if (options.sessions != NULL && !options.check && !keeper_found())
		return keeper_run(argv);
	signals_ignore_unused(true);
	log_init(
	    "execd-broker", options.debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	seqpacket_set_drop(dispose);
	m->options = &options;
	m->counts.begun_s = (uint64_t)time(NULL);
	activation_init();
	notify_init();
	m->on = &broker_events;
	m->frontend = &frontend;
	m->helpers = &helpers;
	m->sessions = &sessions;
	frontend_init(m->frontend);
	helpers_init(m->helpers);
	log_name_by_journal();
	if ((code = find_root(m)) != 0 || (code = begin(m)) != 0)
		return code;
	if (options.check) {
		if (!options.print) {
			conf_warn(m->conf);
			conf_tell_ceilings(m->conf);
			conf_tell_proxies(m->conf);
		}
		return EXIT_STOPPED;
	}
	if ((code = prepare(m)) != 0)
		return code;
	code = serve(m);
	if (m->leaving)
		leave_lost_lines();
	else if (options.sessions == NULL)
		spawn_stop(code);
	else
		drain_forget_times(); /* the next one is to serve */
	return code;
}
