/* SPDX-License-Identifier: ISC */
/*
 * What execd announces beyond the peer (execd-protocol(7)), as the client
 * uses it. Without one, the matching function says -ENOTSUP or execctl(1)
 * says what it does instead.
 */
#ifndef CAPABILITIES_H
#define CAPABILITIES_H

#define CAN_CLOSE_STDIN	       "processCloseStdin"
#define CAN_RESIZE	       "processResize"
#define CAN_SIGNAL_TARGET      "processSignalTarget"
#define CAN_TERMINATE_GRACEFUL "processTerminateGraceful"
#define CAN_TIMEOUT	       "processTimeout"
#define CAN_EXIT_DETAILS       "processExitDetails"
#define CAN_START_ID	       "processStartId"
#define CAN_CHMOD	       "fsChmod"
#define CAN_SYMLINK	       "fsSymlink"
#define CAN_MOVE	       "fsMove"
#define CAN_SET_TIMES	       "fsSetTimes"
#define CAN_DETAILS	       "fsDetails"
#define CAN_END_SESSION	       "sessionEnd"

#endif
