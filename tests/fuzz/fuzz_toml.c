/* SPDX-License-Identifier: ISC */
/*
 * Any bytes as a configuration file: read, part of it picked, written, and
 * what was written is read again.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct toml_doc doc, again;
	struct buf b;

	buf_init(&b, 64 * size + 4096 * TOML_DEPTH_MAX);
	if (toml_parse(&doc, (const char *)data, size) == 0) {
		for (struct toml_value *v = doc.root.first; v; v = v->next)
			assert(toml_pick(&doc, &v->key, 1));
		toml_write(&b, &doc);
		assert(toml_parse(&again, (const char *)b.data, b.len) == 0);
		toml_clear(&again);
	} else {
		assert(doc.error[0] != '\0' && doc.line > 0);
	}
	buf_clear(&b);
	toml_clear(&doc);
	return 0;
}
