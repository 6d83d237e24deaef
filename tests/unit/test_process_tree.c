/* SPDX-License-Identifier: ISC */
/*
 * process_tree: who belongs to a command, wherever it went, and that nobody
 * else does.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process_tree.h"

static int
send_to(pid_t leader, uint64_t mark, int sig, enum process_target target)
{
	const struct process_tree t = { leader, mark, 0 };

	return process_tree_signal(&t, sig, target);
}

/*
 * leader (a session) -> member (its group), other (a group of its own), far (a
 * session of its own) -> near (in that one). Each writes one byte when it
 * is where it belongs, and waits for ever.
 */
static void __attribute__((noreturn)) rest(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void __attribute__((noreturn)) family(int fd)
{
	setsid();
	if (fork() == 0)
		rest(fd);
	if (fork() == 0) {
		setpgid(0, 0);
		rest(fd);
	}
	if (fork() == 0) {
		setsid();
		if (fork() == 0)
			rest(fd);
		rest(fd);
	}
	rest(fd);
}

#define FAMILY 5

static pid_t
start_family(void)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0)
		family(fds[1]);
	close(fds[1]);
	for (int i = 0; i < FAMILY; i++)
		assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static void
end_family(pid_t leader)
{
	int status;

	assert_int_equal(send_to(leader, 0, SIGKILL, PROCESS_TREE), FAMILY);
	assert_int_equal(waitpid(leader, &status, 0), leader);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* They are dead when the last of them is. */
	while (send_to(leader, 0, 0, PROCESS_TREE) > 0)
		continue;
}

/* Signal 0 counts without doing anything. */
static void
test_members(void **state)
{
	pid_t a = start_family(), b = start_family();

	assert_int_equal(send_to(a, 0, 0, PROCESS_GROUP), 2);
	assert_int_equal(send_to(a, 0, 0, PROCESS_TREE), FAMILY);
	end_family(a);
	assert_int_equal(send_to(a, 0, 0, PROCESS_TREE), 0);
	assert_int_equal(send_to(b, 0, 0, PROCESS_TREE), FAMILY);
	end_family(b);
}

/* The group and the session outlive who led them. */
static void
test_without_leader(void **state)
{
	pid_t pid;
	int fds[2];
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() > 0)
			_exit(0);
		signal(SIGHUP, SIG_IGN);
		if (write(fds[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(send_to(pid, 0, 0, PROCESS_GROUP), 1);
	assert_int_equal(send_to(pid, 0, SIGKILL, PROCESS_GROUP), 1);
	/* The end of the pipe is its end. */
	assert_int_equal(read(fds[0], &c, 1), 0);
	close(fds[0]);
	while (send_to(pid, 0, 0, PROCESS_TREE) > 0)
		continue;
}

/* Forks twice, is in a session of its own, and nobody above it is left. */
static pid_t
start_daemon(uint64_t mark, int *end)
{
	pid_t pid;
	int fds[2];
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setsid();
		process_tree_set_mark(mark);
		if (fork() > 0)
			_exit(0);
		setsid();
		if (fork() > 0)
			_exit(0);
		rest(fds[1]);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	*end = fds[0];
	return pid;
}

/* Its mark finds it, and no other one does. */
static void
test_mark(void **state)
{
	uint64_t mark = process_tree_new_mark();
	uint64_t others = process_tree_new_mark();
	int ours, theirs;
	pid_t a = start_daemon(mark, &ours), b = start_daemon(others, &theirs);
	char c;

	assert_int_not_equal(mark, others);
	assert_int_equal(send_to(a, 0, 0, PROCESS_TREE), 0);
	assert_int_equal(send_to(a, mark, 0, PROCESS_GROUP), 0);
	assert_int_equal(send_to(a, mark, 0, PROCESS_TREE), 1);
	assert_int_equal(send_to(a, mark, SIGKILL, PROCESS_TREE), 1);
	assert_int_equal(read(ours, &c, 1), 0);
	assert_int_equal(send_to(b, others, SIGKILL, PROCESS_TREE), 1);
	assert_int_equal(read(theirs, &c, 1), 0);
	close(ours);
	close(theirs);
}

/*
 * Only what is below the caller is looked at. The others of a host are many,
 * and asking them took longer than all the rest.
 */
static void
test_not_below(void **state)
{
	uint64_t mark = process_tree_new_mark();
	int end, status;
	pid_t a = start_daemon(mark, &end), runner = fork();

	if (runner == 0)
		_exit(send_to(a, mark, 0, PROCESS_TREE));
	assert_int_equal(waitpid(runner, &status, 0), runner);
	assert_int_equal(send_to(a, mark, SIGKILL, PROCESS_TREE), 1);
	close(end);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void *
fork_and_wait(void *arg)
{
	int *fds = arg;

	if (fork() == 0)
		rest(fds[1]);
	for (;;)
		pause();
	return NULL;
}

/* A child belongs to the thread that made it. */
static void
test_children_of_threads(void **state)
{
	pthread_t thread;
	pid_t pid;
	int fds[2];
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setsid();
		if (pthread_create(&thread, NULL, fork_and_wait, fds) != 0)
			_exit(1);
		pthread_join(thread, NULL);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(send_to(pid, 0, 0, PROCESS_TREE), 2);
	assert_int_equal(send_to(pid, 0, SIGKILL, PROCESS_TREE), 2);
	assert_int_equal(read(fds[0], &c, 1), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fds[0]);
}

#define WIDTH 3000

/* More children than one page of the kernel's list has, and each ends. */
static void
test_many(void **state)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		setsid();
		for (int i = 0; i < WIDTH; i++)
			if (fork() == 0)
				rest(fds[1]);
		rest(fds[1]);
	}
	close(fds[1]);
	for (int i = 0; i <= WIDTH; i++)
		assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(send_to(pid, 0, SIGKILL, PROCESS_TREE), WIDTH + 1);
	assert_int_equal(read(fds[0], &c, 1), 0);
	close(fds[0]);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

/*
 * The leader was reaped, and later others have its number: they are left alone,
 * as a session, as a group, and as the process itself.
 */
static void
test_a_number_that_others_have_now(void **state)
{
	struct process_tree t = { .reaped = process_tree_now() };
	pid_t pid;

	while (process_tree_now() == t.reaped)
		continue;
	t.leader = pid = start_family();
	assert_int_equal(process_tree_signal(&t, 0, PROCESS_TREE), 0);
	assert_int_equal(process_tree_signal(&t, SIGKILL, PROCESS_TREE), 0);
	assert_int_equal(process_tree_signal(&t, SIGKILL, PROCESS_GROUP), 0);
	t.reaped = process_tree_now();
	assert_int_equal(process_tree_signal(&t, 0, PROCESS_GROUP), 2);
	assert_int_equal(process_tree_signal(&t, 0, PROCESS_TREE), FAMILY);
	end_family(pid);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_without_leader),
		cmocka_unit_test(test_a_number_that_others_have_now),
		cmocka_unit_test(test_mark),
		cmocka_unit_test(test_not_below),
		cmocka_unit_test(test_children_of_threads),
		cmocka_unit_test(test_many),
	};

	/* As the runner is. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
