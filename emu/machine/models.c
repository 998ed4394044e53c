/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device models that a topology can name. Alone in this file: a program that defines
 * emu_models itself (a test with a model of its own) takes the place of this member of the archive.
 */
#include "emu/base/internal.h"

const struct emu_dev_model *const emu_models[] = {&emu_nvme_model, NULL};
