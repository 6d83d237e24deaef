/* SPDX-License-Identifier: ISC */
/*
 * What is sent to the server: URL, method, headers and body. It is checked
 * here, and changed by redirects (doc/protocol.md section 12).
 */
#include <ctype.h>
#include <strings.h>

#include "base.h"
#include "base64.h"
#include "http_exchange.h"
#include "http_text.h"

static int
fail(char *error, const char *fmt, struct slice s)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(error, ARGS_ERROR_MAX, fmt, (int)(s.len < 300 ? s.len : 300),
	    s.ptr);
#pragma GCC diagnostic pop
	return -EBADMSG;
}

/* Control characters are not allowed, except a tab. */
static bool
is_header_value(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return false;
	return true;
}

/* Returns the scheme before a colon, or an empty slice. */
static struct slice
scheme_of(struct slice url)
{
	size_t n = 0;

	while (n < url.len &&
	       (isalnum((unsigned char)url.ptr[n]) ||
		   (url.ptr[n] != '\0' && strchr("+-.", url.ptr[n]) != NULL)))
		n++;
	if (n == 0 || n == url.len || url.ptr[n] != ':' ||
	    !isalpha((unsigned char)url.ptr[0]))
		n = 0;
	return (struct slice){ url.ptr, n };
}

static bool
is_http(struct slice scheme)
{
	return (scheme.len == 4 && !strncasecmp(scheme.ptr, "http", 4)) ||
	       (scheme.len == 5 && !strncasecmp(scheme.ptr, "https", 5));
}

static int
take_url(struct http_message *m, struct slice url, char *error)
{
	_cleanup_free_ char *text = xstrndup(url.ptr, url.len);
	struct slice scheme = scheme_of(url);
	CURLUcode code;

	if (scheme.len == 0)
		return fail(error,
		    "http/request url is invalid: relative URL without a "
		    "base%.*s",
		    SLICE(""));
	if (!is_http(scheme))
		return fail(error,
		    "http/request only supports http and https URLs, got %.*s",
		    scheme);
	m->url = curl_url();
	code = strlen(text) == url.len
		   ? curl_url_set(m->url, CURLUPART_URL, text, CURLU_URLENCODE)
		   : CURLUE_MALFORMED_INPUT;
	if (code == CURLUE_OK)
		return 0;
	snprintf(error, ARGS_ERROR_MAX, "http/request url is invalid: %s",
	    curl_url_strerror(code));
	return -EBADMSG;
}

static void
add_header(struct http_message *m, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	/* A semicolon makes curl send a header without a value. */
	_cleanup_free_ char *line =
	    value_len > 0 ? xasprintf("%.*s: %.*s", (int)name_len, name,
				(int)value_len, value)
			  : xasprintf("%.*s;", (int)name_len, name);
	struct curl_slist *list = curl_slist_append(m->headers, line);

	if (list == NULL)
		abort();
	m->headers = list;
}

static bool
has_name(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(line, name, n) == 0 &&
	       (line[n] == ':' || line[n] == ';');
}

static bool
has_header(const struct http_message *m, const char *name)
{
	for (struct curl_slist *h = m->headers; h != NULL; h = h->next)
		if (has_name(h->data, name))
			return true;
	return false;
}

static void
remove_header(struct http_message *m, const char *name)
{
	struct curl_slist *old = m->headers, *kept = NULL;

	for (struct curl_slist *h = old; h != NULL; h = h->next)
		if (!has_name(h->data, name))
			kept = curl_slist_append(kept, h->data);
	curl_slist_free_all(old);
	m->headers = kept;
}

static int
take_header(struct http_message *m, const struct http_header *h, char *error)
{
	_cleanup_free_ char *variable = NULL, *value = NULL;
	const char *more = "";
	size_t len;

	if (!http_is_token(h->name))
		return fail(error,
		    "http/request header name is invalid: invalid HTTP header "
		    "name%.*s",
		    SLICE(""));
	if (h->env_var.ptr != NULL) {
		variable = xstrndup(h->env_var.ptr, h->env_var.len);
		more = getenv(variable);
	}
	if (more == NULL) {
		snprintf(error, ARGS_ERROR_MAX,
		    "http/request header %.*s requires executor environment "
		    "variable %.200s",
		    (int)(h->name.len < 200 ? h->name.len : 200), h->name.ptr,
		    variable);
		return -EBADMSG;
	}
	len = h->value.len + strlen(more);
	value = xmalloc(len + 1);
	memcpy(value, h->value.ptr, h->value.len);
	memcpy(value + h->value.len, more, strlen(more) + 1);
	if (!is_header_value(value, len))
		return fail(error,
		    "http/request header value is invalid for %.*s: failed to "
		    "parse header value",
		    h->name);
	add_header(m, h->name.ptr, h->name.len, value, len);
	return 0;
}

/*
 * Moves user and password from the URL to a header. A redirect to another host
 * then drops it, as it drops one that the client gave.
 */
static void
take_credentials(struct http_message *m)
{
	_cleanup_free_ char *pair = NULL, *value = NULL;
	char *user = NULL, *password = NULL;
	size_t n;

	curl_url_get(m->url, CURLUPART_USER, &user, CURLU_URLDECODE);
	curl_url_get(m->url, CURLUPART_PASSWORD, &password, CURLU_URLDECODE);
	if ((user != NULL || password != NULL) &&
	    !has_header(m, "Authorization")) {
		pair = xasprintf(
		    "%s:%s", user ? user : "", password ? password : "");
		n = base64_encoded_len(strlen(pair));
		value = xmalloc(n + 6);
		memcpy(value, "Basic ", 6);
		base64_encode(value + 6, pair, strlen(pair));
		add_header(m, "Authorization", 13, value, n + 6);
	}
	curl_url_set(m->url, CURLUPART_USER, NULL, 0);
	curl_url_set(m->url, CURLUPART_PASSWORD, NULL, 0);
	curl_free(user);
	curl_free(password);
}

