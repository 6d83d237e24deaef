/* SPDX-License-Identifier: ISC */
/*
 * execd doctor: prints a line for each layer of a sandbox, and what to change
 * where one is missing.
 */
#include "broker_main.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "exit_code.h"
#include "landlock.h"
#include "path_map.h"
#include "programs.h"
#include "sandbox_limits.h"
#include "spawn_client.h"
#include "util.h"

/* A probe that waits for a program which hangs is ended. */
#define PROBE_SECONDS 20

/* Returns the errno that the child ended with. */
static int
probe(const struct layer *l, const struct patient *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(PROBE_SECONDS);
		l->probe(p);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	if (pid < 0)
		return errno;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void
print(const struct layer *l, int err)
{
	if (err != 0)
		printf("%-8s %s: %s; %s\n", l->needed ? "MISSING" : "without",
		    l->name, strerror(err), l->advice(err));
	else if (l->probe == doctor_try_landlock)
		printf("%-8s %s, ABI %d\n", "ok", l->name, landlock_abi());
	else
		printf("%-8s %s\n", "ok", l->name);
}

/* Says what remains without namespaces if the operator permits it. */
static void
print_landlock_only(void)
{
	int abi = landlock_abi();

	if (abi >= SANDBOX_LANDLOCK_ONLY_ABI)
		printf("ok       Landlock and seccomp alone, for policies "
		       "that only say what is writable; not used unless "
		       "[sandbox] says landlock-only = yes; commands then see "
		       "the processes of their user, and read whatever he "
		       "may\n");
	else
		printf("without  Landlock and seccomp alone (landlock-only): "
		       "there is ABI %d; Linux 6.2 or newer has ABI %d\n",
		    abi > 0 ? abi : 0, SANDBOX_LANDLOCK_ONLY_ABI);
}

/* A client's path whose directory is missing is an error when it is used. */
static void
print_map(const struct path_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct path_map_root *root = &map->roots[i];
		struct stat st;
		int err = stat(root->server, &st) < 0 ? errno
			  : S_ISDIR(st.st_mode)	      ? 0
						      : ENOTDIR;

		if (err == 0)
			printf("ok       path-map: %s is %s\n", root->client,
			    root->server);
		else
			printf("without  path-map: %s is %s: %s; make that "
			       "directory, or change the map\n",
			    root->client, root->server, strerror(err));
	}
}

static int
find_patient(struct patient *p, const char *user)
{
	const struct passwd *pw;

	errno = 0;
	pw = p->root ? getpwnam(user != NULL ? user : "nobody")
		     : getpwuid(geteuid());
	if (pw == NULL)
		return errno != 0 ? -errno : -ENOENT;
	p->name = xstrdup(pw->pw_name);
	p->uid = pw->pw_uid;
	p->gid = pw->pw_gid;
	return p->root && p->uid == 0 ? -EPERM : 0;
}

/* Tries the user namespace that root makes for all sandboxes of a user. */
static void
try_userns(struct patient *p)
{
	static const char name[] = "user namespace made by root";
	const char *step;

	p->userns = userns_open(
	    p->programs->fds[INSTALLED_RUNNER], p->uid, p->gid, &step);
	if (p->userns >= 0)
		printf("%-8s %s\n", "ok", name);
	else
		printf("%-8s %s: %s: %s; the runner tries to make one itself\n",
		    "without", name, step, strerror(-p->userns));
}

/* Only root makes namespaces for a session. Tells whether it can. */
static bool
try_session(const struct patient *p)
{
	int err = probe(&doctor_session, p);

	print(&doctor_session, err);
	return err == 0;
}

int
doctor_run(const struct programs *programs, const char *user,
    const struct path_map *map)
{
	struct patient p = {
		.programs = programs, .root = geteuid() == 0, .userns = -1
	};
	int code = EXIT_STOPPED, err = find_patient(&p, user);
	bool no_user = false, no_proc = false;

	if (err < 0) {
		fprintf(stderr, "execd: user %s: %s\n",
		    user != NULL ? user : "nobody", strerror(-err));
		return EXIT_USAGE;
	}
	printf("What execd, started as %s, can enforce on commands of %s:\n",
	    p.root ? "root" : p.name, p.name);
	fflush(stdout);
	if (p.root && !try_session(&p))
		code = EXIT_UNENFORCEABLE;
	if (p.root)
		try_userns(&p);
	fflush(stdout);
	for (size_t i = 0; i < doctor_layers_count; i++) {
		if (no_user && doctor_layers[i].inside) {
			printf("%-8s %s: there is no user namespace; see "
			       "above\n",
			    doctor_layers[i].needed ? "MISSING" : "without",
			    doctor_layers[i].name);
			continue;
		}
		err = probe(&doctor_layers[i], &p);
		no_user |=
		    err != 0 && doctor_layers[i].probe == doctor_try_user;
		no_proc |=
		    err == EPERM && doctor_layers[i].probe == doctor_try_pid;
		print(&doctor_layers[i], err);
		fflush(stdout);
		if (err != 0 && doctor_layers[i].needed)
			code = EXIT_UNENFORCEABLE;
	}
	if ((no_user || no_proc) && !p.root)
		print_landlock_only();
	print_map(map);
	free(p.name);
	return code;
}
