/*
 * The audit log: events, and what happens when they cannot be written.
 */
#include "audit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit_sinks.h"
#include "control.h"
#include "log.h"
#include "util.h"

/* Of one line: two texts of CONTROL_COMMAND_MAX bytes, each of them escaped as
 * six, and names, a peer and a reason, each of a bounded length. */
#define EVENT_MAX (12u * CONTROL_COMMAND_MAX + (16u << 10))

/* Members that are fields of the journal as well. */
static const struct {
	const char *key, *field;
} journal_fields[] = {
	{ "event", "EXECD_EVENT" },
	{ "session", "EXECD_SESSION" },
	{ "identity", "EXECD_IDENTITY" },
	{ "process", "EXECD_PROCESS" },
};

void
audit_rules_init(struct audit_rules *a)
{
	*a = (struct audit_rules){ .required = true };
	for (size_t i = 0; i < AUDIT_PLACES; i++)
		a->sinks[i].fd = -1;
}

void
audit_rules_close(struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++) {
		if (a->sinks[i].fd >= 0)
			close(a->sinks[i].fd);
		a->sinks[i].fd = -1;
	}
}

bool
audit_is_kept(const struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++)
		if (a->sinks[i].path != NULL)
			return true;
	return false;
}

int
audit_check(const struct audit_rules *a, const char **place)
{
	int err = 0;

	for (size_t i = 0; i < AUDIT_PLACES && err == 0; i++) {
		*place = a->sinks[i].path;
		if (*place != NULL)
			err = audit_kinds[i].check(&a->sinks[i]);
	}
	return err;
}

int
audit_open(struct audit_rules *a, const char **place)
{
	int err = 0;

	for (size_t i = 0; i < AUDIT_PLACES && err == 0; i++) {
		*place = a->sinks[i].path;
		if (*place != NULL)
			err = audit_kinds[i].open(&a->sinks[i]);
	}
	return err;
}

/* --- events ------------------------------------------------------------- */

/* RFC 3339, in UTC. */
static void
format_now(char text[40])
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, 40 - n, ".%03ldZ", now.tv_nsec / 1000000);
}

void
audit_begin(struct audit_event *e, const char *event)
{
	char now[40];

	format_now(now);
	buf_init(&e->text, EVENT_MAX);
	buf_init(&e->fields, EVENT_MAX);
	json_writer_init(&e->json, &e->text);
	json_begin(&e->json, '{');
	audit_string(e, "time", now);
	audit_string(e, "event", event);
}

void
audit_string(struct audit_event *e, const char *key, const char *value)
{
	json_key(&e->json, key);
	json_cstring(&e->json, value);
	for (size_t i = 0; i < nitems(journal_fields); i++)
		if (strcmp(journal_fields[i].key, key) == 0)
			audit_put_field(&e->fields, journal_fields[i].field,
			    (struct slice){ value, strlen(value) });
}

void
audit_flag(struct audit_event *e, const char *key, bool value)
{
	json_key(&e->json, key);
	json_bool(&e->json, value);
}

void
audit_number(struct audit_event *e, const char *key, uint64_t value)
{
	json_key(&e->json, key);
	json_u64(&e->json, value);
}

/* --- to where they go --------------------------------------------------- */

static int
put(struct audit_rules *a, size_t place, const struct audit_event *e)
{
	struct audit_sink *s = &a->sinks[place];
	const struct audit_record r = {
		.text = { (char *)e->text.data, e->text.len },
		.fields = { (char *)e->fields.data, e->fields.len },
		.wait = !s->failing,
	};

	return audit_kinds[place].write(s, &r);
}

/* What is missing is on record before what is not. */
static int
put_lost(struct audit_rules *a, size_t place)
{
	struct audit_sink *s = &a->sinks[place];
	struct audit_event e;
	int err;

	audit_begin(&e, "records-lost");
	audit_number(&e, "lost", s->lost);
	json_end(&e.json, '}');
	err = put(a, place, &e);
	buf_clear(&e.text);
	buf_clear(&e.fields);
	if (err < 0)
		return err;
	log_warn(0, "%s %s: works again, %llu records are missing",
	    audit_kinds[place].name, s->path, (unsigned long long)s->lost);
	s->failing = false;
	s->lost = 0;
	return 0;
}

static int
deliver(struct audit_rules *a, size_t place, const struct audit_event *e)
{
	struct audit_sink *s = &a->sinks[place];
	int err = s->failing ? put_lost(a, place) : 0;

	if (err == 0)
		err = e->text.failed ? -E2BIG : put(a, place, e);
	a->records += err == 0;
	a->lost += err < 0;
	if (err == 0)
		return 0;
	/* Once: a log that fails must not fill another. */
	if (!s->failing)
		log_error(err, "%s %s", audit_kinds[place].name, s->path);
	s->failing = true;
	s->lost++;
	return err;
}

int
audit_end(struct audit_event *e, struct audit_rules *a)
{
	int first = 0;

	json_end(&e->json, '}');
	for (size_t i = 0; i < AUDIT_PLACES; i++) {
		int err = a->sinks[i].path != NULL ? deliver(a, i, e) : 0;

		if (first == 0)
			first = err;
	}
	buf_clear(&e->text);
	buf_clear(&e->fields);
	return first;
}

bool
audit_is_failing(const struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++)
		if (a->sinks[i].failing)
			return true;
	return false;
}

bool
audit_retry(struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++)
		if (a->sinks[i].failing)
			put_lost(a, i);
	return !audit_is_failing(a);
}
