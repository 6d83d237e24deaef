/* SPDX-License-Identifier: ISC */
/*
 * The tree of a YAML 1.1 text, as in the front matter of a skill and its
 * agents/openai.yaml. libyaml reads the text. Anchors, aliases, tags,
 * directives, keys that are no scalars and more than one document are refused,
 * each by its name and place. The files may be of anybody.
 */
#pragma once

#include "json.h"

#define YAML_VALUES_MAX 10000 /* values of one file */
#define YAML_DEPTH_MAX	64
#define YAML_ERROR_MAX	128

enum yaml_type {
	YAML_SCALAR,
	YAML_SEQUENCE,
	YAML_MAPPING,
};

struct yaml_value {
	enum yaml_type type;
	bool plain;	   /* a scalar without quotes */
	struct slice key;  /* if member of a mapping */
	struct slice text; /* YAML_SCALAR: decoded */
	struct yaml_value *first, *last, *next;
};

struct yaml_doc {
	struct json_doc arena;
	struct yaml_value *root; /* NULL: the text has no value */
	unsigned values;
	unsigned line, column; /* of the error */
	char error[YAML_ERROR_MAX];
};

/* Returns 0, or -EBADMSG with the error in doc. Call yaml_clear() in either
 * case. */
int yaml_parse(struct yaml_doc *doc, const char *text, size_t len);
void yaml_clear(struct yaml_doc *doc);

/*
 * Returns the member of a mapping, or NULL. *again becomes true if there is
 * more than one.
 */
const struct yaml_value *yaml_get(
    const struct yaml_value *mapping, const char *key, bool *again);

/* A plain scalar that stands for nothing: empty, ~, null. */
bool yaml_is_null(const struct yaml_value *v);

/* Nothing that is written counts as a mapping, or sequence, without members. */
bool yaml_is_mapping(const struct yaml_value *v);
bool yaml_is_sequence(const struct yaml_value *v);
