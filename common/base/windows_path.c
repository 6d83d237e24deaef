/* SPDX-License-Identifier: ISC */
#include "windows_path.h"

#include "utf8.h"

bool
windows_is_separator(char c)
{
	return c == '/' || c == '\\';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool
has_drive(struct slice text)
{
	return text.len >= 2 && is_letter(text.ptr[0]) && text.ptr[1] == ':';
}

bool
windows_path_begins(struct slice text)
{
	return has_drive(text) || (text.len > 0 && text.ptr[0] == '\\') ||
	       (text.len >= 2 && windows_is_separator(text.ptr[0]) &&
		   windows_is_separator(text.ptr[1]));
}

/* "\\?\C:\x" and "\\.\C:" go around all rules about names. */
static bool
is_device_path(struct slice text)
{
	return text.len >= 3 && windows_is_separator(text.ptr[0]) &&
	       (windows_is_separator(text.ptr[1]) || text.ptr[1] == '?') &&
	       (text.ptr[2] == '?' || text.ptr[2] == '.');
}

const char *
windows_path_form_fault(struct slice text)
{
	if (is_device_path(text))
		return "a path of a device is not permitted";
	if (text.len >= 2 && windows_is_separator(text.ptr[0]) &&
	    windows_is_separator(text.ptr[1]))
		return "a path of the network (UNC) is not permitted";
	if (!has_drive(text))
		return "it does not begin with a drive letter and a colon";
	if (text.len > 2 && !windows_is_separator(text.ptr[2]))
		return "it depends on the current directory of its drive";
	return NULL;
}

bool
windows_path_next(struct slice *rest, struct slice *name)
{
	do {
		while (rest->len > 0 && windows_is_separator(*rest->ptr)) {
			rest->ptr++;
			rest->len--;
		}
		*name = (struct slice){ rest->ptr, 0 };
		while (name->len < rest->len &&
		       !windows_is_separator(rest->ptr[name->len]))
			name->len++;
		rest->ptr += name->len;
		rest->len -= name->len;
	} while (name->len == 1 && *name->ptr == '.');
	return name->len > 0;
}

bool
windows_name_equal(struct slice a, struct slice b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (fold(a.ptr[i]) != fold(b.ptr[i]))
			return false;
	return true;
}

/* Tells whether s is a digit after COM or LPT. The superscripts one to three
 * count as well. */
static bool
is_port_digit(struct slice s)
{
	if (s.len == 1)
		return *s.ptr >= '0' && *s.ptr <= '9';
	return s.len == 2 && s.ptr[0] == '\xc2' &&
	       (s.ptr[1] == '\xb9' || s.ptr[1] == '\xb2' || s.ptr[1] == '\xb3');
}

/* What follows the first dot does not matter, nor do blanks before it. */
static bool
is_device(struct slice name)
{
	static const char *const devices[] = { "con", "prn", "aux", "nul",
		"conin$", "conout$", "clock$" };
	const char *dot = memchr(name.ptr, '.', name.len);
	struct slice port;

	if (dot != NULL)
		name.len = (size_t)(dot - name.ptr);
	while (name.len > 0 && name.ptr[name.len - 1] == ' ')
		name.len--;
	for (size_t i = 0; i < nitems(devices); i++)
		if (windows_name_equal(
			name, (struct slice){ devices[i], strlen(devices[i]) }))
			return true;
	if (name.len < 4)
		return false;
	port = (struct slice){ name.ptr + 3, name.len - 3 };
	name.len = 3;
	return is_port_digit(port) &&
	       (windows_name_equal(name, SLICE("com")) ||
		   windows_name_equal(name, SLICE("lpt")));
}

/* Only a name of the other system can hold these. */
static const char *
character_fault(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (c == ':')
			return "has a colon: there are no alternate streams";
		if (c < ' ')
			return "has a control character";
		if (strchr("\"*<>?|/\\", c) != NULL)
			return "has a character that no name of Windows has";
	}
	return NULL;
}

const char *
windows_name_fault(struct slice name)
{
	const char *fault = character_fault(name);
	char last = name.len > 0 ? name.ptr[name.len - 1] : ' ';

	if (name.len == 2 && memcmp(name.ptr, "..", 2) == 0)
		return "is not permitted";
	if (fault != NULL)
		return fault;
	if (last == '.' || last == ' ')
		return "ends in a dot or a blank, which Windows ignores";
	if (is_device(name))
		return "is the name of a device";
	if (utf8_check(0, (const uint8_t *)name.ptr, name.len) != 0)
		return "is not UTF-8";
	return NULL;
}
