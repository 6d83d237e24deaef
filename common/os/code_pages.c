/* SPDX-License-Identifier: ISC */
#include "code_pages.h"

#include <link.h>
#include <sys/mman.h>

#include "base.h"

#define PAGE 4096u

/* Relocations are written to writable segments only, so nothing is lost. */
static int
give_back(struct dl_phdr_info *info, size_t size, void *arg)
{
	for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;
		uintptr_t begin = at & ~(uintptr_t)(PAGE - 1);

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			madvise((void *)begin, at + p->p_memsz - begin,
			    MADV_DONTNEED);
	}
	return 0;
}

void
code_pages_give_back(void)
{
	dl_iterate_phdr(give_back, NULL);
}
