/* SPDX-License-Identifier: ISC */
/*
 * What the serving broker may not do. The filter is a deny-list: the broker is
 * linked with libraries that may need other harmless calls tomorrow, and an
 * unknown one must not end it. A call that can only mean an attack kills.
 */
#include "base.h"
#include "broker_main.h"

#include "filter_rows.h"
#include "landlock.h"

#define KILL(name)   ALLOW(name) /* in a deny-list, a row without errno */
#define REFUSE(name) DENY(name)

static const struct filter_rule rules[] = {
	/* other programs: root's execd starts them */
	KILL(execve),
	KILL(execveat),
	/* other processes */
	KILL(ptrace),
	KILL(process_vm_readv),
	KILL(process_vm_writev),
	KILL(pidfd_getfd),
	KILL(kcmp),
	/* other views of the host */
	KILL(unshare),
	KILL(setns),
	KILL(mount),
	KILL(umount2),
	KILL(pivot_root),
	KILL(chroot),
	KILL(move_mount),
	KILL(open_tree),
	KILL(fsopen),
	KILL(fsmount),
	KILL(mount_setattr),
	KILL(open_by_handle_at),
	/* the kernel's larger surfaces */
	KILL(bpf),
	KILL(perf_event_open),
	KILL(userfaultfd),
	KILL(io_uring_setup),
	KILL(init_module),
	KILL(finit_module),
	KILL(delete_module),
	KILL(kexec_load),
	KILL(reboot),
	KILL(swapon),
	KILL(swapoff),
	KILL(acct),
	KILL(quotactl),
	REFUSE(keyctl),
	REFUSE(add_key),
	REFUSE(request_key),
	/* The broker's user does not change. Libraries may ask who it is. */
	KILL(setuid),
	KILL(setgid),
	KILL(setreuid),
	KILL(setregid),
	KILL(setresuid),
	KILL(setresgid),
	KILL(setgroups),
	KILL(capset),
	/* Root's execd binds and connects. A library that tries, as name
	 * services do, gets an error and goes on without. */
	REFUSE(connect),
	REFUSE(bind),
	REFUSE(listen),
	REFUSE(socket),
};

/* A process under Landlock cannot look into a process without it or signal it,
 * even if the other has the same user and has only just begun. */
static int
refuse_others(int abi)
{
	const struct landlock_attr attr = { .fs = LANDLOCK_EXECUTE,
		.scopes = LANDLOCK_SCOPE_SIGNAL };
	_cleanup_close_ int fd = landlock_create(&attr, abi);

	return fd < 0 ? fd : landlock_restrict(fd, 0);
}

int
broker_policy_load(void)
{
	int err = filter_load_denied(rules, nitems(rules));
	int abi = landlock_abi();

	if (err < 0)
		return err;
	if (abi > 0)
		return refuse_others(abi);
	/* The errors are ENOSYS and EOPNOTSUPP, and EPERM in a container whose
	 * profile has no Landlock, like that of systemd-nspawn(1). */
	log_warn(abi,
	    "no Landlock here: a broker could look into another process of its "
	    "user");
	return 0;
}
