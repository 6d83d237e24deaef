/* SPDX-License-Identifier: ISC */
/*
 * Preloaded into one of execd's programs: the n-th call of one kind fails,
 * once. FAULT_KIND names the kind, FAULT_AT is n; with FAULT_TRACE set it is
 * said who called, for addr2line(1). The environment is as it was when main()
 * begins, so that nothing is handed on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
	NONE,
	ALLOC,
	READ,
	WRITE,
	OPEN,
	FORK,
	MMAP,
	SOCKET,
	PIPE,
	EPOLL,
	DUP
};

static const struct {
	const char *name;
	int err;
} kinds[] = {
	[NONE] = { "none", 0 },
	[ALLOC] = { "alloc", ENOMEM },
	[READ] = { "read", EIO },
	[WRITE] = { "write", ENOSPC },
	[OPEN] = { "open", EMFILE },
	[FORK] = { "fork", EAGAIN },
	[MMAP] = { "mmap", ENOMEM },
	[SOCKET] = { "socket", ENFILE },
	[PIPE] = { "pipe", EMFILE },
	[EPOLL] = { "epoll", ENOSPC },
	[DUP] = { "dup", EMFILE },
};

static enum kind wanted;
static int trace;
/* Calls until the one that fails; shared with what is forked. */
static unsigned long *left;

void *real_vfork;
int faults_fork_fails(void);
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static void __attribute__((constructor)) set_up(void)
{
	const char *kind = getenv("FAULT_KIND"), *at = getenv("FAULT_AT");

	real_vfork = dlsym(RTLD_NEXT, "vfork");
	if (kind == NULL || at == NULL)
		return;
	trace = getenv("FAULT_TRACE") != NULL;
	if (trace)
		/* Loads what it needs, once. */
		backtrace(&(void *){ NULL }, 1);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, kind) == 0)
			wanted = (enum kind)i;
	left = (unsigned long *)syscall(SYS_mmap, NULL, 4096,
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*left = strtoul(at, NULL, 10);
	unsetenv("LD_PRELOAD");
	unsetenv("FAULT_KIND");
	unsetenv("FAULT_AT");
	unsetenv("FAULT_TRACE");
}

static void
show_callers(void)
{
	void *callers[32];

	backtrace_symbols_fd(callers, backtrace(callers, 32), STDERR_FILENO);
}

/* Is this the one? The test hears of it on the log. */
static int
fails(enum kind kind)
{
	static const char text[] = "faults: delivered\n";

	unsigned long now;

	if (kind != wanted || left == NULL)
		return 0;
	/* Two who meet here may count one call: the order is not fixed. */
	now = __atomic_load_n(left, __ATOMIC_RELAXED);
	if (now == 0)
		return 0;
	__atomic_store_n(left, now - 1, __ATOMIC_RELAXED);
	if (now > 1)
		return 0;
	syscall(SYS_write, STDERR_FILENO, text, sizeof(text) - 1);
	if (trace)
		show_callers();
	errno = kinds[kind].err;
	return 1;
}

/* --- memory --------------------------------------------------------------- */

void *
malloc(size_t size)
{
	return fails(ALLOC) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	return fails(ALLOC) ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *p, size_t size)
{
	return fails(ALLOC) ? NULL : __libc_realloc(p, size);
}

void *
reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

void *
mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fails(MMAP))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

/* --- input and output ----------------------------------------------------- */

ssize_t
read(int fd, void *p, size_t n)
{
	return fails(READ) ? -1 : syscall(SYS_read, fd, p, n);
}

ssize_t
recv(int fd, void *p, size_t n, int flags)
{
	return fails(READ) ? -1
			   : syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL);
}

ssize_t
recvmsg(int fd, struct msghdr *m, int flags)
{
	return fails(READ) ? -1 : syscall(SYS_recvmsg, fd, m, flags);
}

ssize_t
write(int fd, const void *p, size_t n)
{
	return fails(WRITE) ? -1 : syscall(SYS_write, fd, p, n);
}

ssize_t
writev(int fd, const struct iovec *iov, int n)
{
	return fails(WRITE) ? -1 : syscall(SYS_writev, fd, iov, n);
}

