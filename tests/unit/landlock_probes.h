/* SPDX-License-Identifier: ISC */
/*
 * What a sandboxed command may try: each probe gives 0, or the errno it got.
 * The working directory has a/ and b/, which are writable, and out/. Included
 * once, in test_command_landlock.c.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"

/* The parent's, and outside of every sandbox. */
static struct sockaddr_in tcp_address;
static struct sockaddr_un abstract_address;

static int
opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	return fd < 0 ? errno : close(fd);
}

static int
result(int ret)
{
	return ret < 0 ? errno : 0;
}

static int
connected(int domain, const void *address, socklen_t len)
{
	_cleanup_close_ int fd = socket(domain, SOCK_STREAM, 0);

	return result(connect(fd, address, len));
}

static int
read_outside(void)
{
	return opened("out/file", O_RDONLY);
}

static int
list_outside(void)
{
	DIR *dir = opendir("out");

	return dir == NULL ? errno : closedir(dir);
}

static int
execute_outside(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int
write_outside(void)
{
	return opened("out/file", O_WRONLY);
}

static int
create_outside(void)
{
	return opened("out/new", O_CREAT | O_WRONLY | O_EXCL);
}

static int
remove_outside(void)
{
	return result(unlink("out/removed"));
}

static int
rmdir_outside(void)
{
	return result(rmdir("out/dir"));
}

static int
mkdir_outside(void)
{
	return result(mkdir("out/made", 0755));
}

static int
symlink_outside(void)
{
	return result(symlink("file", "out/link"));
}

static int
mkfifo_outside(void)
{
	return result(mkfifo("out/fifo", 0600));
}

/* The one device that anyone may make (overlayfs' whiteout). */
static int
mkchar_outside(void)
{
	return result(mknod("out/char", S_IFCHR | 0600, 0));
}

static int
bind_outside(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX,
		.sun_path = "out/sock" };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return result(bind(fd, (void *)&un, sizeof(un)));
}

static int
rename_outside(void)
{
	return result(rename("out/moved", "out/moved2"));
}

static int
move_out(void)
{
	return result(rename("a/moved-out", "out/moved-out"));
}

static int
move_in(void)
{
	return result(rename("out/moved-in", "a/moved-in"));
}

static int
truncate_outside(void)
{
	return result(truncate("out/file", 1));
}

static int
ioctl_outside(void)
{
	_cleanup_close_ int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	ioctl(fd, TIOCGWINSZ, &(struct winsize){ 0 });
	return errno == ENOTTY ? 0 : errno;
}

static int
move_between(void)
{
	return result(rename("a/moved", "b/moved"));
}

static int
link_between(void)
{
	return result(link("b/file", "a/linked"));
}

static int
work_inside(void)
{
	if (opened("a/new", O_CREAT | O_RDWR | O_TRUNC) ||
	    rename("a/new", "a/new2") < 0 || truncate("a/new2", 7) < 0 ||
	    unlink("a/new2") < 0 || mkdir("b/d", 0755) < 0 ||
	    symlink("d", "b/l") < 0 || mkfifo("b/d/f", 0600) < 0 ||
	    opened("b/l/x", O_CREAT | O_WRONLY) || unlink("b/l/x") < 0 ||
	    unlink("b/d/f") < 0 || rmdir("b/d") < 0)
		return errno;
	return 0;
}

/* /dev/null is among the writable. */
static int
write_device(void)
{
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_TRUNC);

	if (write(fd, "x", 1) != 1)
		return errno;
	ioctl(fd, TIOCGWINSZ, &(struct winsize){ 0 });
	return errno == ENOTTY ? 0 : errno;
}

/* As `echo > /dev/stdout`. */
static int
reopen_pipe(void)
{
	char path[64];
	int pair[2], err;

	if (pipe(pair) < 0)
		return errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pair[1]);
	err = opened(path, O_WRONLY | O_TRUNC);
	close(pair[0]);
	close(pair[1]);
	return err;
}

static int
bind_tcp(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM, 0);

	return result(bind(fd, (const void *)&any, sizeof(any)));
}

static int
connect_tcp(void)
{
	return connected(AF_INET, &tcp_address, sizeof(tcp_address));
}

static int
connect_abstract(void)
{
	return connected(AF_UNIX, &abstract_address, sizeof(abstract_address));
}

static int
abstract_inside(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(un);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (bind(fd, (void *)&un, sizeof(un.sun_family)) < 0 ||
	    listen(fd, 1) < 0 || getsockname(fd, (void *)&un, &len) < 0)
		return errno;
	return connected(AF_UNIX, &un, len);
}

static int
signal_outside(void)
{
	return result(kill(getppid(), 0));
}

static int
signal_inside(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	if (kill(pid, SIGKILL) < 0)
		return errno;
	waitpid(pid, &status, 0);
	return status == SIGKILL ? 0 : status;
}

enum part { NEVER, FILES, TCP, SCOPES };

/* Refused with the error when the policy has the part, from one ABI up to
 * another (0: all that follow). */
static const struct probe {
	const char *name;
	int (*act)(void);
	enum part part;
	int error, since, until;
} probes[] = {
	{ "read", read_outside, NEVER, 0, 0, 0 },
	{ "list", list_outside, NEVER, 0, 0, 0 },
	{ "execute", execute_outside, NEVER, 0, 0, 0 },
	{ "write", write_outside, FILES, EACCES, 1, 0 },
	{ "create", create_outside, FILES, EACCES, 1, 0 },
	{ "remove", remove_outside, FILES, EACCES, 1, 0 },
	{ "rmdir", rmdir_outside, FILES, EACCES, 1, 0 },
	{ "mkdir", mkdir_outside, FILES, EACCES, 1, 0 },
	{ "symlink", symlink_outside, FILES, EACCES, 1, 0 },
	{ "mkfifo", mkfifo_outside, FILES, EACCES, 1, 0 },
	{ "mkchar", mkchar_outside, FILES, EACCES, 1, 0 },
	{ "bind", bind_outside, FILES, EACCES, 1, 0 },
	{ "rename", rename_outside, FILES, EACCES, 1, 0 },
	{ "move out", move_out, FILES, EACCES, 1, 0 },
	{ "move in", move_in, FILES, EACCES, 1, 0 },
	{ "move between", move_between, FILES, EXDEV, 1, 1 },
	{ "link between", link_between, FILES, EXDEV, 1, 1 },
	{ "truncate", truncate_outside, FILES, EACCES, 3, 0 },
	{ "ioctl", ioctl_outside, FILES, EACCES, 5, 0 },
	{ "work inside", work_inside, NEVER, 0, 0, 0 },
	{ "device", write_device, NEVER, 0, 0, 0 },
	{ "pipe", reopen_pipe, NEVER, 0, 0, 0 },
	{ "bind TCP", bind_tcp, TCP, EACCES, 4, 0 },
	{ "connect TCP", connect_tcp, TCP, EACCES, 4, 0 },
	{ "abstract", connect_abstract, SCOPES, EPERM, 6, 0 },
	{ "abstract inside", abstract_inside, NEVER, 0, 0, 0 },
	{ "signal", signal_outside, SCOPES, EPERM, 6, 0 },
	{ "signal inside", signal_inside, NEVER, 0, 0, 0 },
};