int
http_message_init(
    struct http_message *m, const struct http_request_params *p, char *error)
{
	*m = (struct http_message){ 0 };
	if (!http_is_token(p->method))
		return fail(error,
		    "http/request method is invalid: invalid HTTP method%.*s",
		    SLICE(""));
	m->method = xstrndup(p->method.ptr, p->method.len);
	if (take_url(m, p->url, error) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < p->header_count; i++)
		if (take_header(m, &p->headers[i], error) < 0)
			return -EBADMSG;
	take_credentials(m);
	/* What http_decode.h knows. */
	if (!has_header(m, "Accept-Encoding"))
		add_header(m, "Accept-Encoding", 15, "zstd,gzip", 9);
	if (p->has_body) {
		m->body = xmalloc(p->body.len + 1);
		memcpy(m->body, p->body.ptr, p->body.len);
		m->body_len = p->body.len;
	}
	return 0;
}

void
http_message_clear(struct http_message *m)
{
	curl_url_cleanup(m->url);
	curl_slist_free_all(m->headers);
	free(m->method);
	free(m->body);
	*m = (struct http_message){ 0 };
}

/* --- redirects (Fetch standard, HTTP-redirect fetch) --------------------- */

static bool
is_redirect(long status)
{
	return (status >= 301 && status <= 303) || status == 307 ||
	       status == 308;
}

static void
become_get(struct http_message *m, long status)
{
	static const char *const about_body[] = { "Content-Encoding",
		"Content-Language", "Content-Location", "Content-Type",
		"Content-Length", "Transfer-Encoding" };

	if (status == 303
		? !strcmp(m->method, "HEAD") || !strcmp(m->method, "GET")
		: status > 303 || strcmp(m->method, "POST"))
		return;
	free(m->method);
	m->method = xstrdup("GET");
	free(m->body);
	m->body = NULL;
	m->body_len = 0;
	for (size_t i = 0; i < nitems(about_body); i++)
		remove_header(m, about_body[i]);
}

static char *
url_part(CURLU *url, CURLUPart part)
{
	char *text = NULL;

	curl_url_get(url, part, &text, CURLU_DEFAULT_PORT);
	return text;
}

static bool
is_same_part(CURLU *a, CURLU *b, CURLUPart part)
{
	char *x = url_part(a, part), *y = url_part(b, part);
	bool same = x && y && !strcasecmp(x, y);

	curl_free(x);
	curl_free(y);
	return same;
}

static bool
has_scheme(CURLU *url, const char *scheme)
{
	char *text = url_part(url, CURLUPART_SCHEME);
	bool same = text != NULL && strcasecmp(text, scheme) == 0;

	curl_free(text);
	return same;
}

/*
 * Sets the Referer to the page we come from, without its fragment; never from
 * https to http. Its credentials were removed before.
 */
static void
set_referer(struct http_message *m, CURLU *next)
{
	CURLU *from = curl_url_dup(m->url);
	char *text = NULL;

	remove_header(m, "Referer");
	curl_url_set(from, CURLUPART_FRAGMENT, NULL, 0);
	if (!(has_scheme(from, "https") && has_scheme(next, "http")) &&
	    curl_url_get(from, CURLUPART_URL, &text, 0) == CURLUE_OK)
		add_header(m, "Referer", 7, text, strlen(text));
	curl_free(text);
	curl_url_cleanup(from);
}

/*
 * Returns the URL that the response redirects to; NULL if the location is no
 * URL.
 */
static CURLU *
resolve_location(const struct http_message *m, const char *location)
{
	CURLU *next = curl_url_dup(m->url);

	if (curl_url_set(next, CURLUPART_URL, location, CURLU_URLENCODE) ==
	    CURLUE_OK)
		return next;
	curl_url_cleanup(next);
	return NULL;
}

static bool
leaves_http(const char *location)
{
	struct slice scheme =
	    scheme_of((struct slice){ location, strlen(location) });

	return scheme.len > 0 && !is_http(scheme);
}

bool
http_message_redirects(
    const struct http_message *m, long status, const char *location)
{
	CURLU *next;

	if (!is_redirect(status) || location == NULL)
		return false;
	if (leaves_http(location))
		return true;
	next = resolve_location(m, location);
	curl_url_cleanup(next);
	return next != NULL;
}

int
http_message_redirect(struct http_message *m, long status, const char *location)
{
	static const char *const secrets[] = { "Authorization", "Cookie",
		"Cookie2", "Proxy-Authorization", "WWW-Authenticate", "Host" };
	CURLU *next;

	if (!is_redirect(status) || location == NULL)
		return 0;
	if (leaves_http(location))
		return -EPROTONOSUPPORT;
	next = resolve_location(m, location);
	if (next == NULL)
		return 0;
	become_get(m, status);
	set_referer(m, next);
	if (!is_same_part(m->url, next, CURLUPART_HOST) ||
	    !is_same_part(m->url, next, CURLUPART_PORT))
		for (size_t i = 0; i < nitems(secrets); i++)
			remove_header(m, secrets[i]);
	curl_url_cleanup(m->url);
	m->url = next;
	take_credentials(m);
	return 1;
}
