/* SPDX-License-Identifier: ISC */
#include "network_rules.h"

static bool
starts_with(struct slice s, struct slice prefix)
{
	return s.len >= prefix.len && !memcmp(s.ptr, prefix.ptr, prefix.len);
}

static struct slice
drop(struct slice s, size_t n)
{
	return (struct slice){ s.ptr + n, s.len - n };
}

/* Takes "*." or "**." from the front of a pattern's host. */
static void
parse_stars(struct network_rule *rule, struct slice *host)
{
	rule->any = slice_equal(*host, SLICE("*"));
	rule->itself = true;
	if (starts_with(*host, SLICE("**."))) {
		rule->below = true;
		*host = drop(*host, 3);
	} else if (starts_with(*host, SLICE("*."))) {
		rule->below = true;
		rule->itself = false;
		*host = drop(*host, 2);
	}
}

/* Returns 0, -EINVAL or -EILSEQ. Nothing is below an address. */
static int
parse_pattern(struct network_rule *rule, struct slice pattern)
{
	struct slice host, port;
	int err;

	host_port_split(pattern, &host, &port);
	if (host.len < pattern.len) {
		rule->every_port = slice_equal(port, SLICE("*"));
		rule->port = host_port_parse(port);
		if (rule->port == 0 && !rule->every_port)
			return -EINVAL;
	}
	parse_stars(rule, &host);
	if (rule->any)
		return 0;
	err = host_name_parse(&rule->host, host);
	return err == 0 && rule->below && rule->host.is_address ? -EINVAL : err;
}

/* The text is cut where it would not fit. */
static int __attribute__((format(printf, 3, 4)))
refuse(char error[NETWORK_RULE_ERROR_MAX], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, NETWORK_RULE_ERROR_MAX, fmt, ap);
	va_end(ap);
	return err;
}

int
network_rules_add(struct network_rules *r, enum network_effect effect,
    struct slice pattern, char error[NETWORK_RULE_ERROR_MAX])
{
	struct network_rule rule = { .effect = effect };
	int shown = pattern.len < 300 ? (int)pattern.len : 300;
	int err;

	if (r->count >= NETWORK_RULES_MAX)
		return refuse(error, -E2BIG,
		    "a list of hosts has at most %d patterns",
		    NETWORK_RULES_MAX);
	err = parse_pattern(&rule, pattern);
	if (err == -EILSEQ)
		return refuse(error, err,
		    "%.*s is not ASCII: write its xn-- form", shown,
		    pattern.ptr);
	if (err < 0)
		return refuse(error, err,
		    "unsupported domain pattern syntax: %.*s", shown,
		    pattern.ptr);
	if (rule.any && effect == NETWORK_DENY)
		return refuse(error, -EINVAL,
		    "* denies everything: name hosts, or *.example.com or "
		    "**.example.com");
	r->rules = xreallocarray(r->rules, r->count + 1, sizeof(*r->rules));
	r->rules[r->count++] = rule;
	return 0;
}

void
network_rules_clear(struct network_rules *r)
{
	free(r->rules);
	*r = (struct network_rules){ 0 };
}

bool
network_rules_have(const struct network_rules *r, enum network_effect effect)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->rules[i].effect == effect)
			return true;
	return false;
}

/* Tells whether `name` is below `parent`. */
static bool
is_below(const char *name, const char *parent)
{
	size_t len = strlen(name), tail = strlen(parent);

	return len > tail + 1 && name[len - tail - 1] == '.' &&
	       !strcmp(name + len - tail, parent);
}

/* An address is matched by no pattern but itself: "*" is every name. */
static bool
matches(const struct network_rule *rule, const struct host_name *host)
{
	if (rule->any)
		return !host->is_address || address_is_public(&host->address);
	if (rule->itself && !strcmp(rule->host.text, host->text))
		return true;
	return rule->below && !host->is_address &&
	       is_below(host->text, rule->host.text);
}

static bool
port_is_open(const struct network_rules *r, const struct network_rule *rule,
    uint16_t port, enum network_way way)
{
	if (rule->port != 0)
		return rule->port == port;
	return rule->every_port || r->every_port || way == NETWORK_HTTP ||
	       port == 80 || port == 443;
}

