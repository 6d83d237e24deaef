/* SPDX-License-Identifier: ISC */
/*
 * Starts a child inside a control group through the raw system call. The C
 * library has no function for it, and clone() cannot name a group.
 */
#include "clone_into.h"

#include <sched.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

#define INTO_CGROUP 0x200000000ull

/* The kernel's struct clone_args, version 2. */
struct arguments {
	uint64_t flags;
	uint64_t pidfd, child_tid, parent_tid;
	uint64_t exit_signal;
	uint64_t stack, stack_size;
	uint64_t tls;
	uint64_t set_tid, set_tid_size;
	uint64_t cgroup;
};

/* The child continues after the system call on an empty stack. It must
 * therefore call run() at once and never return. */
#if defined(__x86_64__)
static long
call(const struct arguments *a, int (*run)(void *arg), void *arg)
{
	register int (*fn)(void *) __asm__("r12") = run;
	register void *argument __asm__("r13") = arg;
	long ret = SYS_clone3;

	__asm__ volatile("syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "movq %%r13, %%rdi\n\t"
			 "callq *%%r12\n\t"
			 "movl %%eax, %%edi\n\t"
			 "movl %[exit], %%eax\n\t"
			 "syscall\n"
			 "1:"
			 : "+a"(ret)
			 : "D"(a), "S"(sizeof(*a)), "r"(fn),
			 "r"(argument), [exit] "i"(SYS_exit)
			 : "rcx", "r11", "memory", "cc");
	return ret;
}
#elif defined(__aarch64__)
static long
call(const struct arguments *a, int (*run)(void *arg), void *arg)
{
	register int (*fn)(void *) __asm__("x9") = run;
	register void *argument __asm__("x10") = arg;
	register const void *x0 __asm__("x0") = a;
	register size_t x1 __asm__("x1") = sizeof(*a);
	register long x8 __asm__("x8") = SYS_clone3;

	__asm__ volatile(
	    "svc #0\n\t"
	    "cbnz x0, 1f\n\t"
	    "mov x29, xzr\n\t"
	    "mov x0, x10\n\t"
	    "blr x9\n\t"
	    "mov x8, %[exit]\n\t"
	    "svc #0\n"
	    "1:"
	    : "+r"(x0)
	    : "r"(x1), "r"(x8), "r"(fn), "r"(argument), [exit] "i"(SYS_exit)
	    : "memory", "cc", "x30");
	return (long)x0;
}
#else
static long
call(const struct arguments *a, int (*run)(void *arg), void *arg)
{
	return -ENOSYS;
}
#endif

pid_t
clone_into(int group, int (*run)(void *arg), void *arg, char *stack,
    size_t stack_bytes, unsigned long flags)
{
	uintptr_t end = ((uintptr_t)stack + stack_bytes) & ~(uintptr_t)15;
	const struct arguments a = {
		.flags = flags | INTO_CGROUP,
		/* With CLONE_PARENT the kernel uses the signal of the
		 * caller. */
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
		.stack = (uintptr_t)stack,
		.stack_size = end - (uintptr_t)stack,
		.cgroup = (uint64_t)group,
	};

	return (pid_t)call(&a, run, arg);
}

void __asan_unpoison_memory_region(const volatile void *at, size_t bytes)
    __attribute__((weak));

void
own_stack_reuse(void *stack, size_t bytes)
{
	if (__asan_unpoison_memory_region != NULL)
		__asan_unpoison_memory_region(stack, bytes);
}
