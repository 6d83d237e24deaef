/* SPDX-License-Identifier: ISC */
/*
 * placeholder: made, shared, removed by the last user or after a killed one,
 * and never anybody's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "placeholder.h"
#include "sandbox_message.h"
#include "util.h"

static char dir[64], place[80], lists[80], git[128], aws[128], secret[128];
static char step[SANDBOX_STEP_MAX];

static int
make_place(void **state)
{
	int fd;

	snprintf(dir, sizeof(dir), "/tmp/execd-placeholder-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(place, sizeof(place), "%s/w", dir);
	snprintf(lists, sizeof(lists), "%s/lists", dir);
	snprintf(git, sizeof(git), "%s/.git", place);
	snprintf(aws, sizeof(aws), "%s/.aws", place);
	snprintf(secret, sizeof(secret), "%s/secret", place);
	if (mkdir(place, 0700) < 0 || mkdir(lists, 0700) < 0)
		return -1;
	if (dup2(STDIN_FILENO, CONTROL_FD) < 0)
		return -1;
	fd = open(lists, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || (fd != PLACEHOLDERS_FD &&
			  (dup2(fd, PLACEHOLDERS_FD) < 0 || close(fd) < 0)))
		return -1;
	placeholders_begin(false);
	return placeholders_lists() == PLACEHOLDERS_FD ? 0 : -1;
}

/* Fails when a test left something. */
static int
remove_place(void **state)
{
	return rmdir(place) < 0 || rmdir(lists) < 0 || rmdir(dir) < 0;
}

static struct plan_mount mounts_of_two[] = {
	{ .kind = PLAN_PLACEHOLDER_DIRECTORY, .path = git },
	{ .kind = PLAN_READ, .path = dir },
	{ .kind = PLAN_PLACEHOLDER_FILE, .path = secret },
};
static const struct plan two = { .mounts = mounts_of_two, .count = 3 };
static struct plan_mount mounts_of_other[] = {
	{ .kind = PLAN_PLACEHOLDER_DIRECTORY, .path = aws },
	{ .kind = PLAN_PLACEHOLDER_DIRECTORY, .path = git },
};
static const struct plan other = { .mounts = mounts_of_other, .count = 2 };

static bool
is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool
is_placeholder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && placeholder_is(AT_FDCWD, path, &st);
}

static void
test_made_and_removed(void **state)
{
	struct placeholders p;
	struct stat st;

	umask(022);
	placeholders_init(&p, &two);
	assert_int_equal(p.count, 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(placeholders_take(&p, step), 0);
		assert_int_equal(lstat(git, &st), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0755);
		assert_int_equal(p.all[0].seen.inode, st.st_ino);
		assert_int_equal(lstat(secret, &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0644);
		assert_true(is_placeholder(git) && is_placeholder(secret));
		assert_false(is_placeholder(place));
		placeholders_leave(&p);
		assert_false(is_there(git) || is_there(secret));
		placeholders_leave(&p); /* nothing to leave */
	}
	placeholders_clear(&p);
}

/* The last user removes them all, and nobody covers anew what is the same. */
static void
test_shared(void **state)
{
	struct placeholders a, b;

	placeholders_init(&a, &two);
	placeholders_init(&b, &other);
	assert_int_equal(placeholders_take(&a, step), 0);
	a.all[0].covered = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(placeholders_take(&b, step), 0);
		assert_int_equal(b.all[1].seen.inode, a.all[0].seen.inode);
		assert_int_equal(b.all[1].covered, i > 0);
		b.all[1].covered = true;
		placeholders_leave(&b);
		assert_true(is_there(aws) && is_there(git));
	}
	placeholders_leave(&a);
	assert_false(is_there(aws) || is_there(git) || is_there(secret));
	assert_int_equal(placeholders_take(&a, step), 0);
	assert_false(a.all[0].covered);
	placeholders_clear(&a);
	placeholders_clear(&b);
}

static void
test_match(void **state)
{
	struct plan_mount mounts[nitems(mounts_of_two)];
	const struct plan now = { .mounts = mounts, .count = nitems(mounts) };
	struct placeholders p;

	memcpy(mounts, mounts_of_two, sizeof(mounts));
	placeholders_init(&p, &two);
	assert_true(placeholders_match(&p, &now));
	assert_int_equal(placeholders_take(&p, step), 0);
	assert_false(placeholders_match(&p, &now)); /* they were missing then */
	mounts[0].seen = p.all[0].seen;
	mounts[2].seen = p.all[1].seen;
	assert_true(placeholders_match(&p, &now));
	mounts[2].seen.inode++;
	assert_false(placeholders_match(&p, &now));
	placeholders_clear(&p);
}

static void
sh(const char *script)
{
	char text[512];

	snprintf(text, sizeof(text), "cd %s && %s", place, script);
	assert_int_equal(system(text), 0);
}

/* While they are in use, and after a user was killed: see below. */
static const char *const changes[] = {
	"echo x > secret; touch .git/x",
	"chmod 700 .git; chmod 600 secret",
	"rmdir .git; mkdir .git; rm secret; ln -s x secret",
	"rmdir .git; touch .git; ln secret more",
	"mv .git g; mv g .git; mv secret s; : > secret; rm s",
};

