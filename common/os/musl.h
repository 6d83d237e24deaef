/* SPDX-License-Identifier: ISC */
/*
 * This header has what glibc has and musl has not, or has only since lately.
 * meson.build puts it before every source where the C library is not glibc; no
 * file includes it. Calls go to the kernel directly. It is compiled and not
 * tested: execd is developed with glibc.
 */
#ifndef MUSL_H
#define MUSL_H

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/limits.h>
#include <linux/mount.h>
#include <netdb.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef STATX_TYPE
#include <linux/stat.h>
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif

/* The kernel's header has the same struct as <sys/prctl.h>. */
#define _LINUX_PRCTL_H

/* The macros have arguments, so that a prototype in a newer musl does not
 * clash. */
#define execveat(...)	   musl_int(syscall(SYS_execveat, __VA_ARGS__))
#define fsconfig(...)	   musl_int(syscall(SYS_fsconfig, __VA_ARGS__))
#define fsmount(...)	   musl_int(syscall(SYS_fsmount, __VA_ARGS__))
#define fsopen(...)	   musl_int(syscall(SYS_fsopen, __VA_ARGS__))
#define mount_setattr(...) musl_int(syscall(SYS_mount_setattr, __VA_ARGS__))
#define move_mount(...)	   musl_int(syscall(SYS_move_mount, __VA_ARGS__))
#define open_tree(...)	   musl_int(syscall(SYS_open_tree, __VA_ARGS__))
#define renameat2(...)	   musl_int(syscall(SYS_renameat2, __VA_ARGS__))
#define statx(...)	   musl_int(syscall(SYS_statx, __VA_ARGS__))
#define close_range(...)   musl_int(syscall(SYS_close_range, __VA_ARGS__))

static inline int
musl_int(long result)
{
	return (int)result;
}

/* musl has these calls with other types and names. */
#define __rlimit_resource_t int
#define ioctl(fd, ...)	    musl_ioctl(fd, __VA_ARGS__, 0, 0)
#define musl_ioctl(fd, request, argument, ...)                                 \
	ioctl(fd, (int)(request), argument)
#undef getdents64
#define getdents64(fd, names, size) getdents(fd, (void *)(names), size)
/* Tables of filters have this name of a call. */
#undef prlimit64
/* A function of ours has this name. */
#define encrypt our_encrypt

/* musl keeps no memory that could be returned. */
#define M_TRIM_THRESHOLD    (-1)
#define M_MMAP_THRESHOLD    (-3)
#define mallopt(name, size) ((void)(name), (void)(size))
#define malloc_trim(pad)    ((void)(pad))

/* A name is looked up at once here, however long that takes: connect_timeout_ms
 * does not bound it. */
#define GAI_NOWAIT	   1
#define gai_suspend(...)   ((void)(wait), (void)(timeout))
#define gai_error(request) ((request)->error)
#define gai_cancel(r)	   EAI_CANCELED

struct gaicb {
	const char *ar_name, *ar_service;
	const struct addrinfo *ar_request;
	struct addrinfo *ar_result;
	int error;
};

static inline int
getaddrinfo_a(int mode, struct gaicb **list, int n, void *event)
{
	for (int i = 0; i < n; i++)
		list[i]->error =
		    getaddrinfo(list[i]->ar_name, list[i]->ar_service,
			list[i]->ar_request, &list[i]->ar_result);
	return 0;
}

#define SIGNAL_ROW(name)                                                       \
	case SIG##name:                                                        \
		return #name
#define sigabbrev_np musl_sigabbrev

static inline const char *
musl_sigabbrev(int sig)
{
	switch (sig) {
		SIGNAL_ROW(HUP);
		SIGNAL_ROW(INT);
		SIGNAL_ROW(QUIT);
		SIGNAL_ROW(ILL);
		SIGNAL_ROW(TRAP);
		SIGNAL_ROW(ABRT);
		SIGNAL_ROW(BUS);
		SIGNAL_ROW(FPE);
		SIGNAL_ROW(KILL);
		SIGNAL_ROW(USR1);
		SIGNAL_ROW(SEGV);
		SIGNAL_ROW(USR2);
		SIGNAL_ROW(PIPE);
		SIGNAL_ROW(ALRM);
		SIGNAL_ROW(TERM);
		SIGNAL_ROW(STKFLT);
		SIGNAL_ROW(CHLD);
		SIGNAL_ROW(CONT);
		SIGNAL_ROW(STOP);
		SIGNAL_ROW(TSTP);
		SIGNAL_ROW(TTIN);
		SIGNAL_ROW(TTOU);
		SIGNAL_ROW(URG);
		SIGNAL_ROW(XCPU);
		SIGNAL_ROW(XFSZ);
		SIGNAL_ROW(VTALRM);
		SIGNAL_ROW(PROF);
		SIGNAL_ROW(WINCH);
		SIGNAL_ROW(POLL);
		SIGNAL_ROW(PWR);
		SIGNAL_ROW(SYS);
	default:
		return NULL;
	}
}

#endif
