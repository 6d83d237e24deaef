/*
 * What libevent says when it cannot do what it was asked.
 */
#ifndef LOOP_H
#define LOOP_H

/* From now on that ends the program: an event that is not watched for never
 * comes, and somebody would wait for it for ever. */
void loop_trust(void);

#endif
