/* SPDX-License-Identifier: ISC */
#include "proxy_http.h"

#include "http_text.h"

#define METHOD_MAX 32

/* Headers that concern one connection only (RFC 9110 section 7.6.1). */
static const struct slice hop_by_hop[] = {
	{ "connection", 10 },
	{ "keep-alive", 10 },
	{ "proxy-authenticate", 18 },
	{ "proxy-authorization", 19 },
	{ "proxy-connection", 16 },
	{ "te", 2 },
	{ "upgrade", 7 },
};

static bool
is_hop_by_hop(struct slice name)
{
	for (size_t i = 0; i < nitems(hop_by_hop); i++)
		if (http_same_word(name, hop_by_hop[i]))
			return true;
	return false;
}

/* Returns the length of a head with its empty line, 0 or -E2BIG. */
static ssize_t
find_end(const char *data, size_t len)
{
	size_t seen = len < PROXY_HEAD_MAX ? len : PROXY_HEAD_MAX;
	const char *end = seen > 0 ? memmem(data, seen, "\r\n\r\n", 4) : NULL;

	if (end != NULL)
		return end + 4 - data;
	return len < PROXY_HEAD_MAX ? 0 : -E2BIG;
}

static bool
starts_with(struct slice s, struct slice prefix)
{
	return s.len >= prefix.len &&
	       http_same_word((struct slice){ s.ptr, prefix.len }, prefix);
}

/* Divides an authority. `standard` is the port if it names none; 0: it must. */
static bool
parse_authority(
    struct slice text, uint16_t standard, struct slice *host, uint16_t *port)
{
	struct slice number;

	if (text.len == 0 || memchr(text.ptr, '@', text.len) != NULL)
		return false;
	host_port_split(text, host, &number);
	if (host->len == text.len)
		*port = standard;
	else
		*port = host_port_parse(number);
	return *port != 0;
}

/* The absolute form (RFC 9112 section 3.2.2). */
static const char *
parse_absolute(struct proxy_request *r)
{
	struct slice rest, authority;
	size_t n = 0;

	if (starts_with(r->target, SLICE("https://")))
		return "https:// is asked for with CONNECT";
	if (!starts_with(r->target, SLICE("http://")))
		return "a proxy wants http://HOST/PATH or CONNECT";
	rest = http_drop(r->target, 7);
	while (n < rest.len && strchr("/?#", rest.ptr[n]) == NULL)
		n++;
	authority = (struct slice){ rest.ptr, n };
	r->path = http_drop(rest, n);
	if (memchr(rest.ptr, '#', rest.len) != NULL)
		return "a request has no fragment";
	return parse_authority(authority, 80, &r->host, &r->port)
		   ? NULL
		   : "the URI has no valid HOST or HOST:PORT";
}

/* The origin form (section 3.2.1). */
static const char *
parse_origin(struct proxy_request *r, const struct host_name *tunnel)
{
	r->host = (struct slice){ tunnel->text, strlen(tunnel->text) };
	r->port = PROXY_HTTP_PORT;
	r->path = r->target;
	r->any_name = tunnel->is_address;
	return !r->connect && r->target.len > 0 && r->target.ptr[0] == '/'
		   ? NULL
		   : "a tunnel to port 80 is for requests of its host";
}

static const char *
parse_target(struct proxy_request *r, const struct host_name *tunnel)
{
	if (tunnel != NULL)
		return parse_origin(r, tunnel);
	if (!r->connect)
		return parse_absolute(r);
	return parse_authority(r->target, 0, &r->host, &r->port)
		   ? NULL
		   : "CONNECT wants HOST:PORT";
}

static const char *
parse_request_line(
    struct proxy_request *r, const struct host_name *tunnel, struct slice line)
{
	if (!http_split(&line, ' ', &r->method) || r->method.len > METHOD_MAX ||
	    !http_is_token(r->method) || !http_split(&line, ' ', &r->target) ||
	    !http_is_visible_ascii(r->target) ||
	    (!slice_equal(line, SLICE("HTTP/1.1")) &&
		!slice_equal(line, SLICE("HTTP/1.0"))))
		return "this is no request of HTTP/1.1";
	r->connect = slice_equal(r->method, SLICE("CONNECT"));
	return parse_target(r, tunnel);
}

/* These headers say where the request goes and where its body ends. Two
 * servers that disagree about them would read different requests. */
struct framing {
	unsigned hosts, lengths, encodings, upgrades;
	bool same_host, websocket;
};

static void
take_host(struct framing *f, const struct proxy_request *r, struct slice value)
{
	struct slice host;
	uint16_t port;

	f->hosts++;
	f->same_host =
	    parse_authority(value, r->connect ? r->port : 80, &host, &port) &&
	    port == r->port && (r->any_name || http_same_word(host, r->host));
}

