/* SPDX-License-Identifier: ISC */
/*
 * Messages of the control channels (doc/design.md section 3). The channels are
 * AF_UNIX SOCK_SEQPACKET sockets: one message is one packet, and descriptors
 * travel with their message. Every message begins with its type. The rest is
 * the struct named beside the type, field by field. A message that does not
 * decode exactly comes from a compromised peer.
 *
 * The structs are in control_frontend.h, control_helper.h, control_runner.h
 * and sandbox_limits.h. The spawn channel, which is root's, has messages of its
 * own, simpler still (control_spawn.h).
 *
 * Requests have even numbers, their answers odd ones.
 */
#pragma once

#include "base.h"
#include "buf.h"
#include "control_frontend.h"
#include "control_runner.h"
#include "control_version.h"

enum control_type {
	/* broker -> front-end: events */
	BROKER_EV_CONFIGURE = 1,     /* control_configure + fds of `helpers` */
	BROKER_EV_RUNNER_EXITED = 3, /* control_runner_exited */
	BROKER_EV_RELOAD = 5,	 /* control_configure; replaces the last one */
	BROKER_EV_DRAIN = 7,	 /* control_drain: new sessions or none */
	BROKER_EV_STOP = 9,	 /* no fields; tell all clients and end */
	BROKER_EV_LEAVE = 35,	 /* no fields; another broker takes over: tell
				  * clients that have a session, let others have
				  * theirs, and end */
	BROKER_EV_LISTENER = 11, /* control_listener + its fds */
	BROKER_EV_LOAD = 29,	 /* control_load; when it has changed */
	BROKER_EV_END = 27,	 /* control_runner_exited: tell its client */
	BROKER_EV_PING = 21,	 /* control_ping; BROKER_REQ_ALIVE answers */
	/* no fields; BROKER_REQ_DONE answers if nobody is connected */
	BROKER_EV_IDLE = 31,
	BROKER_EV_PROBE = 33, /* control_probe; BROKER_REQ_PROBED answers */

	/* front-end -> broker: requests and their answers */
	BROKER_REQ_READY = 10, /* control_ready; once, before all others */
	/* control_authenticate (+ the client's socket, for LISTENER_UNIX) */
	BROKER_REQ_AUTHENTICATE = 12,
	BROKER_ANS_AUTHENTICATE = 13, /* control_verdict */
	/* control_open + the runner's end of a session channel; answered only
	 * if there is no session: */
	BROKER_REQ_OPEN = 14,
	BROKER_ANS_OPEN = 15,	 /* control_session + that descriptor */
	BROKER_REQ_RESUME = 16,	 /* control_resume, in the same way */
	BROKER_ANS_RESUME = 17,	 /* control_session + fd */
	BROKER_REQ_CLOSE = 18,	 /* control_close: the connection is over */
	BROKER_ANS_CLOSE = 19,	 /* control_closed */
	BROKER_REQ_DONE = 20,	 /* no fields; stdio ended, or IDLE's answer */
	BROKER_REQ_WATCH = 22,	 /* control_resume, in the same way */
	BROKER_ANS_WATCH = 23,	 /* control_session + fd */
	BROKER_REQ_METRICS = 24, /* control_ask_metrics */
	BROKER_ANS_METRICS = 25, /* control_metrics */
	BROKER_REQ_REFUSED = 26, /* control_refused; has no answer */
	BROKER_REQ_ALIVE = 8,	 /* no fields; answers a PING */
	BROKER_REQ_HELPER = 6,	 /* control_helper: does not answer */
	BROKER_REQ_PROBED = 4,	 /* control_probed; answers a PROBE */

	/* broker -> runner: commands */
	/* control_session_config + fds: execd-http, execd-netproxy, user
	 * namespace, cgroups */
	RUNNER_COMMAND_CONFIGURE = 30,
	RUNNER_COMMAND_ATTACH = 32,    /* control_attach + channel fd */
	RUNNER_COMMAND_DETACH = 34,    /* no fields */
	RUNNER_COMMAND_TERMINATE = 36, /* no fields */
	RUNNER_COMMAND_WATCH = 38,     /* control_watch + channel fd */
	/* struct sandbox_limits; before the first ATTACH, and from version 5 on
	 * of each new broker */
	RUNNER_COMMAND_SANDBOX = 40,
	RUNNER_COMMAND_AUDIT = 42, /* control_audit; once, before SANDBOX */
	RUNNER_COMMAND_AUDIT_STATE =
	    44, /* control_audit_state: whether it is written */
	RUNNER_COMMAND_RECORDING_FILE = 46, /* control_recording_file (+ fd) */
	RUNNER_COMMAND_IDENTIFY = 48,	    /* no fields; from a new broker */
	RUNNER_COMMAND_KEEP = 70,	    /* control_keep */
	RUNNER_COMMAND_LIST = 74,	    /* control_list */
	/* no fields; from version 5 on */
	RUNNER_COMMAND_COMMANDS = 56,
	RUNNER_COMMAND_TOKEN = 54, /* control_token; from version 4 on */
	/* both from version 4 on; the first is ATTACH if the client comes
	 * through a trusted proxy */
	RUNNER_COMMAND_ATTACH_PROXIED = 50, /* control_attach + channel fd */
	RUNNER_COMMAND_PROBE = 52,	    /* control_runner_probe */

