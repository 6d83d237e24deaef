/* SPDX-License-Identifier: ISC */
/*
 * The layout of the messages of the front-end: those between it and the broker,
 * and those of its helpers.
 */
#include "control_layout.h"

static const struct field configure_fields[] = {
	FIELD_OF(control_configure, helpers),
#define FRONTEND_LIMIT(keyword, type, member, ...)                             \
	FIELD_OF(control_configure, limits.member),
#include "frontend_keys.def"
	FIELD_OF(control_configure, listeners),
};

static const struct field listener_fields[] = {
	FIELDS(control_listener, id, kind, tls),
#define FRONTEND_LISTENER(keyword, type, member, ...)                          \
	FIELD_OF(control_listener, keys.member),
#include "frontend_keys.def"
	FIELDS(control_listener, has_operators, key, trusted),
};

static const struct field authenticate_fields[] = {
	FIELDS(control_authenticate, conn, listener, kind, has_certificate,
	    cert_verdict.listener, cert_verdict.made_ms, cert_verdict.digest,
	    cert_verdict.subject, cert_verdict.seal, peer, proxy,
	    token_header.alg, token_header.kid, credential),
};

static const struct field resume_fields[] = {
	FIELDS(control_resume, conn, grant, session_id, take_over),
};

static const struct field session_fields[] = {
	FIELDS(control_session, conn, result, reason, host),
};

static const struct field runner_exited_fields[] = {
	FIELDS(control_runner_exited, conn, reason),
};

static const struct field metrics_fields[] = {
	FIELDS(control_metrics, conn, verdict, attached, detached, ending, kept,
	    processes, started, exited, denied, network_allowed, network_denied,
	    output_bytes, start_us, start_us_sum, records),
	FIELDS(control_metrics, silent, records_lost, record_failing,
	    certificate_end, crl_end, programs, memory_bytes, nidentities,
	    identities, identities_left_out),
	FIELDS(control_metrics, begun_s, drained, replaced_frontends,
	    replaced_keys, audit_lag_ms, log_lost),
};

static const struct field alive_fields[] = {
	FIELDS(control_alive, serial),
};

static const struct control_layout rows[] = {
	FIRST_LAYOUT_OF(BROKER_EV_CONFIGURE, configure_fields),
	LAYOUT_OF(BROKER_EV_RUNNER_EXITED, runner_exited_fields),
	LAYOUT_OF(BROKER_EV_RELOAD, configure_fields),
	LAYOUT(BROKER_EV_DRAIN, control_drain, why),
	LAYOUT(BROKER_EV_LOAD, control_load, room_percent),
	LAYOUT_OF(BROKER_EV_END, runner_exited_fields),
	EMPTY(BROKER_EV_STOP),
	EMPTY(BROKER_EV_LEAVE),
	LAYOUT_OF(BROKER_EV_LISTENER, listener_fields),
	FIRST_LAYOUT(BROKER_REQ_READY, control_ready, root_empty, landlock,
	    seccomp, user_changed),
	LAYOUT_OF(BROKER_REQ_AUTHENTICATE, authenticate_fields),
	LAYOUT(BROKER_ANS_AUTHENTICATE, control_verdict, conn, verdict, grant),
	LAYOUT(BROKER_REQ_OPEN, control_open, conn, grant),
	LAYOUT_OF(BROKER_ANS_OPEN, session_fields),
	LAYOUT_OF(BROKER_REQ_RESUME, resume_fields),
	LAYOUT_OF(BROKER_ANS_RESUME, session_fields),
	LAYOUT(BROKER_REQ_CLOSE, control_close, conn, channel_ended),
	LAYOUT(BROKER_ANS_CLOSE, control_closed, conn, end, reason),
	EMPTY(BROKER_REQ_DONE),
	LAYOUT_OF(BROKER_REQ_WATCH, resume_fields),
	LAYOUT_OF(BROKER_ANS_WATCH, session_fields),
	LAYOUT(
	    BROKER_REQ_REFUSED, control_refused, listener, peer, proxy, reason),
	LAYOUT(BROKER_EV_PING, control_ping, ill),
	EMPTY(BROKER_EV_IDLE),
	LAYOUT(BROKER_EV_PROBE, control_probe, conn, number),
	LAYOUT(BROKER_REQ_PROBED, control_probed, conn, number, result),
	EMPTY(BROKER_REQ_ALIVE),
	LAYOUT(BROKER_REQ_HELPER, control_helper, kind),
	LAYOUT_OF(BROKER_REQ_METRICS, authenticate_fields),
	LAYOUT_OF(BROKER_ANS_METRICS, metrics_fields),
	FIRST_LAYOUT(KEYS_CONFIGURE, control_key, key),
	FIRST_LAYOUT(KEYS_SERVE, control_serve, secret),
	LAYOUT(KEYS_SIGN, control_sign, serial, key, scheme, len, tbs),
	LAYOUT(KEYS_SIGNED, control_signed, serial, len, signature),
	FIRST_LAYOUT(KEYS_TRUST, control_trust, listener, crl),
	LAYOUT(KEYS_VERIFY, control_verify, serial, listener, len, chain),
	LAYOUT(KEYS_VERIFIED, control_verified, serial, error,
	    cert_verdict.listener, cert_verdict.made_ms, cert_verdict.digest,
	    cert_verdict.subject, cert_verdict.seal),
	LAYOUT_OF(KEYS_PING, alive_fields),
	LAYOUT_OF(KEYS_ALIVE, alive_fields),
};

const struct control_layouts control_layouts_frontend = { rows, nitems(rows),
	FRONTEND_VERSION, FRONTEND_VERSION };
