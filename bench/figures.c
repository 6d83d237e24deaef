/* SPDX-License-Identifier: ISC */
/*
 * What was measured.
 */
#include "figures.h"

static bool shown; /* something: a comma is due */

void
figures_add(struct figures *f, uint64_t ns)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 256;
		f->ns = xreallocarray(f->ns, f->cap, sizeof(*f->ns));
	}
	f->ns[f->n++] = ns;
}

void
figures_clear(struct figures *f)
{
	free(f->ns);
	*f = (struct figures){ 0 };
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double
figures_quantile_us(struct figures *f, double q)
{
	if (f->n == 0)
		return 0;
	qsort(f->ns, f->n, sizeof(*f->ns), compare);
	return (double)f->ns[(size_t)((double)(f->n - 1) * q)] / 1e3;
}

static void
show_name(const char *name)
{
	printf("%s\"%s\":", shown ? "," : "{", name);
	shown = true;
}

void
figures_show_us(const char *name, struct figures *f)
{
	show_name(name);
	printf("{\"n\":%zu,\"p50\":%.2f,\"p99\":%.2f}", f->n,
	    figures_quantile_us(f, .5), figures_quantile_us(f, .99));
}

void
figures_show(const char *name, double value)
{
	show_name(name);
	printf("%.9g", value);
}

void
figures_end(void)
{
	puts(shown ? "}" : "{}");
}
