/* SPDX-License-Identifier: ISC */
/*
 * The capabilities that execd announces beyond the peer (execd-protocol(7)), as
 * far as the client uses them. Without a capability the matching function
 * returns -ENOTSUP, or execctl does what execctl(1) describes instead.
 */
#pragma once

#define CAN_CLOSE_STDIN	       "processCloseStdin"
#define CAN_RESIZE	       "processResize"
#define CAN_MODES	       "processTerminalModes"
#define CAN_SIGNAL_TARGET      "processSignalTarget"
#define CAN_TERMINATE_GRACEFUL "processTerminateGraceful"
#define CAN_TIMEOUT	       "processTimeout"
#define CAN_EXIT_DETAILS       "processExitDetails"
#define CAN_RETENTION_WAIT     "processRetentionWait"
#define CAN_RETENTION_HOLD     "processRetentionHold"
#define CAN_START_ID	       "processStartId"
#define CAN_APPEND	       "fsOpenAppend"
#define CAN_CHMOD	       "fsChmod"
#define CAN_SYMLINK	       "fsSymlink"
#define CAN_MOVE	       "fsMove"
#define CAN_MOVE_KEEP	       "fsMoveKeep"
#define CAN_SET_TIMES	       "fsSetTimes"
#define CAN_DETAILS	       "fsDetails"
#define CAN_END_SESSION	       "sessionEnd"
#define CAN_KEEP_SESSION       "sessionKeep"
#define CAN_LIST_SESSIONS      "sessionList"
#define CAN_TAKE_OVER	       "sessionTakeOver"
#define CAN_LIST_PROCESSES     "processList"
#define CAN_FORWARD	       "processForward"
#define CAN_NETWORK	       "processNetwork"
