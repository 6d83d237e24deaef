/*
 * Who belongs to a command, by what /proc says now: its process group, or
 * everything in the session it leads (setsid(2)) and below that. What a
 * descendant in a session of its own has left to init is not found again.
 */
#ifndef PROCESS_TREE_H
#define PROCESS_TREE_H

#include <sys/types.h>

enum process_target { PROCESS_ALONE, PROCESS_GROUP, PROCESS_TREE };

/*
 * Sends a signal to the group or tree of a leader, which may have ended. With
 * SIGKILL all of them are stopped before the first one dies, so that none can
 * fork away. Returns how many got it, or -errno when /proc does not tell.
 */
int process_tree_signal(pid_t leader, int sig, enum process_target target);

#endif
