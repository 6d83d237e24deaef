/* SPDX-License-Identifier: ISC */
#include "redirect.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>

#include "base.h"
#include "buf.h"
#include "loopback.h"

#define MESSAGE_MAX 4096
#define TCP_TABLE   100 /* of routes; nobody else makes any here */
#define TCP_RULE    100 /* its priority: behind the kernel's local addresses */

/* Of the header of IPv4 (RFC 791). */
#define SOURCE_OFFSET	   12
#define DESTINATION_OFFSET 16

/* As linux/netfilter_ipv4.h has them, which does not go with netinet/in.h. */
#define PRIORITY_RAW  (-300)
#define PRIORITY_DNAT (-100)

#define TABLE "execd"

/* --- messages ------------------------------------------------------------ */

static size_t
begin(struct buf *b, unsigned type, unsigned flags)
{
	const struct nlmsghdr h = { .nlmsg_type = (uint16_t)type,
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };
	size_t at = b->len;

	buf_put(b, &h, sizeof(h));
	return at;
}

static void
end(struct buf *b, size_t at)
{
	uint32_t len = (uint32_t)(b->len - at);

	memcpy(b->data + at + offsetof(struct nlmsghdr, nlmsg_len), &len,
	    sizeof(len));
}

static void
put(struct buf *b, unsigned type, const void *value, size_t len)
{
	const struct nlattr a = { .nla_type = (uint16_t)type,
		.nla_len = (uint16_t)(NLA_HDRLEN + len) };
	static const char zeroes[NLA_ALIGNTO];

	buf_put(b, &a, sizeof(a));
	buf_put(b, value, len);
	buf_put(b, zeroes, NLA_ALIGN(len) - len);
}

static void
put_text(struct buf *b, unsigned type, const char *text)
{
	put(b, type, text, strlen(text) + 1);
}

/* nf_tables has its numbers in network order. */
static void
put_number(struct buf *b, unsigned type, uint32_t n)
{
	n = htonl(n);
	put(b, type, &n, sizeof(n));
}

static size_t
open_nest(struct buf *b, unsigned type)
{
	size_t at = b->len;

	put(b, type | NLA_F_NESTED, NULL, 0);
	return at;
}

static void
close_nest(struct buf *b, size_t at)
{
	uint16_t len = (uint16_t)(b->len - at);

	memcpy(
	    b->data + at + offsetof(struct nlattr, nla_len), &len, sizeof(len));
}

static void
put_value(struct buf *b, unsigned type, const void *value, size_t len)
{
	size_t at = open_nest(b, type);

	put(b, NFTA_DATA_VALUE, value, len);
	close_nest(b, at);
}

/* --- what a rule consists of --------------------------------------------- */

struct expression {
	size_t element, data;
};

static struct expression
open_expression(struct buf *b, const char *name)
{
	struct expression e = { .element = open_nest(b, NFTA_LIST_ELEM) };

	put_text(b, NFTA_EXPR_NAME, name);
	e.data = open_nest(b, NFTA_EXPR_DATA);
	return e;
}

static void
close_expression(struct buf *b, const struct expression *e)
{
	close_nest(b, e->data);
	close_nest(b, e->element);
}

static void
load_protocol(struct buf *b)
{
	struct expression e = open_expression(b, "meta");

	put_number(b, NFTA_META_KEY, NFT_META_L4PROTO);
	put_number(b, NFTA_META_DREG, NFT_REG_1);
	close_expression(b, &e);
}