/* A denial without a port denies every port. */
static bool
denies(const struct network_rule *rule, const struct host_name *host,
    uint16_t port)
{
	return rule->effect == NETWORK_DENY && matches(rule, host) &&
	       (rule->port == 0 || rule->port == port);
}

static const struct network_rule *
find_denial(
    const struct network_rules *r, const struct host_name *host, uint16_t port)
{
	for (size_t i = 0; i < r->count; i++)
		if (denies(&r->rules[i], host, port))
			return &r->rules[i];
	return NULL;
}

const struct network_rule *
network_rules_denial(const struct network_rules *r,
    const struct in6_addr *address, uint16_t port)
{
	const struct network_rule *rule;
	struct in6_addr inside;
	struct host_name host;

	host_name_of(&host, address);
	rule = find_denial(r, &host, port);
	if (rule != NULL || !address_inside(address, &inside))
		return rule;
	host_name_of(&host, &inside);
	return find_denial(r, &host, port);
}

/* The best answer of the rules that do not deny. */
static enum network_answer
judge_allowances(const struct network_rules *r, const struct host_name *host,
    uint16_t port, enum network_way way, const struct network_rule **rule)
{
	enum network_answer answer = NETWORK_NOT_LISTED;

	for (size_t i = 0; i < r->count; i++) {
		const struct network_rule *at = &r->rules[i];

		if (at->effect == NETWORK_DENY || !matches(at, host))
			continue;
		if (!port_is_open(r, at, port, way)) {
			if (answer == NETWORK_NOT_LISTED) {
				answer = NETWORK_PORT_CLOSED;
				*rule = at;
			}
			continue;
		}
		*rule = at;
		if (at->effect == NETWORK_REVIEW)
			return NETWORK_REVIEWED;
		answer = NETWORK_ALLOWED;
	}
	return answer;
}

enum network_answer
network_rules_judge(const struct network_rules *r, const struct host_name *host,
    uint16_t port, enum network_way way, const struct network_rule **rule)
{
	*rule = host->is_address ? network_rules_denial(r, &host->address, port)
				 : find_denial(r, host, port);
	if (*rule != NULL)
		return NETWORK_DENIED;
	return judge_allowances(r, host, port, way, rule);
}

/*
 * Tells whether a rule names this address: it is the address, or "localhost"
 * for those of this host. A name that somebody else serves says nothing about
 * where it may lead.
 */
static bool
names_address(const struct network_rule *rule, const struct host_name *host,
    const struct in6_addr *address)
{
	if (rule->effect == NETWORK_DENY || rule->any || !rule->itself)
		return false;
	if (rule->host.is_address)
		return IN6_ARE_ADDR_EQUAL(&rule->host.address, address);
	return !strcmp(rule->host.text, "localhost") &&
	       !strcmp(host->text, "localhost") && address_is_loopback(address);
}

bool
network_rules_permit(const struct network_rules *r,
    const struct host_name *host, const struct in6_addr *address)
{
	if (r->allow_local || address_is_public(address))
		return true;
	for (size_t i = 0; i < r->count; i++)
		if (names_address(&r->rules[i], host, address))
			return true;
	return false;
}

void
network_rule_format(
    const struct network_rule *rule, char text[NETWORK_RULE_TEXT_MAX])
{
	bool ported = rule->port != 0 || rule->every_port;
	bool bracket = ported && strchr(rule->host.text, ':') != NULL;
	const char *stars = !rule->below ? "" : rule->itself ? "**." : "*.";
	int n = snprintf(text, NETWORK_RULE_TEXT_MAX, "%s%s%s%s",
	    bracket ? "[" : "", stars, rule->any ? "*" : rule->host.text,
	    bracket ? "]" : "");

	if (rule->every_port && n > 0 && n < NETWORK_RULE_TEXT_MAX)
		snprintf(text + n, NETWORK_RULE_TEXT_MAX - (size_t)n, ":*");
	if (rule->port != 0 && n > 0 && n < NETWORK_RULE_TEXT_MAX)
		snprintf(text + n, NETWORK_RULE_TEXT_MAX - (size_t)n, ":%u",
		    rule->port);
}
