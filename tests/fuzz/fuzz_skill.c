/* SPDX-License-Identifier: ISC */
/*
 * Any bytes as SKILL.md, as agents/openai.yaml and as a plugin's manifest. What
 * is valid has a name within the limits; what is not has an error.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "discover.h"
#include "yaml_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_yaml(const char *text, size_t size)
{
	struct yaml_doc doc;

	if (yaml_parse(&doc, text, size) < 0)
		assert(doc.error[0] != '\0' && doc.line > 0);
	else
		assert(doc.values <= YAML_VALUES_MAX);
	yaml_clear(&doc);
}

static void
read_skill(const char *text, size_t size)
{
	struct skill_text s;

	if (skill_text_parse(&s, text, size, "directory") == 0) {
		assert(s.name != NULL && s.name[0] != '\0');
		assert(skill_characters(s.name) <= SKILL_NAME_MAX);
		assert(s.description != NULL && s.description[0] != '\0');
	} else {
		assert(s.error[0] != '\0');
	}
	skill_text_clear(&s);
}

/* What is written is JSON. */
static void
read_agents(const char *text, size_t size)
{
	char error[SKILL_ERROR_MAX] = "";
	struct json_writer w;
	struct json_doc doc;
	struct buf b;

	buf_init(&b, 64u << 20);
	json_writer_init(&w, &b);
	json_begin(&w, '{');
	if (skill_agents_write(&w, text, size, error) < 0)
		assert(error[0] != '\0');
	json_end(&w, '}');
	assert(json_parse(&doc, (const char *)b.data, b.len) == 0);
	json_clear(&doc);
	buf_clear(&b);
}

static void
read_manifest(const char *text, size_t size)
{
	char error[PLUGIN_ERROR_MAX] = "", *name;
	struct plugin_manifest m;

	name = plugin_manifest_name(text, size);
	if (plugin_manifest_parse(&m, text, size, error) < 0)
		assert(error[0] != '\0');
	else
		assert(name != NULL);
	plugin_manifest_clear(&m);
	free(name);
	free(plugin_remote_id(text, size, error));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xmalloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	read_yaml(text, size);
	read_skill(text, size);
	read_agents(text, size);
	read_manifest(text, size);
	free(text);
	return 0;
}
