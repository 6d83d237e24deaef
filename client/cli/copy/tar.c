/* SPDX-License-Identifier: ISC */
#include "tar.h"

#include <assert.h>

#define TYPE_LONG_NAME	 'L' /* of GNU: the name of the next entry */
#define TYPE_LONG_TARGET 'K' /* of GNU: the target of the next entry */
#define TYPE_EXTENDED	 'x' /* of POSIX: more about the next entry */

/* The header of GNU tar. Numbers are octal text. */
struct header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], modified[12];
	char checksum[8];
	char type;
	char target[100];
	char magic[8];
	char rest[247];
};
static_assert(sizeof(struct header) == TAR_BLOCK, "a header is one block");

static void
put_octal(char *field, size_t width, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%0*llo", (int)width - 1,
	    (unsigned long long)value);
	memcpy(field, text, width);
}

/* The checksum counts its own field as blanks. */
static void
put_header(struct buf *b, struct header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned int sum = 0;

	memcpy(h->magic, "ustar  ", sizeof(h->magic));
	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	put_octal(h->checksum, 7, sum);
	buf_put(b, h, sizeof(*h));
}

/* An entry whose content belongs to the next one. */
static void
put_special(struct buf *b, char type, const char *content, size_t size)
{
	struct header h = { .name = "././@LongLink", .type = type };

	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), size);
	put_octal(h.modified, sizeof(h.modified), 0);
	put_header(b, &h);
	buf_put(b, content, size);
	tar_pad(b, size);
}

/* A header has room for 100 bytes; a longer text goes before it. */
static void
put_text(struct buf *b, char field[100], const char *text, char type)
{
	size_t len = strlen(text);

	if (len > 100)
		put_special(b, type, text, len + 1);
	memcpy(field, text, len < 100 ? len : 100);
}

/* The octal field has seconds only. A record is "LENGTH KEY=VALUE\n", with the
 * length of all of it; two digits are enough here. */
static void
put_modified(struct buf *b, const struct timespec *t)
{
	char record[64];
	long long sec = t->tv_sec;
	long nsec = t->tv_nsec;
	const char *sign = "";
	int len;

	if (sec < 0 && nsec > 0) {
		sec++;
		nsec = 1000000000 - nsec;
	}
	if (sec < 0 || (t->tv_sec < 0 && nsec > 0)) {
		sign = "-";
		sec = -sec;
	}
	len = snprintf(
	    record, sizeof(record), "00 mtime=%s%lld.%09ld\n", sign, sec, nsec);
	record[0] = (char)('0' + len / 10);
	record[1] = (char)('0' + len % 10);
	put_special(b, TYPE_EXTENDED, record, (size_t)len);
}

void
tar_put_entry(struct buf *b, const struct tar_entry *e)
{
	struct header h = { .type = (char)e->type };

	if (e->modified != NULL)
		put_modified(b, e->modified);
	put_text(b, h.name, e->name, TYPE_LONG_NAME);
	if (e->target != NULL)
		put_text(b, h.target, e->target, TYPE_LONG_TARGET);
	put_octal(h.mode, sizeof(h.mode), e->mode & 0777);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), e->size);
	put_octal(h.modified, sizeof(h.modified), 0);
	put_header(b, &h);
}

void
tar_pad(struct buf *b, size_t size)
{
	static const char zeros[TAR_BLOCK];

	if (size % TAR_BLOCK != 0)
		buf_put(b, zeros, TAR_BLOCK - size % TAR_BLOCK);
}

void
tar_put_end(struct buf *b)
{
	static const char zeros[2 * TAR_BLOCK];

	buf_put(b, zeros, sizeof(zeros));
}

/* --- Reading ------------------------------------------------------------- */

/* Octal text that a blank or a NUL may end, or after a byte with the highest
 * bit the number itself (GNU). Returns false for anything else. */
static bool
get_number(const char *field, size_t width, uint64_t *value)
{
	size_t i = 0;

	*value = 0;
	if ((unsigned char)field[0] == 0x80) {
		for (i = 1; i < width; i++) {
			if (*value >> 55 != 0)
				return false;
			*value = *value << 8 | (unsigned char)field[i];
		}
		return true;
	}
	for (; i < width && field[i] >= '0' && field[i] <= '7'; i++)
		*value = *value << 3 | (uint64_t)(field[i] - '0');
	return i > 0 && (i == width || field[i] == '\0' || field[i] == ' ');
}

static bool
is_sound(const struct header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	uint64_t told;
	unsigned int sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	/* It counts its own field as blanks. */
	for (size_t i = 0; i < sizeof(h->checksum); i++)
		sum += ' ' - (unsigned char)h->checksum[i];
	return get_number(h->checksum, sizeof(h->checksum), &told) &&
	       told == sum;
}

static void
end_content(struct tar_reader *r)
{
	if (r->long_name)
		r->name[r->name_len] = '\0';
	else if (r->inside)
		r->end(r->arg);
	r->long_name = r->inside = false;
}

/* A block of zeros ends the archive; what follows it is zeros, too. */
static int
take_header(struct tar_reader *r)
{
	struct header h;

	memcpy(&h, r->block, sizeof(h));
	r->have = 0;
	if (h.name[0] == '\0')
		return 0;
	if (!is_sound(&h) || !get_number(h.size, sizeof(h.size), &r->left) ||
	    r->left > INT64_MAX)
		return -EBADMSG;
	r->padding = (TAR_BLOCK - r->left % TAR_BLOCK) % TAR_BLOCK;
	r->long_name = h.type == TYPE_LONG_NAME;
	if (r->long_name) {
		r->name_len = 0;
		return r->left > TAR_NAME_MAX ? -EBADMSG : 0;
	}
	if (r->name_len == 0) {
		memcpy(r->name, h.name, sizeof(h.name));
		r->name[sizeof(h.name)] = '\0';
	}
	r->name_len = 0;
	r->inside = true;
	r->entry(r->arg, (enum tar_type)h.type, r->name);
	if (r->left == 0)
		end_content(r);
	return 0;
}

static void
take_content(struct tar_reader *r, const uint8_t *data, size_t n)
{
	if (r->long_name) {
		memcpy(r->name + r->name_len, data, n);
		r->name_len += n;
	} else {
		r->content(r->arg, data, n);
	}
	r->left -= n;
	if (r->left == 0)
		end_content(r);
}

int
tar_read(struct tar_reader *r, const void *data, size_t len)
{
	const uint8_t *p = data;
	int err = 0;

	while (len > 0 && err == 0) {
		uint64_t most = r->left > 0	 ? r->left
				: r->padding > 0 ? r->padding
						 : TAR_BLOCK - r->have;
		size_t n = len < most ? len : (size_t)most;

		if (r->left > 0) {
			take_content(r, p, n);
		} else if (r->padding > 0) {
			r->padding -= n;
		} else {
			memcpy(r->block + r->have, p, n);
			r->have += n;
			if (r->have == TAR_BLOCK)
				err = take_header(r);
		}
		p += n;
		len -= n;
	}
	return err;
}
