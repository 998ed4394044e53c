/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a program of a machine speaks to insns.c: by a no-operation of 7 bytes, «nopl
 * disp32(%rax)» (Intel's manual, volume 2B, NOP), whose displacement says what is meant and is
 * read by nobody else.
 */
#ifndef BENCH_LENDING_MARK_H
#define BENCH_LENDING_MARK_H

#define MARK_BYTES 0x0f, 0x1f, 0x80
#define MARK_SIZE 7
#define MARK_BEGIN 0x51a70001
#define MARK_END 0x51a70002

#endif
