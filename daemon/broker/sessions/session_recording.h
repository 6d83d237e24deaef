/* SPDX-License-Identifier: ISC */
/*
 * Files for recordings of terminals (execd.conf(5), record-tty). Root makes
 * them, and their runner writes to them. The session's user can neither name
 * nor open them. A runner that was taken over can write nonsense into the files
 * of its own session, and into no others.
 */
#ifndef SESSION_RECORDING_H
#define SESSION_RECORDING_H

#include <stddef.h>
#include <stdint.h>

struct broker;
struct session;

/* A runner asks for a file and gets an answer. Returns as
 * session_audit_report(). */
int session_recording_event(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len);

#endif
