/* SPDX-License-Identifier: ISC */
/*
 * Messages of the front-end's helpers: KEYS_* of control.h.
 */
#pragma once

#include "base.h"
#include "control_limits.h"

/* Programs that do for the front-end what it must not do itself. */
enum tls_helper {
	TLS_HELPER_KEYS,	 /* signs handshakes */
	TLS_HELPER_CERTIFICATES, /* verifies certificates of clients */
	TLS_HELPERS
};

/*
 * What the certificate process found out about a client's certificate. The
 * front-end carries it to the broker and cannot forge it (cert_verdict.h).
 */
struct control_cert_verdict {
	uint32_t listener;  /* the listener whose client CA was used */
	uint64_t made_ms;   /* now_ms() */
	uint8_t digest[32]; /* SHA-256 of the DER form */
	char subject[CONTROL_SUBJECT_MAX]; /* RFC 4514; empty if it is longer */
	uint8_t seal[CONTROL_SECRET_BYTES];
};

#define CONTROL_TBS_MAX	      1024 /* TLS needs at most 2 * 32 + 4 + 133 */
#define CONTROL_SIGNATURE_MAX 1024 /* RSA with 8192 bits */

/* The key that comes along. The number is control_listener.key. */
struct control_key {
	uint32_t key;
};

struct control_sign {
	uint32_t serial;
	uint32_t key;
	uint32_t scheme; /* SignatureScheme of RFC 8446 section 4.2.3 */
	uint32_t len;
	uint8_t tbs[CONTROL_TBS_MAX];
};

struct control_signed {
	uint32_t serial;
	uint32_t len; /* 0: signing failed */
	uint8_t signature[CONTROL_SIGNATURE_MAX];
};

/* Client CAs that come along. `listener` is control_listener.id. With `crl`, a
 * second descriptor holds revocation lists. Both are PEM. */
struct control_trust {
	uint32_t listener;
	bool crl;
};

struct control_serve {
	/* the secret that seals verdicts */
	uint8_t secret[CONTROL_SECRET_BYTES];
};

/* Asks whether the helper still answers. */
struct control_alive {
	uint32_t serial;
};

#define CONTROL_CHAIN_MAX (12u << 10)

struct control_verify {
	uint32_t serial;
	uint32_t listener;
	uint32_t len;
	/* DER, the client's certificate first */
	uint8_t chain[CONTROL_CHAIN_MAX];
};

struct control_verified {
	uint32_t serial;
	uint32_t error; /* X509_V_ERR_*; 0: valid */
	struct control_cert_verdict
	    cert_verdict; /* sealed only if it is valid */
};
