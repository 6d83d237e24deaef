/* SPDX-License-Identifier: ISC */
/*
 * Gives up privileges inside: once in the sandbox, then in each of its
 * processes.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside.h"
#include "log.h"
#include "util.h"

/* The kernel's default for everybody since Linux 5.16. */
#define MEMLOCK_BYTES (8u << 20)

/* --- once, in the sandbox ----------------------------------------------- */

static int
set_limit(__rlimit_resource_t what, uint64_t value)
{
	const struct rlimit limit = { value, value };

	return setrlimit(what, &limit) < 0 ? -errno : 0;
}

/* Only lowers a limit. 0 leaves it as it is. */
static int
lower_limit(__rlimit_resource_t what, uint64_t value)
{
	struct rlimit have;

	if (value == 0)
		return 0;
	if (getrlimit(what, &have) < 0)
		return -errno;
	if (value > have.rlim_max)
		return 0;
	have.rlim_max = value;
	if (have.rlim_cur > value)
		have.rlim_cur = value;
	return setrlimit(what, &have) < 0 ? -errno : 0;
}

static int
set_limits(const struct sandbox_options *o)
{
	int err = set_limit(RLIMIT_CORE, 0);

	if (err == 0)
		err = set_limit(RLIMIT_MSGQUEUE, 0);
	if (err == 0)
		err = set_limit(RLIMIT_NICE, 0);
	if (err == 0)
		err = set_limit(RLIMIT_RTPRIO, 0);
	if (err == 0)
		err = lower_limit(RLIMIT_MEMLOCK, MEMLOCK_BYTES);
	if (err == 0)
		err = lower_limit(RLIMIT_NOFILE, o->open_files);
	return err < 0 ? err : lower_limit(RLIMIT_FSIZE, o->file_bytes);
}

int
inside_limit_command(const struct inside *in)
{
	int err = lower_limit(RLIMIT_NPROC, in->options.processes);

	if (err < 0 || in->watches_memory)
		return err;
	return lower_limit(RLIMIT_DATA, in->options.memory_bytes);
}

/*
 * Empties the bounding set and locks the securebits. Capabilities that are held
 * stay usable, but exec cannot give new ones.
 */
static int
bind_capabilities(void)
{
	const unsigned long bits =
	    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
	    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
	    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	int cap = 0;

	for (; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	/*
	 * EINVAL means that the last capability was passed; any other end is an
	 * error.
	 */
	if (errno != EINVAL || cap <= CAP_SETPCAP)
		return -EPERM;
	return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 ? -errno : 0;
}

/*
 * Joins a new session keyring. Commands may not use keys at all
 * (command_filter.c); this is for keys that the kernel itself looks up. A
 * kernel without keys has nothing to protect. A container that refuses the call
 * to everybody (systemd-nspawn, Docker's default filter) also let nobody put a
 * key into the keyring that stays.
 */
static int
join_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 ||
	    errno == ENOSYS)
		return 0;
	if (errno != EPERM)
		return -errno;
	log_warn(0, "keyctl is refused here, so sandboxes keep the session "
		    "keyring; commands cannot use it");
	return 0;
}

int
inside_prepare(const struct inside *in, const char **step)
{
	int err;

	*step = "resource limits";
	err = set_limits(&in->options);
	if (err < 0)
		return err;
	*step = "emptying the capability bounding set";
	err = in->landlock_only ? 0 : bind_capabilities();
	if (err == 0 &&
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		err = -errno;
	if (err < 0)
		return err;
	*step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	*step = "a session keyring";
	return join_keyring();
}

/* --- in each process ---------------------------------------------------- */

static bool
has_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct have[2];

	if (syscall(SYS_capget, &header, have) < 0)
		return true;
	for (int i = 0; i < 2; i++)
		if (have[i].effective | have[i].permitted | have[i].inheritable)
			return true;
	return false;
}

int
inside_drop(void)
{
	static const struct __user_cap_data_struct none[2];
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};

	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	/*
	 * Proves that root cannot be regained. The raw system call changes this
	 * process only and no state of libc.
	 */
	if (geteuid() != 0 && syscall(SYS_setresuid, 0, 0, 0) == 0)
		return -EPERM;
	if (has_capabilities() || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return -EPERM;
	return 0;
}
