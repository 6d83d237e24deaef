/* SPDX-License-Identifier: ISC */
/*
 * Files for recordings of terminals (execd.conf(5), record-tty): made by root
 * for their runner to write to. The session's user can neither name
 * nor open them; a runner that was taken over can write nonsense into those
 * of its own session, and into no other's.
 */
#ifndef SESSION_RECORDING_H
#define SESSION_RECORDING_H

#include <stddef.h>
#include <stdint.h>

struct broker;
struct session;

/* A runner asks for a file, and is answered. As session_audit_report(). */
int session_recording_event(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len);

#endif