/* Returns false if it is no number of at most 18 digits. */
static bool
read_length(struct slice text, uint64_t *length)
{
	if (text.len == 0 || text.len > 18)
		return false;
	*length = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		*length = *length * 10 + (uint64_t)(text.ptr[i] - '0');
	}
	return true;
}

/* Returns what is wrong with a header, or NULL. */
static const char *
take_field(struct framing *f, struct proxy_request *r, struct slice name,
    struct slice value)
{
	if (http_same_word(name, SLICE("host"))) {
		take_host(f, r, value);
	} else if (http_same_word(name, SLICE("content-length"))) {
		f->lengths++;
		if (!read_length(value, &r->length))
			return "content-length is no number";
	} else if (http_same_word(name, SLICE("transfer-encoding"))) {
		f->encodings++;
		r->chunked = true;
		if (!http_same_word(value, SLICE("chunked")))
			return "transfer-encoding is not \"chunked\"";
	} else if (http_same_word(name, SLICE("connection"))) {
		r->upgrade |= http_list_has(value, SLICE("upgrade"));
	} else if (http_same_word(name, SLICE("upgrade"))) {
		f->upgrades++;
		f->websocket = http_same_word(value, SLICE("websocket"));
	}
	return NULL;
}

/* A Host other than the URI's would be used by one of two servers. */
static const char *
check_framing(const struct framing *f)
{
	if (f->hosts > 1)
		return "there are several Host headers";
	if (f->hosts == 1 && !f->same_host)
		return "Host is not the host of the URI";
	if (f->lengths + f->encodings > 1)
		return "the length of the body is said more than once";
	return NULL;
}

static const char *
parse_fields(struct proxy_request *r, struct slice rest)
{
	struct framing f = { 0 };
	struct slice name, value;
	const char *why = NULL;
	int n = 0;

	while (why == NULL && (n = http_next_field(&rest, &name, &value)) > 0)
		why = take_field(&f, r, name, value);
	if (n < 0)
		return "a header line is not valid";
	/* In HTTP/2 each request would name its own host. A server may go on
	 * without another protocol, so the header is left out. */
	r->upgrade =
	    r->upgrade && f.upgrades == 1 && f.websocket && !r->chunked;
	return why != NULL ? why : check_framing(&f);
}

ssize_t
proxy_request_parse(struct proxy_request *r, const struct host_name *tunnel,
    const char *data, size_t len, const char **why)
{
	ssize_t end = find_end(data, len);
	struct slice rest, line;

	*r = (struct proxy_request){ 0 };
	if (end <= 0)
		return end;
	r->head = rest = (struct slice){ data, (size_t)end - 2 };
	*why = http_next_line(&rest, &line) > 0
		   ? parse_request_line(r, tunnel, line)
		   : "a line ends without CR";
	if (*why == NULL)
		*why = parse_fields(r, rest);
	return *why == NULL ? end : -EBADMSG;
}

/* Tells whether Connection names this header, which then goes no further. */
static bool
is_named(struct slice fields, struct slice name)
{
	struct slice other, value;

	while (http_next_field(&fields, &other, &value) > 0)
		if (http_same_word(other, SLICE("connection")) &&
		    http_list_has(value, name))
			return true;
	return false;
}

static void
put_slice(struct buf *b, struct slice s)
{
	buf_put(b, s.ptr, s.len);
}

/* Copies what goes on to the other side. */
static void
copy_fields(struct buf *b, struct slice fields, bool upgrade)
{
	struct slice rest = fields, name, value;

	while (http_next_field(&rest, &name, &value) > 0) {
		bool kept = !is_hop_by_hop(name) && !is_named(fields, name);

		if (upgrade && http_same_word(name, SLICE("upgrade")))
			kept = true;
		if (!kept)
			continue;
		put_slice(b, name);
		buf_puts(b, ": ");
		put_slice(b, value);
		buf_puts(b, "\r\n");
	}
	buf_puts(b, upgrade ? "connection: upgrade\r\n\r\n"
			    : "connection: close\r\n\r\n");
}

void
proxy_request_write(struct buf *b, const struct proxy_request *r)
{
	struct slice fields = r->head, line;

	http_next_line(&fields, &line);
	put_slice(b, r->method);
	buf_puts(b, " ");
	if (r->path.len == 0 || r->path.ptr[0] != '/')
		buf_puts(b, "/");
	put_slice(b, r->path);
	buf_puts(b, " HTTP/1.1\r\n");
	copy_fields(b, fields, r->upgrade);
}

/* --- chunks ------------------------------------------------------------- */

#define CHUNK_DIGITS_MAX 15

