/* SPDX-License-Identifier: ISC */
/*
 * The header of a signed token, read for the broker.
 */
#include "token_header.h"

#include <string.h>

#include "base64.h"
#include "json.h"

static void
copy_member(
    const struct json_value *header, const char *name, char *text, size_t size)
{
	const struct json_value *v = json_get(header, name);

	if (v != NULL && v->type == JSON_STRING && v->text.len < size &&
	    memchr(v->text.ptr, '\0', v->text.len) == NULL)
		memcpy(text, v->text.ptr, v->text.len);
}

void
token_header_read(struct slice token, struct control_token_header *header)
{
	const char *dot = memchr(token.ptr, '.', token.len);
	_cleanup_free_ uint8_t *bytes = NULL;
	struct json_doc doc;
	ssize_t n;

	*header = (struct control_token_header){ 0 };
	if (dot == NULL)
		return;
	n = base64_decode_url(token.ptr, (size_t)(dot - token.ptr), &bytes);
	if (n < 0)
		return;
	if (json_parse(&doc, (const char *)bytes, (size_t)n) == 0) {
		copy_member(doc.root, "alg", header->alg, sizeof(header->alg));
		copy_member(doc.root, "kid", header->kid, sizeof(header->kid));
	}
	json_clear(&doc);
}
