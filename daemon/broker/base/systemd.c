/* SPDX-License-Identifier: ISC */
#include "systemd.h"

#include <sys/un.h>

#include "control.h"

/*
 * Tells systemd the state of execd.
 */

static struct sockaddr_un address;
static socklen_t address_len;
static int own = -1;	       /* the serving broker cannot make sockets */
static int64_t alive_every_ms; /* 0: never */
static int64_t alive_at_ms;

/* Sends twice as often as systemd requires. */
static void
take_watchdog(void)
{
	const char *usec = getenv("WATCHDOG_USEC"),
		   *pid = getenv("WATCHDOG_PID");

	if (usec != NULL && (pid == NULL || atoi(pid) == getpid()))
		alive_every_ms = atoll(usec) / 2000;
	if (usec != NULL && alive_every_ms <= 0)
		alive_every_ms = 0;
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void
notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || len >= sizeof(address.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return;
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsetenv("NOTIFY_SOCKET");
	take_watchdog();
}

/* How often the state is checked while something does not answer. */
#define ILL_MS 500

int64_t
notify_alive(int64_t now, bool well)
{
	if (alive_every_ms == 0)
		return -1;
	if (now >= alive_at_ms && !well)
		return now + ILL_MS;
	if (now >= alive_at_ms) {
		notify("WATCHDOG=1");
		alive_at_ms = now + alive_every_ms;
	}
	return alive_at_ms;
}

void
notify(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (address_len == 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (sendto(own, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		(const struct sockaddr *)&address, address_len) < 0)
		log_warn(-errno, "telling systemd %s", text);
}

/*
 * Sockets that systemd bound and passes to execd.
 */

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

static char *names[CONTROL_LISTENERS_MAX];
static int count;

static int
number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : 0;
}

void
activation_init(void)
{
	const char *text = getenv("LISTEN_FDNAMES");
	_cleanup_free_ char *copy = xstrdup(text ? text : "");
	char *rest = copy, *name;

	/* They are for another process if it is not our pid. */
	if (number_of("LISTEN_PID") == getpid())
		count = number_of("LISTEN_FDS");
	if (count > CONTROL_LISTENERS_MAX)
		log_warn(0, "systemd gives %d sockets, the first %d are known",
		    count, CONTROL_LISTENERS_MAX);
	if (count < 0 || count > CONTROL_LISTENERS_MAX)
		count = count < 0 ? 0 : CONTROL_LISTENERS_MAX;
	for (int i = 0; i < count; i++) {
		name = strsep(&rest, ":");
		names[i] = xstrdup(name && *name ? name : "unknown");
		fcntl(FIRST_FD + i, F_SETFD, FD_CLOEXEC);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

int
activation_find(const char *name)
{
	for (int i = 0; i < count; i++) {
		int fd;

		if (strcmp(names[i], name) != 0)
			continue;
		fd = fcntl(FIRST_FD + i, F_DUPFD_CLOEXEC, 4);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}
