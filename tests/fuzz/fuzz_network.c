/* SPDX-License-Identifier: ISC */
/*
 * network_rules, host_name, tls_hello: a host has one form, which is read again
 * as itself; a rule is written as it was read; a name lies within its record.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "host_name.h"
#include "network_rules.h"
#include "tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
read_host(struct slice text)
{
	struct host_name h, again;

	if (host_name_parse(&h, text) < 0)
		return;
	assert(strlen(h.text) > 0);
	assert(host_name_parse(
		   &again, (struct slice){ h.text, strlen(h.text) }) == 0);
	assert(strcmp(h.text, again.text) == 0);
	assert(h.is_address == again.is_address);
	assert(memcmp(&h.address, &again.address, sizeof(h.address)) == 0);
	if (h.is_address)
		address_is_public(&h.address);
}

static void
read_rule(struct slice text)
{
	char error[NETWORK_RULE_ERROR_MAX];
	char shown[NETWORK_RULE_TEXT_MAX], twice[NETWORK_RULE_TEXT_MAX];
	struct network_rules r = { 0 }, again = { 0 };

	if (network_rules_add(&r, NETWORK_ALLOW, text, error) == 0) {
		network_rule_format(&r.rules[0], shown);
		assert(network_rules_add(&again, NETWORK_ALLOW,
			   (struct slice){ shown, strlen(shown) }, error) == 0);
		network_rule_format(&again.rules[0], twice);
		assert(strcmp(shown, twice) == 0);
	}
	network_rules_clear(&r);
	network_rules_clear(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_free_ char *copy = xmalloc(len ? len : 1);
	struct slice text = { copy, len }, name;

	memcpy(copy, data, len);
	read_host(text);
	read_rule(text);
	if (tls_hello_read(copy, len, &name) == TLS_HELLO_NAME)
		assert(name.ptr >= copy && name.ptr + name.len <= copy + len);
	return 0;
}
