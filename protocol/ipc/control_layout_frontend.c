/* SPDX-License-Identifier: ISC */
/*
 * The layout of the messages of the front-end: those between it and the broker,
 * and those of its helpers.
 */
#include "control_layout.h"

static const struct field configure_fields[] = {
	FIELD(FIELD_U8, control_configure, helpers),
#define FRONTEND_LIMIT(keyword, type, member, ...)                             \
	FIELD_OF(control_configure, limits.member),
#include "frontend_keys.def"
	FIELD(FIELD_U32, control_configure, listeners),
};

static const struct field listener_fields[] = {
	FIELD(FIELD_U32, control_listener, id),
	FIELD(FIELD_U8, control_listener, kind),
	FIELD(FIELD_BOOL, control_listener, tls),
#define FRONTEND_LISTENER(keyword, type, member, ...)                          \
	FIELD_OF(control_listener, keys.member),
#include "frontend_keys.def"
	FIELD(FIELD_BOOL, control_listener, has_operators),
	FIELD(FIELD_U32, control_listener, key),
	FIELD_OF(control_listener, trusted),
};

static const struct field ready_fields[] = {
	FIELD(FIELD_BOOL, control_ready, root_empty),
	FIELD(FIELD_BOOL, control_ready, landlock),
	FIELD(FIELD_BOOL, control_ready, seccomp),
	FIELD(FIELD_BOOL, control_ready, user_changed),
};

static const struct field authenticate_fields[] = {
	FIELD(FIELD_U32, control_authenticate, conn),
	FIELD(FIELD_U32, control_authenticate, listener),
	FIELD(FIELD_U8, control_authenticate, kind),
	FIELD(FIELD_BOOL, control_authenticate, has_certificate),
	FIELD(FIELD_U32, control_authenticate, cert_verdict.listener),
	FIELD(FIELD_U64, control_authenticate, cert_verdict.made_ms),
	FIELD(FIELD_BYTES, control_authenticate, cert_verdict.digest),
	FIELD(FIELD_STRING, control_authenticate, cert_verdict.subject),
	FIELD(FIELD_BYTES, control_authenticate, cert_verdict.seal),
	FIELD(FIELD_STRING, control_authenticate, peer),
	FIELD(FIELD_STRING, control_authenticate, proxy),
	FIELD(FIELD_STRING, control_authenticate, token_header.alg),
	FIELD(FIELD_STRING, control_authenticate, token_header.kid),
	FIELD(FIELD_STRING, control_authenticate, credential),
};

static const struct field refused_fields[] = {
	FIELD(FIELD_U32, control_refused, listener),
	FIELD(FIELD_STRING, control_refused, peer),
	FIELD(FIELD_STRING, control_refused, proxy),
	FIELD(FIELD_STRING, control_refused, reason),
};

static const struct field verdict_fields[] = {
	FIELD(FIELD_U32, control_verdict, conn),
	FIELD(FIELD_U8, control_verdict, verdict),
	FIELD(FIELD_BYTES, control_verdict, grant),
};

static const struct field open_fields[] = {
	FIELD(FIELD_U32, control_open, conn),
	FIELD(FIELD_BYTES, control_open, grant),
};

static const struct field resume_fields[] = {
	FIELD(FIELD_U32, control_resume, conn),
	FIELD(FIELD_BYTES, control_resume, grant),
	FIELD(FIELD_STRING, control_resume, session_id),
	FIELD(FIELD_BOOL, control_resume, take_over),
};

static const struct field session_fields[] = {
	FIELD(FIELD_U32, control_session, conn),
	FIELD(FIELD_U8, control_session, result),
	FIELD(FIELD_STRING, control_session, reason),
	FIELD(FIELD_STRING, control_session, host),
};

static const struct field close_fields[] = {
	FIELD(FIELD_U32, control_close, conn),
	FIELD(FIELD_BOOL, control_close, channel_ended),
};

static const struct field probe_fields[] = {
	FIELD(FIELD_U32, control_probe, conn),
	FIELD(FIELD_U32, control_probe, number),
};

static const struct field probed_fields[] = {
	FIELD(FIELD_U32, control_probed, conn),
	FIELD(FIELD_U32, control_probed, number),
	FIELD(FIELD_U8, control_probed, result),
};

static const struct field closed_fields[] = {
	FIELD(FIELD_U32, control_closed, conn),
	FIELD(FIELD_U8, control_closed, end),
	FIELD(FIELD_STRING, control_closed, reason),
};

static const struct field runner_exited_fields[] = {
	FIELD(FIELD_U32, control_runner_exited, conn),
	FIELD(FIELD_STRING, control_runner_exited, reason),
};

static const struct field drain_fields[] = {
	FIELD(FIELD_U8, control_drain, why),
};

static const struct field ping_fields[] = {
	FIELD(FIELD_BOOL, control_ping, audit_stopped),
};

static const struct field load_fields[] = {
	FIELD(FIELD_U8, control_load, room_percent),
};

static const struct field helper_fields[] = {
	FIELD(FIELD_U8, control_helper, kind),
};

