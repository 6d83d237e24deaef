/* SPDX-License-Identifier: ISC */
#include "screen.h"

#include <ctype.h>

/* Private modes of DEC and xterm, in the order in which they are taken back: a
 * program sets them by "ESC [ ? MODE h" and resets them by "l"
 * (console_codes(4); "XTerm Control Sequences", DECSET). */
static const struct {
	unsigned int mode;
	bool usual; /* it is set unless a program resets it */
} known[] = {
	{ 1, false },	 /* cursor keys of applications */
	{ 1000, false }, /* mouse, and its ways to report */
	{ 1002, false }, { 1003, false }, { 1006, false },
	{ 1004, false }, /* focus */
	{ 2004, false }, /* brackets around what is pasted */
	{ 47, false },	 /* the alternate screen */
	{ 1047, false }, { 1049, false },
	{ 25, true }, /* the cursor is visible */
};

static void
take_modes(struct screen *s, bool set)
{
	for (size_t i = 0; i <= s->count; i++)
		for (size_t k = 0; k < nitems(known); k++) {
			if (known[k].mode != s->modes[i])
				continue;
			s->changed &= ~(1u << k);
			if (set != known[k].usual)
				s->changed |= 1u << k;
		}
}

static void
begin(struct screen *s)
{
	s->state = SCREEN_MODE;
	s->modes[0] = 0;
	s->count = 0;
}

static void
take_mode(struct screen *s, char c)
{
	if (isdigit((unsigned char)c) && s->modes[s->count] < 10000) {
		s->modes[s->count] =
		    s->modes[s->count] * 10 + (unsigned int)(c - '0');
		return;
	}
	if (c == ';' && s->count + 1 < nitems(s->modes)) {
		s->modes[++s->count] = 0;
		return;
	}
	if (c == 'h' || c == 'l')
		take_modes(s, c == 'h');
	s->state = SCREEN_TEXT;
}

void
screen_watch(struct screen *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = data[i];

		if (c == '\033')
			s->state = SCREEN_ESCAPE;
		else if (s->state == SCREEN_ESCAPE)
			s->state = c == '[' ? SCREEN_BRACKET : SCREEN_TEXT;
		else if (s->state == SCREEN_BRACKET && c == '?')
			begin(s);
		else if (s->state == SCREEN_MODE)
			take_mode(s, c);
		else
			s->state = SCREEN_TEXT;
	}
}

void
screen_restore(struct screen *s, char text[SCREEN_RESTORE_MAX])
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t k = 0; k < nitems(known); k++)
		if (s->changed & 1u << k)
			len += (size_t)snprintf(text + len,
			    SCREEN_RESTORE_MAX - len, "\033[?%u%c",
			    known[k].mode, known[k].usual ? 'h' : 'l');
	s->changed = 0;
}
