/* SPDX-License-Identifier: ISC */
/*
 * What a resolver reads and writes of DNS (RFC 1035 section 4.1): one question,
 * and at most one address. Names are read by dn_expand(3). Pure.
 */
#pragma once

#include "base.h"

#define DNS_QUERY_MAX	 512 /* without EDNS; no question needs more */
#define DNS_QUESTION_MAX 259 /* a name, its type and class */
#define DNS_ANSWER_MAX	 (12 + DNS_QUESTION_MAX + 16)
/* An address stands for its name as long as the command lives. */
#define DNS_ANSWER_SECONDS 60

/* RCODE of RFC 1035, section 4.1.1. */
enum dns_code {
	DNS_OK = 0,
	DNS_BAD_FORMAT = 1,
	DNS_FAILED = 2,
	DNS_NO_NAME = 3,
	DNS_UNSUPPORTED = 4,
};

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };

struct dns_query {
	uint16_t id, flags, type;
	char name[256];
	uint8_t question[DNS_QUESTION_MAX]; /* as it was sent */
	size_t question_len;		    /* 0: there is none to repeat */
};

/*
 * Reads a query. Returns DNS_OK, the code to answer with, or -EBADMSG for what
 * gets no answer: no header, or itself an answer.
 */
int dns_query_read(struct dns_query *q, const void *data, size_t len);

/*
 * Writes the answer. address in host order; 0: no record. Returns its length.
 */
size_t dns_answer_write(uint8_t answer[DNS_ANSWER_MAX],
    const struct dns_query *q, enum dns_code code, uint32_t address);
