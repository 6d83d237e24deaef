/* SPDX-License-Identifier: ISC */
/*
 * The trials of execd doctor: each layer of a sandbox, in a child of its own.
 */
#ifndef DOCTOR_TRY_H
#define DOCTOR_TRY_H

#include <stdbool.h>
#include <sys/types.h>

struct programs;

/* The user whose commands would run in the sandbox. */
struct patient {
	const struct programs *programs;
	char *name; /* owned */
	uid_t uid;
	gid_t gid;
	bool root;  /* whether execd is root */
	int userns; /* only as root; -errno if it could not be made */
};

/* In a child. The function ends the child with the errno of what failed, or
 * returns. */
/* For root: what root needs for each session, as root. */
void doctor_try_session(const struct patient *p);
void doctor_try_user(const struct patient *p);
void doctor_try_mount(const struct patient *p);
void doctor_try_pid(const struct patient *p);
void doctor_try_network(const struct patient *p);
void doctor_try_netproxy(const struct patient *p);
void doctor_try_names(const struct patient *p);
void doctor_try_ipc(const struct patient *p);
void doctor_try_uts(const struct patient *p);
void doctor_try_cgroup_namespace(const struct patient *p);
void doctor_try_keyring(const struct patient *p);
void doctor_try_seccomp(const struct patient *p);
void doctor_try_landlock(const struct patient *p);
void doctor_try_cgroups(const struct patient *p);
void doctor_try_processes(const struct patient *p);
void doctor_try_memory(const struct patient *p);
void doctor_try_cpu(const struct patient *p);
void doctor_try_openat2(const struct patient *p);
void doctor_try_command(const struct patient *p);

#endif
