/*
 * The template of an identity's runners.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

/*
 * Forks runners on the monitor's orders, until it hangs up. Each runner is the
 * monitor's child and goes on in `become`, alone: its user for good, in its
 * namespaces and control groups, its control channel on CONTROL_FD and nothing
 * above. Never returns.
 */
void template_run(void (*become)(void)) __attribute__((noreturn));

#endif