static void
test_what_somebody_changed_stays(void **state)
{
	for (size_t i = 0; i < nitems(changes); i++) {
		const struct timespec tick = { .tv_nsec = 20000000 };
		struct placeholders p;

		placeholders_init(&p, &two);
		assert_int_equal(placeholders_take(&p, step), 0);
		nanosleep(&tick, NULL); /* of the clock of files */
		sh(changes[i]);
		assert_false(is_placeholder(git) || is_placeholder(secret));
		placeholders_clear(&p);
		assert_true(is_there(git) && is_there(secret));
		sh("rm -rf .git secret more");
	}
}

/* A directory of the user's that looks the same. */
static void
test_own_directories(void **state)
{
	struct placeholders p;

	assert_int_equal(mkdir(git, 0755), 0);
	assert_false(is_placeholder(git));
	placeholders_init(&p, &other);
	sleep(1); /* what is made within a second is a placeholder's, perhaps */
	assert_int_equal(placeholders_take(&p, step), 0);
	assert_false(is_placeholder(git));
	assert_true(is_placeholder(aws));
	placeholders_clear(&p);
	assert_true(is_there(git));
	assert_false(is_there(aws));
	assert_int_equal(rmdir(git), 0);
}

/* Runs in a process of its own, which is killed. */
static void
kill_while(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		act();
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
take_two(void)
{
	static struct placeholders p;

	placeholders_init(&p, &two);
	if (placeholders_take(&p, step) < 0)
		_exit(1);
}

static void
clean(void)
{
	lseek(PLACEHOLDERS_FD, 0, SEEK_SET); /* each runner has its own */
	placeholders_clean();
	while (wait(NULL) > 0)
		continue;
}

static void
test_what_a_killed_user_left(void **state)
{
	const struct timespec tick = { .tv_nsec = 20000000 };

	kill_while(take_two);
	assert_true(is_placeholder(git) && is_placeholder(secret));
	clean();
	assert_false(is_there(git) || is_there(secret));
	for (size_t i = 0; i < nitems(changes); i++) {
		kill_while(take_two);
		nanosleep(&tick, NULL);
		sh(changes[i]);
		clean();
		assert_true(is_there(git) && is_there(secret));
		sh("rm -rf .git secret more");
	}
	kill_while(take_two);
	sh("cd .. && mkdir m && mv w m && mkdir w"); /* not found */
	clean();
	sh("cd .. && rm m/w/secret && rmdir m/w/.git m/w m");
}

/* As it is between the first line and the second. */
static void
make_unfinished(int64_t seconds_ago)
{
	const struct timespec t = { .tv_sec = time(NULL) - seconds_ago };
	char path[200], text[400];
	struct stat st;
	int fd, n;

	assert_int_equal(stat(place, &st), 0);
	snprintf(path, sizeof(path), "%s/%llx-%llx", lists,
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	n = snprintf(text, sizeof(text), "%s%c0 %lld 0 .git%c0 %lld 0 .aws",
	    place, 0, (long long)t.tv_sec, 0, (long long)t.tv_sec);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, text, (size_t)n + 1), n + 1);
	close(fd);
	assert_int_equal(mkdir(git, 0755), 0);
}

static void
test_killed_in_between(void **state)
{
	struct timespec t;

	do /* both times lie in the same second */
		clock_gettime(CLOCK_REALTIME, &t);
	while (t.tv_nsec > 500000000);
	make_unfinished(0);
	assert_true(is_placeholder(git));
	clean();
	assert_false(is_there(git));
	make_unfinished(2); /* a directory that somebody made later */
	assert_false(is_placeholder(git));
	clean();
	assert_int_equal(rmdir(git), 0);
}

/* Whoever opens a placeholder can hold every lock on it that there is. */
static void
test_locks_of_others(void **state)
{
	struct flock lock = { .l_type = F_RDLCK };
	struct placeholders p;
	int d, f;

	placeholders_init(&p, &two);
	assert_int_equal(placeholders_take(&p, step), 0);
	d = open(git, O_RDONLY | O_DIRECTORY);
	f = open(secret, O_RDONLY);
	assert_int_equal(flock(d, LOCK_EX), 0);
	assert_int_equal(flock(f, LOCK_EX), 0);
	assert_int_equal(fcntl(f, F_OFD_SETLK, &lock), 0);
	placeholders_leave(&p);
	assert_false(is_there(git) || is_there(secret));
	assert_int_equal(placeholders_take(&p, step), 0);
	placeholders_clear(&p);
	close(d);
	close(f);
}

/* Only another program of the user's own can do that; nobody waits for it. */
static void
test_a_list_that_is_locked(void **state)
{
	struct placeholders p;
	char path[200];
	struct stat st;
	int fd;

	assert_int_equal(stat(place, &st), 0);
	snprintf(path, sizeof(path), "%s/%llx-%llx", lists,
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	placeholders_init(&p, &two);
	assert_int_equal(placeholders_take(&p, step), -EBUSY);
	assert_non_null(strstr(step, git));
	assert_non_null(strstr(step, strerror(EBUSY)));
	close(fd);
	assert_int_equal(placeholders_take(&p, step), 0);
	placeholders_clear(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_and_removed),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_what_somebody_changed_stays),
		cmocka_unit_test(test_own_directories),
		cmocka_unit_test(test_what_a_killed_user_left),
		cmocka_unit_test(test_killed_in_between),
		cmocka_unit_test(test_locks_of_others),
		cmocka_unit_test(test_a_list_that_is_locked),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
