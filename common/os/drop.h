/* SPDX-License-Identifier: ISC */
/*
 * Drops privileges permanently and verifies that they are gone.
 */
#pragma once

#include "base.h"

/*
 * Called by root. Sets the supplementary groups, the gid and the uid, and
 * clears every capability set except the bounding set, so that set-id programs
 * of the user still work. Then verifies that root cannot be regained and that
 * no capability is left. At no moment may other processes of the user look into
 * this one, whatever fs.suid_dumpable is. Any failure is fatal, because half a
 * drop cannot be undone.
 *
 * hide_program: that lasts over an execve(2), which makes a program visible to
 * its user again. The program gets one capability, CAP_KILL, that it has to
 * clear once it has hidden itself. Until then nobody who lacks it may look into
 * the process or take its descriptors (ptrace(2), "Ptrace access mode
 * checking").
 */
void drop_to_user(uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups,
    bool hide_program);

/* The same for a program that was executed as root, so that no copy of its
 * parent ever belongs to the user. `text` is "UID:GID". The supplementary
 * groups are those that the parent has set. Fatal on failure. */
void drop_to_given(const char *text);
void drop_parse(const char *text, uid_t *uid, gid_t *gid);

/* Prevents processes of the same user from reading or tracing this process, and
 * disables core files. The hard limit stays, because commands inherit it. Fatal
 * on failure. */
void drop_visibility(void);

/* Clears every capability set except the bounding set, keeps the user, and
 * verifies the result. Fatal on failure. */
void drop_capabilities(void);

/* Empties the bounding set as well. For programs that execute nothing. Call
 * before drop_to_user(). Fatal on failure. */
void drop_bounding_set(void);
