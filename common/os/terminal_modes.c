/* SPDX-License-Identifier: ISC */
#include "terminal_modes.h"

#define END	     0
#define NO_CHARACTER 255 /* the mode's character is disabled */

/* From this number on nobody knows how long an argument is. */
#define UNKNOWN_FROM 160

enum kind { CHARACTER, INPUT, LOCAL, OUTPUT };

static const struct mode {
	uint8_t number;
	enum kind kind;
	tcflag_t value; /* a flag, or the index of a character */
} modes[] = {
	{ 1, CHARACTER, VINTR },
	{ 2, CHARACTER, VQUIT },
	{ 3, CHARACTER, VERASE },
	{ 4, CHARACTER, VKILL },
	{ 5, CHARACTER, VEOF },
	{ 6, CHARACTER, VEOL },
	{ 7, CHARACTER, VEOL2 },
	{ 8, CHARACTER, VSTART },
	{ 9, CHARACTER, VSTOP },
	{ 10, CHARACTER, VSUSP },
	{ 12, CHARACTER, VREPRINT },
	{ 13, CHARACTER, VWERASE },
	{ 14, CHARACTER, VLNEXT },
	{ 18, CHARACTER, VDISCARD },
	{ 30, INPUT, IGNPAR },
	{ 31, INPUT, PARMRK },
	{ 32, INPUT, INPCK },
	{ 33, INPUT, ISTRIP },
	{ 34, INPUT, INLCR },
	{ 35, INPUT, IGNCR },
	{ 36, INPUT, ICRNL },
	{ 37, INPUT, IUCLC },
	{ 38, INPUT, IXON },
	{ 39, INPUT, IXANY },
	{ 40, INPUT, IXOFF },
	{ 41, INPUT, IMAXBEL },
	{ 42, INPUT, IUTF8 },
	{ 50, LOCAL, ISIG },
	{ 51, LOCAL, ICANON },
	{ 53, LOCAL, ECHO },
	{ 54, LOCAL, ECHOE },
	{ 55, LOCAL, ECHOK },
	{ 56, LOCAL, ECHONL },
	{ 57, LOCAL, NOFLSH },
	{ 58, LOCAL, TOSTOP },
	{ 59, LOCAL, IEXTEN },
	{ 60, LOCAL, ECHOCTL },
	{ 61, LOCAL, ECHOKE },
	{ 70, OUTPUT, OPOST },
	{ 71, OUTPUT, OLCUC },
	{ 72, OUTPUT, ONLCR },
	{ 73, OUTPUT, OCRNL },
	{ 74, OUTPUT, ONOCR },
	{ 75, OUTPUT, ONLRET },
};

static tcflag_t *
flags_of(struct termios *t, enum kind kind)
{
	return kind == INPUT   ? &t->c_iflag
	       : kind == LOCAL ? &t->c_lflag
			       : &t->c_oflag;
}

static uint32_t
value_of(const struct termios *t, const struct mode *m)
{
	struct termios copy = *t;

	if (m->kind != CHARACTER)
		return (*flags_of(&copy, m->kind) & m->value) != 0;
	return t->c_cc[m->value] == _POSIX_VDISABLE ? NO_CHARACTER
						    : t->c_cc[m->value];
}

static void
set(struct termios *t, const struct mode *m, uint32_t value)
{
	if (m->kind == CHARACTER)
		t->c_cc[m->value] =
		    value >= NO_CHARACTER ? _POSIX_VDISABLE : (cc_t)value;
	else if (value != 0)
		*flags_of(t, m->kind) |= m->value;
	else
		*flags_of(t, m->kind) &= ~m->value;
}

size_t
terminal_modes_put(const struct termios *t, uint8_t *text)
{
	size_t n = 0;

	_Static_assert(
	    nitems(modes) * 5 + 1 <= TERMINAL_MODES_MAX, "all modes fit");
	for (size_t i = 0; i < nitems(modes); i++) {
		uint32_t value = value_of(t, &modes[i]);

		text[n++] = modes[i].number;
		for (int shift = 24; shift >= 0; shift -= 8)
			text[n++] = (uint8_t)(value >> shift);
	}
	text[n++] = END;
	return n;
}

void
terminal_modes_take(struct termios *t, const void *text, size_t len)
{
	const uint8_t *p = text;

	for (; len >= 5 && *p != END && *p < UNKNOWN_FROM; p += 5, len -= 5)
		for (size_t i = 0; i < nitems(modes); i++)
			if (modes[i].number == *p)
				set(t, &modes[i],
				    (uint32_t)p[1] << 24 |
					(uint32_t)p[2] << 16 |
					(uint32_t)p[3] << 8 | p[4]);
}
