/*
 * The front-end's system calls (confine.c loads them last).
 */
#ifndef POLICY_H
#define POLICY_H

/* 0 or -errno. */
int policy_load(void);

#endif