ssize_t
send(int fd, const void *p, size_t n, int flags)
{
	return fails(WRITE) ? -1
			    : syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
	return fails(WRITE) ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

/* --- descriptors ---------------------------------------------------------- */

static int
open_at(int dir, const char *path, int flags, va_list ap)
{
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;

	if (fails(OPEN))
		return -1;
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

#define OPEN_FUNCTION(name)                                                    \
	int name(const char *path, int flags, ...)                             \
	{                                                                      \
		va_list ap;                                                    \
		int fd;                                                        \
                                                                               \
		va_start(ap, flags);                                           \
		fd = open_at(AT_FDCWD, path, flags, ap);                       \
		va_end(ap);                                                    \
		return fd;                                                     \
	}

#define OPENAT_FUNCTION(name)                                                  \
	int name(int dir, const char *path, int flags, ...)                    \
	{                                                                      \
		va_list ap;                                                    \
		int fd;                                                        \
                                                                               \
		va_start(ap, flags);                                           \
		fd = open_at(dir, path, flags, ap);                            \
		va_end(ap);                                                    \
		return fd;                                                     \
	}

OPEN_FUNCTION(open)
OPEN_FUNCTION(open64)
OPENAT_FUNCTION(openat)
OPENAT_FUNCTION(openat64)

int
socket(int domain, int type, int protocol)
{
	return fails(SOCKET) ? -1
			     : (int)syscall(SYS_socket, domain, type, protocol);
}

int
socketpair(int domain, int type, int protocol, int fds[2])
{
	return fails(SOCKET)
		   ? -1
		   : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

int
accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	return fails(SOCKET) ? -1
			     : (int)syscall(SYS_accept4, fd, a, len, flags);
}

int
pipe2(int fds[2], int flags)
{
	return fails(PIPE) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

int
epoll_create1(int flags)
{
	return fails(EPOLL) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int
epoll_ctl(int epoll, int op, int fd, struct epoll_event *ev)
{
	if (op == EPOLL_CTL_ADD && fails(EPOLL))
		return -1;
	return (int)syscall(SYS_epoll_ctl, epoll, op, fd, ev);
}

int
dup2(int fd, int to)
{
	if (fails(DUP))
		return -1;
	/* arm64 has no dup2(2), and dup3(2) refuses two equal numbers. */
	if (fd == to)
		return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
	return (int)syscall(SYS_dup3, fd, to, 0);
}

int
dup3(int fd, int to, int flags)
{
	return fails(DUP) ? -1 : (int)syscall(SYS_dup3, fd, to, flags);
}

static int
control(int fd, int cmd, va_list ap)
{
	unsigned long arg = va_arg(ap, unsigned long);

	if ((cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) && fails(DUP))
		return -1;
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

#define FCNTL_FUNCTION(name)                                                   \
	int name(int fd, int cmd, ...)                                         \
	{                                                                      \
		va_list ap;                                                    \
		int n;                                                         \
                                                                               \
		va_start(ap, cmd);                                             \
		n = control(fd, cmd, ap);                                      \
		va_end(ap);                                                    \
		return n;                                                      \
	}

FCNTL_FUNCTION(fcntl)
FCNTL_FUNCTION(fcntl64)

/* --- processes ------------------------------------------------------------ */

int
faults_fork_fails(void)
{
	return fails(FORK);
}

pid_t
fork(void)
{
	pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

	return fails(FORK) ? -1 : real();
}

long
syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (real == NULL)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_clone && fails(FORK))
		return -1;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#ifdef __x86_64__
/* It returns twice to its caller, so nothing may lie between: a jump. */
__asm__(".globl vfork\n"
	".type vfork, @function\n"
	"vfork:\n"
	"	sub $8, %rsp\n"
	"	call faults_fork_fails@PLT\n"
	"	add $8, %rsp\n"
	"	test %eax, %eax\n"
	"	jnz 1f\n"
	"	mov real_vfork@GOTPCREL(%rip), %rax\n"
	"	jmp *(%rax)\n"
	"1:	mov $-1, %rax\n"
	"	ret\n"
	".size vfork, . - vfork\n");
#endif
