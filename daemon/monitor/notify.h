/*
 * Tells systemd how we are (sd_notify(3), the protocol as documented there;
 * without its library). Without NOTIFY_SOCKET it tells nobody.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

/* Before the environment is passed on. */
void notify_init(void);

/* "READY=1"; several assignments are lines. */
void notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