static void
load_address(struct buf *b, unsigned offset)
{
	struct expression e = open_expression(b, "payload");

	put_number(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	put_number(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	put_number(b, NFTA_PAYLOAD_OFFSET, offset);
	put_number(b, NFTA_PAYLOAD_LEN, sizeof(struct in_addr));
	close_expression(b, &e);
}

/* (address & mask) ^ change, in host order. */
static void
change_address(struct buf *b, uint32_t mask, uint32_t change)
{
	struct expression e = open_expression(b, "bitwise");

	mask = htonl(mask);
	change = htonl(change);
	put_number(b, NFTA_BITWISE_SREG, NFT_REG_1);
	put_number(b, NFTA_BITWISE_DREG, NFT_REG_1);
	put_number(b, NFTA_BITWISE_LEN, sizeof(mask));
	put_value(b, NFTA_BITWISE_MASK, &mask, sizeof(mask));
	put_value(b, NFTA_BITWISE_XOR, &change, sizeof(change));
	close_expression(b, &e);
}

/* The rule goes on only if this holds. */
static void
compare(struct buf *b, enum nft_cmp_ops op, const void *value, size_t len)
{
	struct expression e = open_expression(b, "cmp");

	put_number(b, NFTA_CMP_SREG, NFT_REG_1);
	put_number(b, NFTA_CMP_OP, op);
	put_value(b, NFTA_CMP_DATA, value, len);
	close_expression(b, &e);
}

static void
lies_in(struct buf *b, unsigned offset, uint32_t network, unsigned bits)
{
	load_address(b, offset);
	change_address(b, UINT32_MAX << (32 - bits), 0);
	network = htonl(network);
	compare(b, NFT_CMP_EQ, &network, sizeof(network));
}

/* To the listener of the block of this address. */
static void
translate(struct buf *b, unsigned offset)
{
	const uint16_t port = htons(REDIRECT_PORT);
	struct expression e;

	load_address(b, offset);
	change_address(b, UINT32_MAX << REDIRECT_BLOCK_BITS, 1);
	e = open_expression(b, "immediate");
	put_number(b, NFTA_IMMEDIATE_DREG, NFT_REG_2);
	put_value(b, NFTA_IMMEDIATE_DATA, &port, sizeof(port));
	close_expression(b, &e);
	e = open_expression(b, "nat");
	put_number(b, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	put_number(b, NFTA_NAT_FAMILY, NFPROTO_IPV4);
	put_number(b, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	put_number(b, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
	close_expression(b, &e);
}

static void
leave_alone(struct buf *b)
{
	struct expression e = open_expression(b, "notrack");

	close_expression(b, &e);
}

/* --- rules ---------------------------------------------------------------- */

static size_t
begin_nft(struct buf *b, unsigned type, unsigned flags)
{
	const struct nfgenmsg g = { .nfgen_family = NFPROTO_IPV4 };
	size_t at = begin(b, NFNL_SUBSYS_NFTABLES << 8 | type, flags);

	buf_put(b, &g, sizeof(g));
	return at;
}

static void
put_border(struct buf *b, unsigned type)
{
	const struct nfgenmsg g = { .res_id = htons(NFNL_SUBSYS_NFTABLES) };
	size_t at = begin(b, type, 0);

	buf_put(b, &g, sizeof(g));
	end(b, at);
}

static void
put_table(struct buf *b)
{
	size_t at = begin_nft(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);

	put_text(b, NFTA_TABLE_NAME, TABLE);
	end(b, at);
}

/* A chain for what commands send, which has the name of its type. */
static void
put_chain(struct buf *b, const char *type, int priority)
{
	size_t at = begin_nft(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE), hook;

	put_text(b, NFTA_CHAIN_TABLE, TABLE);
	put_text(b, NFTA_CHAIN_NAME, type);
	hook = open_nest(b, NFTA_CHAIN_HOOK);
	put_number(b, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
	put_number(b, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	close_nest(b, hook);
	put_text(b, NFTA_CHAIN_TYPE, type);
	end(b, at);
}

struct rule {
	size_t message, list;
};

static struct rule
open_rule(struct buf *b, const char *chain, unsigned flags)
{
	struct rule r = { .message = begin_nft(b, NFT_MSG_NEWRULE,
			      NLM_F_CREATE | NLM_F_APPEND | flags) };

	put_text(b, NFTA_RULE_TABLE, TABLE);
	put_text(b, NFTA_RULE_CHAIN, chain);
	r.list = open_nest(b, NFTA_RULE_EXPRESSIONS);
	return r;
}

static void
close_rule(struct buf *b, const struct rule *r)
{
	close_nest(b, r->list);
	end(b, r->message);
}

/* What is not tracked is not translated, and costs the kernel nothing. */
static void
put_exceptions(struct buf *b)
{
	const uint8_t tcp = IPPROTO_TCP;
	struct rule r;

	put_chain(b, "filter", PRIORITY_RAW);
	r = open_rule(b, "filter", 0);
	load_protocol(b);
	compare(b, NFT_CMP_NEQ, &tcp, sizeof(tcp));
	leave_alone(b);
	close_rule(b, &r);
	r = open_rule(b, "filter", 0);
	lies_in(b, DESTINATION_OFFSET, INADDR_LOOPBACK & IN_CLASSA_NET, 8);
	leave_alone(b);
	close_rule(b, &r);
	/* Its answers would be dropped. So it meets no listener, at once. */
	r = open_rule(b, "filter", 0);
	lies_in(b, SOURCE_OFFSET, INADDR_LOOPBACK & IN_CLASSA_NET, 8);
	leave_alone(b);
	close_rule(b, &r);
}

/* The last message asks for an acknowledgement. If an earlier one fails, the
 * kernel answers that first, and makes nothing. */
static void
put_translations(struct buf *b)
{
	struct rule r;

	put_chain(b, "nat", PRIORITY_DNAT);
	r = open_rule(b, "nat", 0);
	lies_in(b, DESTINATION_OFFSET, LOOPBACK_NAMES, LOOPBACK_NAMES_BITS);
	translate(b, DESTINATION_OFFSET);
	close_rule(b, &r);
	r = open_rule(b, "nat", NLM_F_ACK);
	lies_in(b, SOURCE_OFFSET, LOOPBACK_NAMES, LOOPBACK_NAMES_BITS);
	translate(b, SOURCE_OFFSET);
	close_rule(b, &r);
}

static int
ask(int protocol, struct buf *b)
{
	_cleanup_close_ int fd =
	    socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	int err = fd < 0 ? -errno : loopback_ask(fd, b->data, b->len);

	buf_clear(b);
	return err;
}

static int
make_rules(void)
{
	struct buf b;

	buf_init(&b, MESSAGE_MAX);
	put_border(&b, NFNL_MSG_BATCH_BEGIN);
	put_table(&b);
	put_exceptions(&b);
	put_translations(&b);
	put_border(&b, NFNL_MSG_BATCH_END);
	return ask(NETLINK_NETFILTER, &b);
}

/* --- the route ------------------------------------------------------------ */

/* A connection must have a way before it can be given another one. */
static int
make_route(void)
{
	const struct rtmsg route = { .rtm_family = AF_INET,
		.rtm_table = TCP_TABLE,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = RT_SCOPE_LINK,
		.rtm_type = RTN_UNICAST };
	const uint32_t lo = LOOPBACK_INDEX, source = htonl(LOOPBACK_NAMES + 1);
	struct buf b;
	size_t at;

	buf_init(&b, MESSAGE_MAX);
	at = begin(&b, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE);
	buf_put(&b, &route, sizeof(route));
	put(&b, RTA_OIF, &lo, sizeof(lo));
	put(&b, RTA_PREFSRC, &source, sizeof(source));
	end(&b, at);
	return ask(NETLINK_ROUTE, &b);
}

static int
add_rule(uint8_t action, uint32_t priority, unsigned char bits)
{
	const struct fib_rule_hdr rule = { .family = AF_INET,
		.src_len = bits,
		.table = TCP_TABLE,
		.action = action };
	const uint32_t loopback = htonl(INADDR_LOOPBACK & IN_CLASSA_NET);
	const uint8_t tcp = IPPROTO_TCP;
	struct buf b;
	size_t at;

	buf_init(&b, MESSAGE_MAX);
	at = begin(&b, RTM_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
	buf_put(&b, &rule, sizeof(rule));
	put(&b, FRA_PRIORITY, &priority, sizeof(priority));
	put(&b, FRA_SRC, &loopback, sizeof(loopback));
	put(&b, FRA_IP_PROTO, &tcp, sizeof(tcp));
	end(&b, at);
	return ask(NETLINK_ROUTE, &b);
}

/* Everything but TCP keeps the routes that refuse it. So does TCP from
 * 127.0.0.0/8: the kernel would drop it where it arrives, and tell nobody. */
static int
route_tcp(void)
{
	int err = add_rule(FR_ACT_PROHIBIT, TCP_RULE - 1, 8);

	return err < 0 ? err : add_rule(FR_ACT_TO_TBL, TCP_RULE, 0);
}

int
redirect_prepare(void)
{
	int err = make_rules();

	if (err == 0)
		err = make_route();
	return err < 0 ? err : route_tcp();
}

/* --- whether it can be ---------------------------------------------------- */

/* Without a map of its users a new user namespace is good enough for this. */
static bool
try(int userns)
{
	int more = userns < 0 ? CLONE_NEWUSER : 0;

	return (userns < 0 || setns(userns, CLONE_NEWUSER) == 0) &&
	       unshare(CLONE_NEWNET | more) == 0 && make_rules() == 0;
}

int
redirect_try(int userns)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		_exit(!(try(userns) && write(ends[1], "", 1) == 1));
	close(ends[1]);
	if (pid > 0)
		return ends[0];
	close(ends[0]);
	return -EAGAIN;
}

int
redirect_is_possible(int fd, int timeout_ms)
{
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	int result = -ETIMEDOUT;
	char byte;

	if (poll(&answer, 1, timeout_ms) == 1)
		result = read(fd, &byte, 1) == 1;
	close(fd);
	return result;
}