	/* runner -> broker: reports */
	RUNNER_EVENT_PROBED = 39,    /* control_runner_probe; answers PROBE */
	RUNNER_EVENT_DETACHED = 41,  /* control_detached */
	RUNNER_EVENT_UNWATCHED = 43, /* control_unwatched */
	RUNNER_EVENT_STARTED = 45,   /* control_started; with `audit` */
	RUNNER_EVENT_EXITED = 47,    /* control_exited; with `audit` */
	RUNNER_EVENT_LIMITED = 77,   /* control_limited; with `audit` */
	RUNNER_EVENT_FILE = 51,	     /* control_file; if AUDIT asks for it */
	RUNNER_EVENT_HTTP = 53,	     /* control_http; the same */
	RUNNER_EVENT_NETWORK = 49,   /* control_network; with `audit` */
	RUNNER_EVENT_END = 57, /* no fields; the client ends the session */
	/* control_redirects; to a client's first question, if CONFIGURE does
	 * not say it */
	RUNNER_EVENT_REDIRECTS = 81,
	RUNNER_EVENT_RECORDING_FILE =
	    55, /* control_recording_wanted: waits for its file */
	/* control_token; answers IDENTIFY if there is one, then: */
	RUNNER_EVENT_TOKEN = 79,
	/* control_identity; answers IDENTIFY, then: */
	RUNNER_EVENT_IDENTITY = 59,
	RUNNER_EVENT_RUNNING = 61, /* control_running, for each command */
	/* control_keep_wanted: waits for RUNNER_COMMAND_KEEP */
	RUNNER_EVENT_KEEP = 71,
	/* control_list_wanted: waits for RUNNER_COMMAND_LIST */
	RUNNER_EVENT_LIST = 75,
	/* control_commands; answers COMMANDS */
	RUNNER_EVENT_COMMANDS = 83,
	/* control_keep_state; before IDENTITY, and when it has changed */
	RUNNER_EVENT_KEPT = 73,

	/* runner -> front-end, as frames on the session channel of a client
	 * that was handed over */
	CHANNEL_CLIENT = 91, /* control_client */

	/* to a helper of the front-end: first from the broker, then from the
	 * front-end */
	/* control_key + fd of the key; one message per key */
	KEYS_CONFIGURE = 60,
	KEYS_SERVE = 62,  /* control_serve; then only what follows: */
	KEYS_SIGN = 64,	  /* control_sign; to the key process */
	KEYS_SIGNED = 65, /* control_signed */
	KEYS_TRUST = 66,  /* control_trust + fds: client CA, revocation lists */
	KEYS_VERIFY = 68, /* control_verify; to the certificate process */
	KEYS_VERIFIED = 69, /* control_verified */
	KEYS_PING = 58,	    /* control_alive; to both */
	KEYS_ALIVE = 63,    /* control_alive */
};

/* Appends the type and the fields. `payload` is the struct of that type, or
 * NULL for a type without fields. */
void control_put(struct buf *b, enum control_type type, const void *payload);

/* Returns the type of a message, or 0 if it is too short or unknown. */
enum control_type control_peek(const void *message, size_t len);

/* Decodes a message of this type into its struct *payload; a type without
 * fields takes NULL. Returns 0, -EPROTO if the sender uses another version of
 * the channel, or -EBADMSG. */
int control_get(
    const void *message, size_t len, enum control_type type, void *payload);

/* Returns the version that the first message of a channel carries; 0: it is no
 * such message. */
uint32_t control_version(const void *message, size_t len);

/* Returns the text for the client and the log, for example "invalid websocket
 * bearer token" (doc/protocol.md section 1.5). */
const char *control_verdict_name(enum verdict verdict);

/* Returns the name of a type for logs, for example "BROKER_REQ_OPEN". */
const char *control_name(enum control_type type);

/* Describes a message that could not be decoded: its name, and the version of
 * its sender if that is the reason. May use text[]. */
#define CONTROL_FAULT_MAX 128
const char *control_fault(
    const void *message, size_t len, char text[CONTROL_FAULT_MAX]);
