/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What insns.c uses of QEMU's interface for plugins of its emulator (QEMU's manual, "TCG Plugins"):
 * the header that declares it is in no package of Debian's.
 */
#ifndef BENCH_LENDING_QEMU_PLUGIN_H
#define BENCH_LENDING_QEMU_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_API 7 /* QEMU 11.1, the least that it takes */

typedef uint64_t qemu_plugin_id_t;
struct qemu_info;
struct qemu_plugin_tb;	 /* a run of instructions that QEMU translates as one */
struct qemu_plugin_insn; /* one of these */

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

typedef void (*qemu_plugin_tb_trans_cb)(struct qemu_plugin_tb *tb, void *data);
typedef void (*qemu_plugin_vcpu_cb)(unsigned cpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_trans_cb cb,
					   void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_vcpu_cb cb,
					  enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_cb cb,
					    enum qemu_plugin_cb_flags flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *into, size_t size);

#endif
