/* SPDX-License-Identifier: ISC */
#include "proxy_dns.h"

#include <arpa/nameser.h>
#include <resolv.h>

#define HEADER_BYTES	12
#define ANSWERS		0x8000 /* this is an answer */
#define RECURSION_ASKED 0x0100
#define RECURSION_DONE	0x0080
#define OPCODE		0x7800
/* A name that begins where the question does. */
#define SAME_NAME 0xc00c

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
put16(uint8_t *p, unsigned n)
{
	p[0] = (uint8_t)(n >> 8);
	p[1] = (uint8_t)n;
}

/* The question is what the answer repeats, so its name must be whole there. */
static int
read_question(struct dns_query *q, const uint8_t *data, size_t len)
{
	const uint8_t *at = data + HEADER_BYTES, *end = data + len;
	int name = dn_expand(data, end, at, q->name, sizeof(q->name));

	if (name < 0 || (size_t)name + 4 > DNS_QUESTION_MAX ||
	    end - at < name + 4 || (name > 1 && at[name - 1] != 0))
		return DNS_BAD_FORMAT;
	q->question_len = (size_t)name + 4;
	memcpy(q->question, at, q->question_len);
	q->type = get16(at + name);
	return get16(at + name + 2) == ns_c_in ? DNS_OK : DNS_UNSUPPORTED;
}

int
dns_query_read(struct dns_query *q, const void *data, size_t len)
{
	const uint8_t *p = data;

	*q = (struct dns_query){ 0 };
	if (len < HEADER_BYTES || get16(p + 2) & ANSWERS)
		return -EBADMSG;
	q->id = get16(p);
	q->flags = get16(p + 2);
	if (q->flags & OPCODE)
		return DNS_UNSUPPORTED;
	if (get16(p + 4) != 1)
		return DNS_BAD_FORMAT;
	return read_question(q, p, len);
}

static size_t
write_address(uint8_t *p, uint32_t address)
{
	put16(p, SAME_NAME);
	put16(p + 2, ns_t_a);
	put16(p + 4, ns_c_in);
	put16(p + 6, 0);
	put16(p + 8, DNS_ANSWER_SECONDS);
	put16(p + 10, 4);
	put16(p + 12, address >> 16);
	put16(p + 14, address & 0xffff);
	return 16;
}

size_t
dns_answer_write(uint8_t answer[DNS_ANSWER_MAX], const struct dns_query *q,
    enum dns_code code, uint32_t address)
{
	size_t n = HEADER_BYTES + q->question_len;

	memset(answer, 0, HEADER_BYTES);
	put16(answer, q->id);
	put16(answer + 2, ANSWERS | (q->flags & (OPCODE | RECURSION_ASKED)) |
			      RECURSION_DONE | code);
	put16(answer + 4, q->question_len > 0);
	put16(answer + 6, address != 0);
	memcpy(answer + HEADER_BYTES, q->question, q->question_len);
	return address == 0 ? n : n + write_address(answer + n, address);
}