static int
hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the next state, or -EBADMSG. */
static int
read_size(struct proxy_chunks *s, uint8_t c)
{
	int digit = hex_digit(c);

	if (digit >= 0) {
		s->left = s->left * 16 + (uint64_t)digit;
		return ++s->digits <= CHUNK_DIGITS_MAX ? CHUNK_SIZE : -EBADMSG;
	}
	if (s->digits == 0)
		return -EBADMSG;
	return c == '\r'  ? CHUNK_SIZE_LF
	       : c == ';' ? CHUNK_EXTENSION
			  : -EBADMSG;
}

/* A byte of a line, whose end has both of its characters. */
static int
read_line(uint8_t c, int same, int next)
{
	return c == '\r' ? next : c == '\n' || c == '\0' ? -EBADMSG : same;
}

static int
expect(uint8_t c, char wanted, int next)
{
	return c == (uint8_t)wanted ? next : -EBADMSG;
}

static int
read_byte(struct proxy_chunks *s, uint8_t c)
{
	switch (s->state) {
	case CHUNK_SIZE:
		return read_size(s, c);
	case CHUNK_EXTENSION:
		return read_line(c, CHUNK_EXTENSION, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		s->digits = 0;
		return expect(
		    c, '\n', s->left > 0 ? CHUNK_DATA : CHUNK_TRAILER);
	case CHUNK_DATA_CR:
		return expect(c, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		return expect(c, '\n', CHUNK_SIZE);
	case CHUNK_TRAILER:
		return read_line(c, CHUNK_TRAILER_LINE, CHUNK_LAST_LF);
	case CHUNK_TRAILER_LINE:
		return read_line(c, CHUNK_TRAILER_LINE, CHUNK_TRAILER_LF);
	case CHUNK_TRAILER_LF:
		return expect(c, '\n', CHUNK_TRAILER);
	default:
		return expect(c, '\n', CHUNK_DONE);
	}
}

/* Returns how many bytes of the data are there. */
static size_t
skip_data(struct proxy_chunks *s, size_t len)
{
	size_t n = len < s->left ? len : (size_t)s->left;

	s->left -= n;
	if (s->left == 0)
		s->state = CHUNK_DATA_CR;
	return n;
}

ssize_t
proxy_chunks_read(struct proxy_chunks *s, const uint8_t *data, size_t len)
{
	size_t at = 0;

	while (at < len && s->state != CHUNK_DONE) {
		int next;

		if (s->state == CHUNK_DATA) {
			at += skip_data(s, len - at);
			s->line = 0;
			continue;
		}
		next = read_byte(s, data[at++]);
		if (next < 0 || ++s->line > PROXY_HEAD_MAX)
			return -EBADMSG;
		s->state = (enum proxy_chunk_state)next;
	}
	return (ssize_t)at;
}

/* --- responses ---------------------------------------------------------- */

/* Returns false if it is no status line. */
static bool
parse_status(struct proxy_response *r, struct slice line)
{
	if (line.len < 12 || !starts_with(line, SLICE("HTTP/1.")) ||
	    line.ptr[8] != ' ' || (line.len > 12 && line.ptr[12] != ' '))
		return false;
	for (int i = 9; i < 12; i++) {
		if (line.ptr[i] < '0' || line.ptr[i] > '9')
			return false;
		r->status = r->status * 10 + (unsigned)(line.ptr[i] - '0');
	}
	r->no_body = r->status < 200 || r->status == 204 || r->status == 304;
	return r->status >= 100;
}

/* A body with transfer-encoding ends as that says, or with the connection. */
static void
find_length(struct proxy_response *r, struct slice rest)
{
	struct slice name, value;
	bool encoded = false;

	while (http_next_field(&rest, &name, &value) > 0) {
		if (http_same_word(name, SLICE("transfer-encoding")))
			encoded = true;
		if (http_same_word(name, SLICE("content-length")) &&
		    read_length(value, &r->length))
			r->has_length = true;
	}
	r->has_length = r->has_length && !encoded;
}

ssize_t
proxy_response_convert(
    struct buf *b, struct proxy_response *r, const char *data, size_t len)
{
	ssize_t end = find_end(data, len);
	struct slice fields, line, rest, name, value;
	int n;

	*r = (struct proxy_response){ 0 };
	if (end <= 0)
		return end;
	fields = (struct slice){ data, (size_t)end - 2 };
	if (http_next_line(&fields, &line) <= 0 || !parse_status(r, line))
		return -EBADMSG;
	rest = fields;
	while ((n = http_next_field(&rest, &name, &value)) > 0)
		continue;
	if (n < 0)
		return -EBADMSG;
	find_length(r, fields);
	put_slice(b, line);
	buf_puts(b, "\r\n");
	copy_fields(b, fields, r->status == 101);
	return end;
}