static const struct field metrics_fields[] = {
	FIELD(FIELD_U32, control_metrics, conn),
	FIELD(FIELD_U8, control_metrics, verdict),
	FIELD(FIELD_U64, control_metrics, attached),
	FIELD(FIELD_U64, control_metrics, detached),
	FIELD(FIELD_U64, control_metrics, ending),
	FIELD(FIELD_U64, control_metrics, kept),
	FIELD(FIELD_U64, control_metrics, processes),
	FIELD(FIELD_U64, control_metrics, started),
	FIELD(FIELD_BYTES, control_metrics, exited),
	FIELD(FIELD_U64, control_metrics, denied),
	FIELD(FIELD_U64, control_metrics, network_allowed),
	FIELD(FIELD_U64, control_metrics, network_denied),
	FIELD(FIELD_U64, control_metrics, output_bytes),
	FIELD(FIELD_BYTES, control_metrics, start_us),
	FIELD(FIELD_U64, control_metrics, start_us_sum),
	FIELD(FIELD_U64, control_metrics, records),
	FIELD(FIELD_U64, control_metrics, records_lost),
	FIELD(FIELD_BOOL, control_metrics, record_failing),
	FIELD(FIELD_U64, control_metrics, certificate_end),
	FIELD(FIELD_U64, control_metrics, crl_end),
	FIELD(FIELD_BYTES, control_metrics, programs),
	FIELD(FIELD_BYTES, control_metrics, memory_bytes),
	FIELD(FIELD_U32, control_metrics, nidentities),
	FIELD(FIELD_BYTES, control_metrics, identities),
	FIELD(FIELD_U64, control_metrics, identities_left_out),
};

static const struct field key_fields[] = {
	FIELD(FIELD_U32, control_key, key),
};

static const struct field sign_fields[] = {
	FIELD(FIELD_U32, control_sign, serial),
	FIELD(FIELD_U32, control_sign, key),
	FIELD(FIELD_U32, control_sign, scheme),
	FIELD(FIELD_U32, control_sign, len),
	FIELD(FIELD_BYTES, control_sign, tbs),
};

static const struct field signed_fields[] = {
	FIELD(FIELD_U32, control_signed, serial),
	FIELD(FIELD_U32, control_signed, len),
	FIELD(FIELD_BYTES, control_signed, signature),
};

static const struct field trust_fields[] = {
	FIELD(FIELD_U32, control_trust, listener),
	FIELD(FIELD_BOOL, control_trust, crl),
};

static const struct field serve_fields[] = {
	FIELD(FIELD_BYTES, control_serve, secret),
};

static const struct field verify_fields[] = {
	FIELD(FIELD_U32, control_verify, serial),
	FIELD(FIELD_U32, control_verify, listener),
	FIELD(FIELD_U32, control_verify, len),
	FIELD(FIELD_BYTES, control_verify, chain),
};

static const struct field alive_fields[] = {
	FIELD(FIELD_U32, control_alive, serial),
};

static const struct field verified_fields[] = {
	FIELD(FIELD_U32, control_verified, serial),
	FIELD(FIELD_U32, control_verified, error),
	FIELD(FIELD_U32, control_verified, cert_verdict.listener),
	FIELD(FIELD_U64, control_verified, cert_verdict.made_ms),
	FIELD(FIELD_BYTES, control_verified, cert_verdict.digest),
	FIELD(FIELD_STRING, control_verified, cert_verdict.subject),
	FIELD(FIELD_BYTES, control_verified, cert_verdict.seal),
};

static const struct control_layout rows[] = {
	FIRST_LAYOUT(BROKER_EV_CONFIGURE, configure_fields),
	LAYOUT(BROKER_EV_RUNNER_EXITED, runner_exited_fields),
	LAYOUT(BROKER_EV_RELOAD, configure_fields),
	LAYOUT(BROKER_EV_DRAIN, drain_fields),
	LAYOUT(BROKER_EV_LOAD, load_fields),
	LAYOUT(BROKER_EV_END, runner_exited_fields),
	EMPTY(BROKER_EV_STOP),
	EMPTY(BROKER_EV_LEAVE),
	LAYOUT(BROKER_EV_LISTENER, listener_fields),
	FIRST_LAYOUT(BROKER_REQ_READY, ready_fields),
	LAYOUT(BROKER_REQ_AUTHENTICATE, authenticate_fields),
	LAYOUT(BROKER_ANS_AUTHENTICATE, verdict_fields),
	LAYOUT(BROKER_REQ_OPEN, open_fields),
	LAYOUT(BROKER_ANS_OPEN, session_fields),
	LAYOUT(BROKER_REQ_RESUME, resume_fields),
	LAYOUT(BROKER_ANS_RESUME, session_fields),
	LAYOUT(BROKER_REQ_CLOSE, close_fields),
	LAYOUT(BROKER_ANS_CLOSE, closed_fields),
	EMPTY(BROKER_REQ_DONE),
	LAYOUT(BROKER_REQ_WATCH, resume_fields),
	LAYOUT(BROKER_ANS_WATCH, session_fields),
	LAYOUT(BROKER_REQ_REFUSED, refused_fields),
	LAYOUT(BROKER_EV_PING, ping_fields),
	EMPTY(BROKER_EV_IDLE),
	LAYOUT(BROKER_EV_PROBE, probe_fields),
	LAYOUT(BROKER_REQ_PROBED, probed_fields),
	EMPTY(BROKER_REQ_ALIVE),
	LAYOUT(BROKER_REQ_HELPER, helper_fields),
	LAYOUT(BROKER_REQ_METRICS, authenticate_fields),
	LAYOUT(BROKER_ANS_METRICS, metrics_fields),
	FIRST_LAYOUT(KEYS_CONFIGURE, key_fields),
	FIRST_LAYOUT(KEYS_SERVE, serve_fields),
	LAYOUT(KEYS_SIGN, sign_fields),
	LAYOUT(KEYS_SIGNED, signed_fields),
	FIRST_LAYOUT(KEYS_TRUST, trust_fields),
	LAYOUT(KEYS_VERIFY, verify_fields),
	LAYOUT(KEYS_VERIFIED, verified_fields),
	LAYOUT(KEYS_PING, alive_fields),
	LAYOUT(KEYS_ALIVE, alive_fields),
};

const struct control_layouts control_layouts_frontend = { rows, nitems(rows),
	FRONTEND_VERSION, FRONTEND_VERSION };
