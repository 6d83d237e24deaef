/*
 * Lines of the log about those who never came in: a flood must not fill the
 * disk, and whoever reads the log must know that something is missing there.
 */
#ifndef STRANGER_H
#define STRANGER_H

#include <stdbool.h>

/* May there be another such line? If not it is counted, and the next second's
 * first line says how many there were. */
bool stranger_may_log(void);

#endif
